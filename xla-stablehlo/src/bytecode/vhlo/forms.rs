//! Table of VHLO's operations: versions in which each form is legal, operands, properties, results, regions.
//!
//! A form stays in the table for ever, so that old artifacts can be read.

use crate::ir::Version;

/// A form of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Name without the dialect: `add_v1`.
    pub name: &'static str,
    /// First version of VHLO that has it.
    pub since: Version,
    /// Last version that has it; `None` for a form of today.
    pub until: Option<Version>,
    /// Operands; `*` in front of a group of any number.
    pub operands: &'static [&'static str],
    /// Inherent attributes in the order of the properties: alphabetical.
    pub properties: &'static [&'static str],
    /// Results; `*` in front of a group of any number.
    pub results: &'static [&'static str],
    /// Regions; `*` in front of a group of any number.
    pub regions: &'static [&'static str],
}

/// The form of a name without the dialect.
pub fn form(name: &[u8]) -> Option<&'static Form> {
    FORMS.binary_search_by(|form| form.name.as_bytes().cmp(name)).ok().map(|index| &FORMS[index])
}

macro_rules! forms {
    ($($name:literal $since:tt $(.. $until:tt)?, $operands:tt, $properties:tt, $results:tt, $regions:tt;)*) => {
        &[$(Form {
            name: $name,
            since: Version $since,
            until: forms!(@until $($until)?),
            operands: &$operands,
            properties: &$properties,
            results: &$results,
            regions: &$regions,
        },)*]
    };
    (@until) => { None };
    (@until $until:tt) => { Some(Version $until) };
}

