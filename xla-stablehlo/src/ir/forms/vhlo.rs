//! Table of VHLO's operations: the versions in which each form is legal, operands, properties, results, regions, types.
//!
//! A form is never removed, because old artifacts must stay readable.

use super::{Form, Types};
use crate::ir::Version;

macro_rules! forms {
    ($($name:literal $since:tt $(.. $until:tt)?, $operands:tt, $properties:tt, $results:tt, $regions:tt
        $(, $types:ident)?;)*) => {
        &[$(Form {
            name: $name,
            since: Version $since,
            until: forms!(@until $($until)?),
            operands: &$operands,
            properties: &$properties,
            results: &$results,
            regions: &$regions,
            types: forms!(@types $($types)?),
        },)*]
    };
    (@until) => { None };
    (@until $until:tt) => { Some(Version $until) };
    (@types) => { Types::Any };
    (@types $types:ident) => { Types::$types };
}

/// All forms, sorted by name.
//
// Columns: name, first and last version, operands, properties, results, regions, rule for types.
pub const FORMS: &[Form] = forms! {
    "abs_v1" (0, 9, 0), ["operand"], [], ["result"], [], Shape;
    "add_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [], Same;
    "after_all_v1" (0, 9, 0), ["*inputs"], [], ["result"], [];
    "all_gather_v1" (0, 9, 0)..(1, 4, 0), ["operand"], ["all_gather_dim", "channel_id", "replica_groups",
        "use_global_device_ids"], ["result"], [], Element;
    "all_gather_v2" (1, 5, 0), ["*operands"], ["all_gather_dim", "channel_id", "replica_groups",
        "use_global_device_ids"], ["*results"], [], PairedElements;
    "all_reduce_v1" (0, 9, 0)..(1, 4, 0), ["operand"], ["channel_id", "replica_groups", "use_global_device_ids"],
        ["result"], ["computation"], PairedShapes;
    "all_reduce_v2" (1, 5, 0), ["*operands"], ["channel_id", "replica_groups", "use_global_device_ids"], ["*results"],
        ["computation"], PairedShapes;
    "all_to_all_v1" (0, 9, 0)..(1, 4, 0), ["operand"], ["channel_id", "concat_dimension", "replica_groups",
        "split_count", "split_dimension"], ["result"], [], Element;
    "all_to_all_v2" (1, 5, 0), ["*operands"], ["channel_id", "concat_dimension", "replica_groups", "split_count",
        "split_dimension"], ["*results"], [], PairedElements;
    "and_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [], Same;
    "async_done_v1" (1, 15, 0), ["operand"], [], ["result"], [];
    "async_start_v1" (1, 15, 0), ["*operands"], [], ["result"], ["collective"];
    "atan2_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [], Same;
    "batch_norm_grad_v1" (0, 9, 0), ["operand", "scale", "mean", "variance", "grad_output"], ["epsilon",
        "feature_index"], ["grad_operand", "grad_scale", "grad_offset"], [];
    "batch_norm_inference_v1" (0, 9, 0), ["operand", "scale", "offset", "mean", "variance"], ["epsilon",
        "feature_index"], ["result"], [];
    "batch_norm_training_v1" (0, 9, 0), ["operand", "scale", "offset"], ["epsilon", "feature_index"], ["output",
        "batch_mean", "batch_var"], [];
    "bitcast_convert_v1" (0, 9, 0), ["operand"], [], ["result"], [];
    "broadcast_in_dim_v1" (0, 9, 0), ["operand"], ["broadcast_dimensions"], ["result"], [], Element;
    "broadcast_v1" (0, 9, 0), ["operand"], ["broadcast_sizes"], ["result"], [], Element;
    "call_v1" (0, 9, 0), ["*operands"], ["callee"], ["*results"], [];
    "case_v1" (0, 9, 0), ["index"], [], ["*results"], ["*branches"];
    "cbrt_v1" (0, 9, 0)..(1, 9, 0), ["operand"], [], ["result"], [], Same;
    "cbrt_v2" (1, 10, 0), ["operand"], ["result_accuracy"], ["result"], [], Same;
    "ceil_v1" (0, 9, 0), ["operand"], [], ["result"], [], Same;
    "cholesky_v1" (0, 9, 0), ["a"], ["lower"], ["result"], [], Same;
    "clamp_v1" (0, 9, 0), ["min", "operand", "max"], [], ["result"], [];
    "collective_broadcast_v1" (0, 16, 0)..(1, 19, 0), ["operand"], ["channel_id", "replica_groups"], ["result"], [];
    "collective_broadcast_v2" (1, 20, 0), ["*operands"], ["channel_id", "has_dynamic_root", "replica_groups"],
        ["*results"], [];
    "collective_permute_v1" (0, 9, 0), ["operand"], ["channel_id", "source_target_pairs"], ["result"], [], First;
    "collective_reduce_v1" (1, 19, 0), ["*operands"], ["channel_id", "has_dynamic_root", "replica_groups",
        "use_global_device_ids"], ["*results"], ["computation"];
    "compare_v1" (0, 9, 0), ["lhs", "rhs"], ["compare_type", "comparison_direction"], ["result"], [], Shape;
    "complex_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [], Shape;
    "composite_v1" (0, 19, 0)..(1, 13, 0), ["*inputs"], ["composite_attributes", "decomposition", "name", "version"],
        ["*results"], [];
    "composite_v2" (1, 14, 0), ["*inputs"], ["composite_attributes", "decomposition", "name", "version"], ["*results"],
        ["*composite_regions"];
    "concatenate_v1" (0, 9, 0), ["*inputs"], ["dimension"], ["result"], [], Element;
    "constant_v1" (0, 9, 0), [], ["value"], ["output"], [];
    "convert_v1" (0, 9, 0), ["operand"], [], ["result"], [], Shape;
    "convolution_v1" (0, 9, 0), ["lhs", "rhs"], ["batch_group_count", "feature_group_count", "input_batch_dimension",
        "input_feature_dimension", "input_spatial_dimensions", "kernel_input_feature_dimension",
        "kernel_output_feature_dimension", "kernel_spatial_dimensions", "lhs_dilation", "output_batch_dimension",
        "output_feature_dimension", "output_spatial_dimensions", "padding", "precision_config", "rhs_dilation",
        "window_reversal", "window_strides"], ["result"], [];
    "cosine_v1" (0, 9, 0)..(1, 9, 0), ["operand"], [], ["result"], [], Same;
    "cosine_v2" (1, 10, 0), ["operand"], ["result_accuracy"], ["result"], [], Same;
    "count_leading_zeros_v1" (0, 9, 0), ["operand"], [], ["result"], [], Same;
    "create_token_v1" (0, 9, 0), [], [], ["output"], [];
    "cross-replica-sum_v1" (0, 9, 0), ["operand"], ["replica_groups"], ["result"], [];
    "custom_call_v1" (0, 9, 0)..(1, 17, 0), ["*inputs"], ["api_version", "backend_config", "call_target_name",
        "called_computations", "has_side_effect", "operand_layouts", "output_operand_aliases", "result_layouts"],
        ["*results"], [];
    "custom_call_v2" (1, 18, 0), ["*inputs"], ["api_version", "backend_config", "call_target_name",
        "called_computations", "has_side_effect", "operand_layouts", "output_operand_aliases", "result_layouts",
        "result_tilings"], ["*results"], [];
    "divide_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [], Same;
    "dot_general_v1" (0, 9, 0)..(1, 5, 0), ["lhs", "rhs"], ["lhs_batching_dimensions", "lhs_contracting_dimensions",
        "precision_config", "rhs_batching_dimensions", "rhs_contracting_dimensions"], ["result"], [];
    "dot_general_v2" (1, 6, 0), ["lhs", "rhs"], ["accumulation_type", "allow_imprecise_accumulation",
        "lhs_batching_dimensions", "lhs_component_count", "lhs_contracting_dimensions", "lhs_precision_type",
        "num_primitive_operations", "precision_config", "rhs_batching_dimensions", "rhs_component_count",
        "rhs_contracting_dimensions", "rhs_precision_type"], ["result"], [];
    "dot_v1" (0, 9, 0), ["lhs", "rhs"], ["precision_config"], ["result"], [];
    "dynamic_broadcast_in_dim_v1" (0, 9, 0), ["operand", "output_dimensions"], ["broadcast_dimensions",
        "known_expanding_dimensions", "known_nonexpanding_dimensions"], ["result"], [], Element;
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
        "index_vector_dim", "indices_are_sorted", "offset_dims", "start_index_map"], ["result"], [], Element;
    "dynamic_gather_v2" (1, 1, 0), ["operand", "start_indices", "slice_sizes"], ["collapsed_slice_dims",
        "index_vector_dim", "indices_are_sorted", "offset_dims", "operand_batching_dims", "start_index_map",
        "start_indices_batching_dims"], ["result"], [], Element;
    "dynamic_iota_v1" (0, 9, 0), ["output_shape"], ["iota_dimension"], ["result"], [];
    "dynamic_pad_v1" (0, 9, 0), ["operand", "padding_value", "edge_padding_low", "edge_padding_high",
        "interior_padding"], [], ["result"], [], Element;
    "dynamic_reshape_v1" (0, 9, 0), ["operand", "output_shape"], [], ["result"], [], Element;
    "dynamic_slice_v1" (0, 9, 0), ["operand", "*start_indices"], ["slice_sizes"], ["result"], [], Element;
    "dynamic_update_slice_v1" (0, 9, 0), ["operand", "update", "*start_indices"], [], ["result"], [], First;
    "einsum_v1" (0, 9, 0), ["lhs", "rhs"], ["einsum_config"], ["result"], [];
    "exponential_minus_one_v1" (0, 9, 0)..(1, 9, 0), ["operand"], [], ["result"], [], Same;
    "exponential_minus_one_v2" (1, 10, 0), ["operand"], ["result_accuracy"], ["result"], [], Same;
    "exponential_v1" (0, 9, 0)..(1, 8, 0), ["operand"], [], ["result"], [], Same;
    "exponential_v2" (1, 9, 0), ["operand"], ["result_accuracy"], ["result"], [], Same;
    "fft_v1" (0, 9, 0), ["operand"], ["fft_length", "fft_type"], ["result"], [];
    "floor_v1" (0, 9, 0), ["operand"], [], ["result"], [], Same;
    "func_v1" (0, 9, 0), [], ["arg_attrs", "function_type", "res_attrs", "sym_name", "sym_visibility"], [], ["body"];
    "gather_v1" (0, 9, 0)..(1, 0, 0), ["operand", "start_indices"], ["collapsed_slice_dims", "index_vector_dim",
        "indices_are_sorted", "offset_dims", "slice_sizes", "start_index_map"], ["result"], [], Element;
    "gather_v2" (1, 1, 0), ["operand", "start_indices"], ["collapsed_slice_dims", "index_vector_dim",
        "indices_are_sorted", "offset_dims", "operand_batching_dims", "slice_sizes", "start_index_map",
        "start_indices_batching_dims"], ["result"], [], Element;
    "get_dimension_size_v1" (0, 9, 0), ["operand"], ["dimension"], ["result"], [];
    "get_tuple_element_v1" (0, 9, 0), ["operand"], ["index"], ["result"], [];
    "if_v1" (0, 9, 0), ["pred"], [], ["*results"], ["true_branch", "false_branch"];
    "imag_v1" (0, 9, 0), ["operand"], [], ["result"], [], Shape;
    "infeed_v1" (0, 9, 0), ["token"], ["infeed_config", "layout"], ["*results"], [];
    "iota_v1" (0, 9, 0), [], ["iota_dimension"], ["output"], [];
    "is_finite_v1" (0, 9, 0), ["x"], [], ["y"], [], Shape;
    "log_plus_one_v1" (0, 9, 0)..(1, 9, 0), ["operand"], [], ["result"], [], Same;
    "log_plus_one_v2" (1, 10, 0), ["operand"], ["result_accuracy"], ["result"], [], Same;
    "log_v1" (0, 9, 0)..(1, 9, 0), ["operand"], [], ["result"], [], Same;
    "log_v2" (1, 10, 0), ["operand"], ["result_accuracy"], ["result"], [], Same;
    "logistic_v1" (0, 9, 0)..(1, 9, 0), ["operand"], [], ["result"], [], Same;
    "logistic_v2" (1, 10, 0), ["operand"], ["result_accuracy"], ["result"], [], Same;
    "map_v1" (0, 9, 0), ["*inputs"], ["dimensions"], ["result"], ["computation"];
    "maximum_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [], Same;
    "minimum_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [], Same;
    "multiply_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [], Same;
    "negate_v1" (0, 9, 0), ["operand"], [], ["result"], [], Same;
    "not_v1" (0, 9, 0), ["operand"], [], ["result"], [], Same;
    "optimization_barrier_v1" (0, 9, 0), ["*operand"], [], ["*result"], [], Pairs;
    "or_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [], Same;
    "outfeed_v1" (0, 9, 0), ["*inputs", "token"], ["outfeed_config"], ["result"], [];
    "pad_v1" (0, 9, 0), ["operand", "padding_value"], ["edge_padding_high", "edge_padding_low", "interior_padding"],
        ["result"], [], Element;
    "partition_id_v1" (0, 9, 0), [], [], ["result"], [];
    "popcnt_v1" (0, 9, 0), ["operand"], [], ["result"], [], Same;
    "power_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [], Same;
    "real_dynamic_slice_v1" (0, 9, 0), ["operand", "start_indices", "limit_indices", "strides"], [], ["result"], [],
        Element;
    "real_v1" (0, 9, 0), ["operand"], [], ["result"], [], Shape;
    "recv_v1" (0, 9, 0)..(1, 11, 0), ["token"], ["channel_id", "channel_type", "is_host_transfer"], ["*results"], [];
    "recv_v2" (1, 12, 0), ["token"], ["channel_id", "channel_type", "is_host_transfer", "source_target_pairs"],
        ["*results"], [];
    "reduce_precision_v1" (0, 9, 0), ["operand"], ["exponent_bits", "mantissa_bits"], ["output"], [], Same;
    "reduce_scatter_v1" (0, 9, 0), ["operand"], ["channel_id", "replica_groups", "scatter_dimension",
        "use_global_device_ids"], ["result"], ["computation"];
    "reduce_v1" (0, 9, 0), ["*inputs", "*init_values"], ["dimensions"], ["*results"], ["body"];
    "reduce_window_v1" (0, 9, 0), ["*inputs", "*init_values"], ["base_dilations", "padding", "window_dilations",
        "window_dimensions", "window_strides"], ["*results"], ["body"];
    "remainder_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [], Same;
    "replica_id_v1" (0, 9, 0), [], [], ["result"], [];
    "reshape_v1" (0, 9, 0), ["operand"], [], ["result"], [], Element;
    "return_v1" (0, 9, 0), ["*results"], [], [], [];
    "reverse_v1" (0, 9, 0), ["operand"], ["dimensions"], ["result"], [], Same;
    "rng_bit_generator_v1" (0, 9, 0), ["initial_state"], ["rng_algorithm"], ["output_state", "output"], [];
    "rng_v1" (0, 9, 0), ["a", "b", "shape"], ["rng_distribution"], ["result"], [];
    "round_nearest_afz_v1" (0, 9, 0), ["operand"], [], ["result"], [], Same;
    "round_nearest_even_v1" (0, 9, 0), ["operand"], [], ["result"], [], Same;
    "rsqrt_v1" (0, 9, 0)..(1, 9, 0), ["operand"], [], ["result"], [], Same;
    "rsqrt_v2" (1, 10, 0), ["operand"], ["result_accuracy"], ["result"], [], Same;
    "scatter_v1" (0, 9, 0)..(1, 0, 0), ["*inputs", "scatter_indices", "*updates"], ["index_vector_dim",
        "indices_are_sorted", "inserted_window_dims", "scatter_dims_to_operand_dims", "unique_indices",
        "update_window_dims"], ["*results"], ["update_computation"];
    "scatter_v2" (1, 1, 0), ["*inputs", "scatter_indices", "*updates"], ["index_vector_dim", "indices_are_sorted",
        "input_batching_dims", "inserted_window_dims", "scatter_dims_to_operand_dims", "scatter_indices_batching_dims",
        "unique_indices", "update_window_dims"], ["*results"], ["update_computation"];
    "select_and_scatter_v1" (0, 9, 0), ["operand", "source", "init_value"], ["padding", "window_dimensions",
        "window_strides"], ["result"], ["select", "scatter"];
    "select_v1" (0, 9, 0), ["pred", "on_true", "on_false"], [], ["result"], [], Branches;
    "send_v1" (0, 9, 0)..(1, 11, 0), ["*inputs", "token"], ["channel_id", "channel_type", "is_host_transfer"],
        ["result"], [];
    "send_v2" (1, 12, 0), ["*inputs", "token"], ["channel_id", "channel_type", "is_host_transfer",
        "source_target_pairs"], ["result"], [];
    "set_dimension_size_v1" (0, 9, 0), ["operand", "size"], ["dimension"], ["result"], [];
    "shift_left_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [], Same;
    "shift_right_arithmetic_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [], Same;
    "shift_right_logical_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [], Same;
    "sign_v1" (0, 9, 0), ["operand"], [], ["result"], [], Same;
    "sine_v1" (0, 9, 0)..(1, 9, 0), ["operand"], [], ["result"], [], Same;
    "sine_v2" (1, 10, 0), ["operand"], ["result_accuracy"], ["result"], [], Same;
    "slice_v1" (0, 9, 0), ["operand"], ["limit_indices", "start_indices", "strides"], ["result"], [], Element;
    "sort_v1" (0, 9, 0), ["*inputs"], ["dimension", "is_stable"], ["*results"], ["comparator"], Pairs;
    "sqrt_v1" (0, 9, 0)..(1, 9, 0), ["operand"], [], ["result"], [], Same;
    "sqrt_v2" (1, 10, 0), ["operand"], ["result_accuracy"], ["result"], [], Same;
    "subtract_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [], Same;
    "tan_v1" (1, 4, 0)..(1, 9, 0), ["operand"], [], ["result"], [], Same;
    "tan_v2" (1, 10, 0), ["operand"], ["result_accuracy"], ["result"], [], Same;
    "tanh_v1" (0, 9, 0)..(1, 9, 0), ["operand"], [], ["result"], [], Same;
    "tanh_v2" (1, 10, 0), ["operand"], ["result_accuracy"], ["result"], [], Same;
    "torch_index_select_v1" (0, 9, 0), ["operand", "index"], ["batch_dims", "dim"], ["result"], [], Element;
    "transpose_v1" (0, 9, 0), ["operand"], ["permutation"], ["result"], [], Element;
    "triangular_solve_v1" (0, 9, 0), ["a", "b"], ["left_side", "lower", "transpose_a", "unit_diagonal"], ["result"], [];
    "tuple_v1" (0, 9, 0), ["*val"], [], ["result"], [];
    "unary_einsum_v1" (0, 9, 0), ["operand"], ["einsum_config"], ["result"], [];
    "uniform_dequantize_v1" (0, 9, 0), ["operand"], [], ["result"], [], Shape;
    "uniform_quantize_v1" (0, 9, 0), ["operand"], [], ["result"], [], Shape;
    "while_v1" (0, 9, 0), ["*operand"], [], ["*results"], ["cond", "body"], Pairs;
    "xor_v1" (0, 9, 0), ["lhs", "rhs"], [], ["result"], [], Same;
};
