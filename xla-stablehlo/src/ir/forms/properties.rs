//! Table of the inherent attributes of unversioned dialects: StableHLO, CHLO, `func`, `arith`, and Shardy's
//! collectives.

/// Returns the inherent attributes of an operation, sorted by name and followed by the sizes of operand and result
/// groups.
pub(super) fn of(name: &[u8]) -> Option<&'static [&'static str]> {
    if BROADCASTING.contains(&name) {
        return Some(&["?broadcast_dimensions"]);
    }
    if APPROXIMATED.contains(&name) {
        return Some(&["?result_accuracy"]);
    }
    let index = PROPERTIES.binary_search_by(|(known, _)| known.as_bytes().cmp(name)).ok()?;
    Some(PROPERTIES[index].1)
}

/// Functions with a `result_accuracy` attribute.
const APPROXIMATED: &[&[u8]] = &[
    b"stablehlo.cbrt",
    b"stablehlo.cosine",
    b"stablehlo.exponential",
    b"stablehlo.exponential_minus_one",
    b"stablehlo.log",
    b"stablehlo.log_plus_one",
    b"stablehlo.logistic",
    b"stablehlo.rsqrt",
    b"stablehlo.sine",
    b"stablehlo.sqrt",
    b"stablehlo.tan",
    b"stablehlo.tanh",
];

/// Operations with implicit broadcasting of their operands.
const BROADCASTING: &[&[u8]] = &[
    b"chlo.broadcast_add",
    b"chlo.broadcast_and",
    b"chlo.broadcast_atan2",
    b"chlo.broadcast_complex",
    b"chlo.broadcast_divide",
    b"chlo.broadcast_maximum",
    b"chlo.broadcast_minimum",
    b"chlo.broadcast_multiply",
    b"chlo.broadcast_next_after",
    b"chlo.broadcast_or",
    b"chlo.broadcast_polygamma",
    b"chlo.broadcast_power",
    b"chlo.broadcast_remainder",
    b"chlo.broadcast_shift_left",
    b"chlo.broadcast_shift_right_arithmetic",
    b"chlo.broadcast_shift_right_logical",
    b"chlo.broadcast_subtract",
    b"chlo.broadcast_xor",
    b"chlo.broadcast_zeta",
];