/// All forms in the order of their names.
//
// Name, first and last version, operands, properties, results, regions.
pub const FORMS: &[Form] = forms! {
    "abs_v1" (0, 9, 0), ["operand"], [], ["result"], [];
    "add_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [];
    "after_all_v1" (0, 9, 0), ["*inputs"], [], ["result"], [];
    "all_gather_v1" (0, 9, 0)..(1, 4, 0), ["operand"], ["all_gather_dim", "channel_id", "replica_groups",
        "use_global_device_ids"], ["result"], [];
    "all_gather_v2" (1, 5, 0), ["*operands"], ["all_gather_dim", "channel_id", "replica_groups",
        "use_global_device_ids"], ["*results"], [];
    "all_reduce_v1" (0, 9, 0)..(1, 4, 0), ["operand"], ["channel_id", "replica_groups", "use_global_device_ids"],
        ["result"], ["computation"];
    "all_reduce_v2" (1, 5, 0), ["*operands"], ["channel_id", "replica_groups", "use_global_device_ids"], ["*results"],
        ["computation"];
    "all_to_all_v1" (0, 9, 0)..(1, 4, 0), ["operand"], ["channel_id", "concat_dimension", "replica_groups",
        "split_count", "split_dimension"], ["result"], [];
    "all_to_all_v2" (1, 5, 0), ["*operands"], ["channel_id", "concat_dimension", "replica_groups", "split_count",
        "split_dimension"], ["*results"], [];
    "and_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [];
    "async_done_v1" (1, 15, 0), ["operand"], [], ["result"], [];
    "async_start_v1" (1, 15, 0), ["*operands"], [], ["result"], ["collective"];
    "atan2_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [];
    "batch_norm_grad_v1" (0, 9, 0), ["operand", "scale", "mean", "variance", "grad_output"], ["epsilon",
        "feature_index"], ["grad_operand", "grad_scale", "grad_offset"], [];
    "batch_norm_inference_v1" (0, 9, 0), ["operand", "scale", "offset", "mean", "variance"], ["epsilon",
        "feature_index"], ["result"], [];
    "batch_norm_training_v1" (0, 9, 0), ["operand", "scale", "offset"], ["epsilon", "feature_index"], ["output",
        "batch_mean", "batch_var"], [];
    "bitcast_convert_v1" (0, 9, 0), ["operand"], [], ["result"], [];
    "broadcast_in_dim_v1" (0, 9, 0), ["operand"], ["broadcast_dimensions"], ["result"], [];
    "broadcast_v1" (0, 9, 0), ["operand"], ["broadcast_sizes"], ["result"], [];
    "call_v1" (0, 9, 0), ["*operands"], ["callee"], ["*results"], [];
    "case_v1" (0, 9, 0), ["index"], [], ["*results"], ["*branches"];
    "cbrt_v1" (0, 9, 0)..(1, 9, 0), ["operand"], [], ["result"], [];
    "cbrt_v2" (1, 10, 0), ["operand"], ["result_accuracy"], ["result"], [];
    "ceil_v1" (0, 9, 0), ["operand"], [], ["result"], [];
    "cholesky_v1" (0, 9, 0), ["a"], ["lower"], ["result"], [];
    "clamp_v1" (0, 9, 0), ["min", "operand", "max"], [], ["result"], [];
    "collective_broadcast_v1" (0, 16, 0)..(1, 19, 0), ["operand"], ["channel_id", "replica_groups"], ["result"], [];
    "collective_broadcast_v2" (1, 20, 0), ["*operands"], ["channel_id", "has_dynamic_root", "replica_groups"],
        ["*results"], [];
    "collective_permute_v1" (0, 9, 0), ["operand"], ["channel_id", "source_target_pairs"], ["result"], [];
    "collective_reduce_v1" (1, 19, 0), ["*operands"], ["channel_id", "has_dynamic_root", "replica_groups",
        "use_global_device_ids"], ["*results"], ["computation"];
    "compare_v1" (0, 9, 0), ["lhs", "rhs"], ["compare_type", "comparison_direction"], ["result"], [];
    "complex_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [];
    "composite_v1" (0, 19, 0)..(1, 13, 0), ["*inputs"], ["composite_attributes", "decomposition", "name", "version"],
        ["*results"], [];
    "composite_v2" (1, 14, 0), ["*inputs"], ["composite_attributes", "decomposition", "name", "version"], ["*results"],
        ["*composite_regions"];
    "concatenate_v1" (0, 9, 0), ["*inputs"], ["dimension"], ["result"], [];
    "constant_v1" (0, 9, 0), [], ["value"], ["output"], [];
    "convert_v1" (0, 9, 0), ["operand"], [], ["result"], [];
    "convolution_v1" (0, 9, 0), ["lhs", "rhs"], ["batch_group_count", "feature_group_count", "input_batch_dimension",
        "input_feature_dimension", "input_spatial_dimensions", "kernel_input_feature_dimension",
        "kernel_output_feature_dimension", "kernel_spatial_dimensions", "lhs_dilation", "output_batch_dimension",
        "output_feature_dimension", "output_spatial_dimensions", "padding", "precision_config", "rhs_dilation",
        "window_reversal", "window_strides"], ["result"], [];
    "cosine_v1" (0, 9, 0)..(1, 9, 0), ["operand"], [], ["result"], [];
    "cosine_v2" (1, 10, 0), ["operand"], ["result_accuracy"], ["result"], [];
    "count_leading_zeros_v1" (0, 9, 0), ["operand"], [], ["result"], [];
    "create_token_v1" (0, 9, 0), [], [], ["output"], [];
    "cross-replica-sum_v1" (0, 9, 0), ["operand"], ["replica_groups"], ["result"], [];
    "custom_call_v1" (0, 9, 0)..(1, 17, 0), ["*inputs"], ["api_version", "backend_config", "call_target_name",
        "called_computations", "has_side_effect", "operand_layouts", "output_operand_aliases", "result_layouts"],
        ["*results"], [];
    "custom_call_v2" (1, 18, 0), ["*inputs"], ["api_version", "backend_config", "call_target_name",
        "called_computations", "has_side_effect", "operand_layouts", "output_operand_aliases", "result_layouts",
        "result_tilings"], ["*results"], [];
    "divide_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [];
    "dot_general_v1" (0, 9, 0)..(1, 5, 0), ["lhs", "rhs"], ["lhs_batching_dimensions", "lhs_contracting_dimensions",
        "precision_config", "rhs_batching_dimensions", "rhs_contracting_dimensions"], ["result"], [];
    "dot_general_v2" (1, 6, 0), ["lhs", "rhs"], ["accumulation_type", "allow_imprecise_accumulation",
        "lhs_batching_dimensions", "lhs_component_count", "lhs_contracting_dimensions", "lhs_precision_type",
        "num_primitive_operations", "precision_config", "rhs_batching_dimensions", "rhs_component_count",
        "rhs_contracting_dimensions", "rhs_precision_type"], ["result"], [];
    "dot_v1" (0, 9, 0), ["lhs", "rhs"], ["precision_config"], ["result"], [];
    "dynamic_broadcast_in_dim_v1" (0, 9, 0), ["operand", "output_dimensions"], ["broadcast_dimensions",
        "known_expanding_dimensions", "known_nonexpanding_dimensions"], ["result"], [];
    "dynamic_conv_v1" (0, 9, 0)..(0, 19, 0), ["lhs", "rhs", "d_padding"], ["batch_group_count", "feature_group_count",
        "input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions",
        "kernel_input_feature_dimension", "kernel_output_feature_dimension", "kernel_spatial_dimensions",
        "lhs_dilation", "output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions", "padding",
        "precision_config", "rhs_dilation", "window_reversal", "window_strides"], ["result"], [];
    "dynamic_conv_v2" (0, 20, 0), ["lhs", "rhs", "padding"], ["batch_group_count", "feature_group_count",
        "input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions",
        "kernel_input_feature_dimension", "kernel_output_feature_dimension", "kernel_spatial_dimensions",
        "lhs_dilation", "output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions",
        "precision_config", "rhs_dilation", "window_reversal", "window_strides"], ["result"], [];
    "dynamic_gather_v1" (0, 9, 0)..(1, 0, 0), ["operand", "start_indices", "slice_sizes"], ["collapsed_slice_dims",
        "index_vector_dim", "indices_are_sorted", "offset_dims", "start_index_map"], ["result"], [];
    "dynamic_gather_v2" (1, 1, 0), ["operand", "start_indices", "slice_sizes"], ["collapsed_slice_dims",
        "index_vector_dim", "indices_are_sorted", "offset_dims", "operand_batching_dims", "start_index_map",
        "start_indices_batching_dims"], ["result"], [];
    "dynamic_iota_v1" (0, 9, 0), ["output_shape"], ["iota_dimension"], ["result"], [];
    "dynamic_pad_v1" (0, 9, 0), ["operand", "padding_value", "edge_padding_low", "edge_padding_high",
        "interior_padding"], [], ["result"], [];
    "dynamic_reshape_v1" (0, 9, 0), ["operand", "output_shape"], [], ["result"], [];
    "dynamic_slice_v1" (0, 9, 0), ["operand", "*start_indices"], ["slice_sizes"], ["result"], [];
    "dynamic_update_slice_v1" (0, 9, 0), ["operand", "update", "*start_indices"], [], ["result"], [];
    "einsum_v1" (0, 9, 0), ["lhs", "rhs"], ["einsum_config"], ["result"], [];
    "exponential_minus_one_v1" (0, 9, 0)..(1, 9, 0), ["operand"], [], ["result"], [];
    "exponential_minus_one_v2" (1, 10, 0), ["operand"], ["result_accuracy"], ["result"], [];
    "exponential_v1" (0, 9, 0)..(1, 8, 0), ["operand"], [], ["result"], [];
    "exponential_v2" (1, 9, 0), ["operand"], ["result_accuracy"], ["result"], [];
    "fft_v1" (0, 9, 0), ["operand"], ["fft_length", "fft_type"], ["result"], [];
    "floor_v1" (0, 9, 0), ["operand"], [], ["result"], [];
    "func_v1" (0, 9, 0), [], ["arg_attrs", "function_type", "res_attrs", "sym_name", "sym_visibility"], [], ["body"];
    "gather_v1" (0, 9, 0)..(1, 0, 0), ["operand", "start_indices"], ["collapsed_slice_dims", "index_vector_dim",
        "indices_are_sorted", "offset_dims", "slice_sizes", "start_index_map"], ["result"], [];
    "gather_v2" (1, 1, 0), ["operand", "start_indices"], ["collapsed_slice_dims", "index_vector_dim",
        "indices_are_sorted", "offset_dims", "operand_batching_dims", "slice_sizes", "start_index_map",
        "start_indices_batching_dims"], ["result"], [];
    "get_dimension_size_v1" (0, 9, 0), ["operand"], ["dimension"], ["result"], [];
    "get_tuple_element_v1" (0, 9, 0), ["operand"], ["index"], ["result"], [];
    "if_v1" (0, 9, 0), ["pred"], [], ["*results"], ["true_branch", "false_branch"];
    "imag_v1" (0, 9, 0), ["operand"], [], ["result"], [];
    "infeed_v1" (0, 9, 0), ["token"], ["infeed_config", "layout"], ["*results"], [];
    "iota_v1" (0, 9, 0), [], ["iota_dimension"], ["output"], [];
    "is_finite_v1" (0, 9, 0), ["x"], [], ["y"], [];
    "log_plus_one_v1" (0, 9, 0)..(1, 9, 0), ["operand"], [], ["result"], [];
    "log_plus_one_v2" (1, 10, 0), ["operand"], ["result_accuracy"], ["result"], [];
    "log_v1" (0, 9, 0)..(1, 9, 0), ["operand"], [], ["result"], [];
    "log_v2" (1, 10, 0), ["operand"], ["result_accuracy"], ["result"], [];
    "logistic_v1" (0, 9, 0)..(1, 9, 0), ["operand"], [], ["result"], [];
    "logistic_v2" (1, 10, 0), ["operand"], ["result_accuracy"], ["result"], [];
    "map_v1" (0, 9, 0), ["*inputs"], ["dimensions"], ["result"], ["computation"];
    "maximum_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [];
    "minimum_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [];
    "multiply_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [];
    "negate_v1" (0, 9, 0), ["operand"], [], ["result"], [];
    "not_v1" (0, 9, 0), ["operand"], [], ["result"], [];
    "optimization_barrier_v1" (0, 9, 0), ["*operand"], [], ["*result"], [];
    "or_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [];
    "outfeed_v1" (0, 9, 0), ["*inputs", "token"], ["outfeed_config"], ["result"], [];
    "pad_v1" (0, 9, 0), ["operand", "padding_value"], ["edge_padding_high", "edge_padding_low", "interior_padding"],
        ["result"], [];
    "partition_id_v1" (0, 9, 0), [], [], ["result"], [];
    "popcnt_v1" (0, 9, 0), ["operand"], [], ["result"], [];
    "power_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [];
    "real_dynamic_slice_v1" (0, 9, 0), ["operand", "start_indices", "limit_indices", "strides"], [], ["result"], [];
    "real_v1" (0, 9, 0), ["operand"], [], ["result"], [];
    "recv_v1" (0, 9, 0)..(1, 11, 0), ["token"], ["channel_id", "channel_type", "is_host_transfer"], ["*results"], [];
    "recv_v2" (1, 12, 0), ["token"], ["channel_id", "channel_type", "is_host_transfer", "source_target_pairs"],
        ["*results"], [];
    "reduce_precision_v1" (0, 9, 0), ["operand"], ["exponent_bits", "mantissa_bits"], ["output"], [];
    "reduce_scatter_v1" (0, 9, 0), ["operand"], ["channel_id", "replica_groups", "scatter_dimension",
        "use_global_device_ids"], ["result"], ["computation"];
    "reduce_v1" (0, 9, 0), ["*inputs", "*init_values"], ["dimensions"], ["*results"], ["body"];
    "reduce_window_v1" (0, 9, 0), ["*inputs", "*init_values"], ["base_dilations", "padding", "window_dilations",
        "window_dimensions", "window_strides"], ["*results"], ["body"];
    "remainder_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [];
    "replica_id_v1" (0, 9, 0), [], [], ["result"], [];
    "reshape_v1" (0, 9, 0), ["operand"], [], ["result"], [];
    "return_v1" (0, 9, 0), ["*results"], [], [], [];
    "reverse_v1" (0, 9, 0), ["operand"], ["dimensions"], ["result"], [];
    "rng_bit_generator_v1" (0, 9, 0), ["initial_state"], ["rng_algorithm"], ["output_state", "output"], [];
    "rng_v1" (0, 9, 0), ["a", "b", "shape"], ["rng_distribution"], ["result"], [];
    "round_nearest_afz_v1" (0, 9, 0), ["operand"], [], ["result"], [];
    "round_nearest_even_v1" (0, 9, 0), ["operand"], [], ["result"], [];
    "rsqrt_v1" (0, 9, 0)..(1, 9, 0), ["operand"], [], ["result"], [];
    "rsqrt_v2" (1, 10, 0), ["operand"], ["result_accuracy"], ["result"], [];
    "scatter_v1" (0, 9, 0)..(1, 0, 0), ["*inputs", "scatter_indices", "*updates"], ["index_vector_dim",
        "indices_are_sorted", "inserted_window_dims", "scatter_dims_to_operand_dims", "unique_indices",
        "update_window_dims"], ["*results"], ["update_computation"];
    "scatter_v2" (1, 1, 0), ["*inputs", "scatter_indices", "*updates"], ["index_vector_dim", "indices_are_sorted",
        "input_batching_dims", "inserted_window_dims", "scatter_dims_to_operand_dims", "scatter_indices_batching_dims",
        "unique_indices", "update_window_dims"], ["*results"], ["update_computation"];
    "select_and_scatter_v1" (0, 9, 0), ["operand", "source", "init_value"], ["padding", "window_dimensions",
        "window_strides"], ["result"], ["select", "scatter"];
    "select_v1" (0, 9, 0), ["pred", "on_true", "on_false"], [], ["result"], [];
    "send_v1" (0, 9, 0)..(1, 11, 0), ["*inputs", "token"], ["channel_id", "channel_type", "is_host_transfer"],
        ["result"], [];
    "send_v2" (1, 12, 0), ["*inputs", "token"], ["channel_id", "channel_type", "is_host_transfer",
        "source_target_pairs"], ["result"], [];
    "set_dimension_size_v1" (0, 9, 0), ["operand", "size"], ["dimension"], ["result"], [];
    "shift_left_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [];
    "shift_right_arithmetic_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [];
    "shift_right_logical_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [];
    "sign_v1" (0, 9, 0), ["operand"], [], ["result"], [];
    "sine_v1" (0, 9, 0)..(1, 9, 0), ["operand"], [], ["result"], [];
    "sine_v2" (1, 10, 0), ["operand"], ["result_accuracy"], ["result"], [];
    "slice_v1" (0, 9, 0), ["operand"], ["limit_indices", "start_indices", "strides"], ["result"], [];
    "sort_v1" (0, 9, 0), ["*inputs"], ["dimension", "is_stable"], ["*results"], ["comparator"];
    "sqrt_v1" (0, 9, 0)..(1, 9, 0), ["operand"], [], ["result"], [];
    "sqrt_v2" (1, 10, 0), ["operand"], ["result_accuracy"], ["result"], [];
    "subtract_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [];
    "tan_v1" (1, 4, 0)..(1, 9, 0), ["operand"], [], ["result"], [];
    "tan_v2" (1, 10, 0), ["operand"], ["result_accuracy"], ["result"], [];
    "tanh_v1" (0, 9, 0)..(1, 9, 0), ["operand"], [], ["result"], [];
    "tanh_v2" (1, 10, 0), ["operand"], ["result_accuracy"], ["result"], [];
    "torch_index_select_v1" (0, 9, 0), ["operand", "index"], ["batch_dims", "dim"], ["result"], [];
    "transpose_v1" (0, 9, 0), ["operand"], ["permutation"], ["result"], [];
    "triangular_solve_v1" (0, 9, 0), ["a", "b"], ["left_side", "lower", "transpose_a", "unit_diagonal"], ["result"], [];
    "tuple_v1" (0, 9, 0), ["*val"], [], ["result"], [];
    "unary_einsum_v1" (0, 9, 0), ["operand"], ["einsum_config"], ["result"], [];
    "uniform_dequantize_v1" (0, 9, 0), ["operand"], [], ["result"], [];
    "uniform_quantize_v1" (0, 9, 0), ["operand"], [], ["result"], [];
    "while_v1" (0, 9, 0), ["*operand"], [], ["*results"], ["cond", "body"];
    "xor_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [];
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_properties_are_in_order() {
        assert!(FORMS.is_sorted_by_key(|form| form.name));
        for Form { name, properties, .. } in FORMS {
            assert!(properties.is_sorted(), "{name}");
        }
        assert_eq!(form(b"add_v1").map(|form| form.since), Some(Version(0, 9, 0)));
        assert!(form(b"add_v9").is_none());
    }

    #[test]
    fn forms_of_one_operation_follow_each_other() {
        let stem = |form: &Form| form.name.rsplit_once("_v").map(|(stem, _)| stem.to_string());
        for pair in FORMS.windows(2).filter(|pair| stem(&pair[0]) == stem(&pair[1])) {
            let Some(until) = pair[0].until else { panic!("{} has no end", pair[0].name) };
            assert!(until < pair[1].since, "{}", pair[1].name);
        }
    }
}