/// Inherent attributes of the other operations, sorted by the name of the operation.
pub const PROPERTIES: &[(&str, &[&str])] = &[
    ("arith.constant", &["value"]),
    ("chlo.broadcast_compare", &["?broadcast_dimensions", "?compare_type", "comparison_direction"]),
    ("chlo.constant", &["value"]),
    ("chlo.constant_like", &["value"]),
    ("chlo.ragged_dot", &["?precision_config", "ragged_dot_dimension_numbers"]),
    (
        "chlo.scan",
        &["dimension", "?is_associative", "?is_reverse", "?scan_dim_size", "operandSegmentSizes", "resultSegmentSizes"],
    ),
    ("chlo.top_k", &["k"]),
    ("func.call", &["?arg_attrs", "callee", "?no_inline", "?res_attrs"]),
    ("func.call_indirect", &["?arg_attrs", "?res_attrs"]),
    ("func.constant", &["value"]),
    ("func.func", &["?arg_attrs", "function_type", "?no_inline", "?res_attrs", "sym_name", "?sym_visibility"]),
    ("sdy.all_gather", &["gathering_axes", "out_sharding"]),
    ("sdy.all_reduce", &["out_sharding", "reduction_axes"]),
    ("sdy.all_slice", &["out_sharding", "slicing_axes"]),
    ("sdy.all_to_all", &["out_sharding", "params"]),
    ("sdy.collective_permute", &["out_sharding"]),
    ("sdy.constant", &["value"]),
    ("sdy.reduce_scatter", &["out_sharding", "reduce_scatter_axes"]),
    ("sdy.replicated_to_unreduced", &["axes", "out_sharding"]),
    ("sdy.sharded_to_unreduced", &["axes", "out_sharding"]),
    ("stablehlo.all_gather", &["all_gather_dim", "?channel_handle", "replica_groups", "?use_global_device_ids"]),
    ("stablehlo.all_reduce", &["?channel_handle", "replica_groups", "?use_global_device_ids"]),
    (
        "stablehlo.all_to_all",
        &["?channel_handle", "concat_dimension", "replica_groups", "split_count", "split_dimension"],
    ),
    ("stablehlo.batch_norm_grad", &["epsilon", "feature_index"]),
    ("stablehlo.batch_norm_inference", &["epsilon", "feature_index"]),
    ("stablehlo.batch_norm_training", &["epsilon", "feature_index"]),
    ("stablehlo.broadcast", &["broadcast_sizes"]),
    ("stablehlo.broadcast_in_dim", &["broadcast_dimensions"]),
    ("stablehlo.cholesky", &["?lower"]),
    ("stablehlo.collective_broadcast", &["?channel_handle", "replica_groups"]),
    ("stablehlo.collective_permute", &["?channel_handle", "source_target_pairs"]),
    ("stablehlo.compare", &["?compare_type", "comparison_direction"]),
    ("stablehlo.composite", &["?composite_attributes", "decomposition", "name", "?version"]),
    ("stablehlo.concatenate", &["dimension"]),
    ("stablehlo.constant", &["value"]),
    (
        "stablehlo.convolution",
        &[
            "batch_group_count",
            "dimension_numbers",
            "feature_group_count",
            "?lhs_dilation",
            "?padding",
            "?precision_config",
            "?rhs_dilation",
            "?window_reversal",
            "?window_strides",
        ],
    ),
    ("stablehlo.cross-replica-sum", &["replica_groups"]),
    (
        "stablehlo.custom_call",
        &[
            "?api_version",
            "?backend_config",
            "call_target_name",
            "?called_computations",
            "?has_side_effect",
            "?operand_layouts",
            "?output_operand_aliases",
            "?result_layouts",
            "?result_tilings",
        ],
    ),
    ("stablehlo.dot", &["?precision_config"]),
    ("stablehlo.dot_general", &["?algorithm", "dot_dimension_numbers", "?precision_config"]),
    (
        "stablehlo.dynamic_broadcast_in_dim",
        &["broadcast_dimensions", "?known_expanding_dimensions", "?known_nonexpanding_dimensions"],
    ),
    (
        "stablehlo.dynamic_conv",
        &[
            "batch_group_count",
            "dimension_numbers",
            "feature_group_count",
            "?lhs_dilation",
            "?precision_config",
            "?rhs_dilation",
            "?window_reversal",
            "?window_strides",
        ],
    ),
    ("stablehlo.dynamic_gather", &["dimension_numbers", "?indices_are_sorted"]),
    ("stablehlo.dynamic_iota", &["iota_dimension"]),
    ("stablehlo.dynamic_slice", &["slice_sizes"]),
    ("stablehlo.einsum", &["einsum_config"]),
    ("stablehlo.fft", &["fft_length", "fft_type"]),
    ("stablehlo.gather", &["dimension_numbers", "?indices_are_sorted", "slice_sizes"]),
    ("stablehlo.get_dimension_size", &["dimension"]),
    ("stablehlo.get_tuple_element", &["index"]),
    ("stablehlo.infeed", &["?infeed_config", "?layout"]),
    ("stablehlo.iota", &["iota_dimension"]),
    ("stablehlo.map", &["dimensions"]),
    ("stablehlo.outfeed", &["?outfeed_config"]),
    ("stablehlo.pad", &["edge_padding_high", "edge_padding_low", "interior_padding"]),
    ("stablehlo.recv", &["channel_handle", "?is_host_transfer", "?source_target_pairs"]),
    ("stablehlo.reduce", &["dimensions"]),
    ("stablehlo.reduce_precision", &["exponent_bits", "mantissa_bits"]),
    ("stablehlo.reduce_scatter", &["?channel_handle", "replica_groups", "scatter_dimension", "?use_global_device_ids"]),
    (
        "stablehlo.reduce_window",
        &["?base_dilations", "?padding", "?window_dilations", "window_dimensions", "?window_strides"],
    ),
    ("stablehlo.reverse", &["dimensions"]),
    ("stablehlo.rng", &["rng_distribution"]),
    ("stablehlo.rng_bit_generator", &["rng_algorithm"]),
    ("stablehlo.scatter", &["?indices_are_sorted", "scatter_dimension_numbers", "?unique_indices"]),
    ("stablehlo.select_and_scatter", &["?padding", "?window_dimensions", "?window_strides"]),
    ("stablehlo.send", &["channel_handle", "?is_host_transfer", "?source_target_pairs"]),
    ("stablehlo.set_dimension_size", &["dimension"]),
    ("stablehlo.slice", &["limit_indices", "start_indices", "strides"]),
    ("stablehlo.sort", &["?dimension", "?is_stable"]),
    ("stablehlo.torch_index_select", &["batch_dims", "dim"]),
    ("stablehlo.transpose", &["permutation"]),
    ("stablehlo.triangular_solve", &["left_side", "lower", "transpose_a", "unit_diagonal"]),
    ("stablehlo.unary_einsum", &["einsum_config"]),
];
