//! Programs of operations with many forms, as text.

pub mod linalg;

/// Returns a scatter with a given combiner body over `a` and `b`. Shapes and attributes are in HLO's notation:
/// dimensions of the array, full shape of the indices, dimensions of the updates.
pub fn scatter_of(ty: &str, body: &str, [x, i, u]: [&str; 3], attributes: &str) -> String {
    format!(
        "HloModule m
        combine {{
          a = {ty}[] parameter(0)
          b = {ty}[] parameter(1)
          {body}
        }}
        ENTRY main {{
          x = {ty}[{x}] parameter(0)
          i = {i} parameter(1)
          u = {ty}[{u}] parameter(2)
          ROOT r = {ty}[{x}] scatter(x, i, u), {attributes}, to_apply=combine
        }}"
    )
}

/// Attributes of a scatter of single elements to one dimension.
pub const SCATTER_POINTS: &str =
    "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1";
/// Attributes of a scatter of rows.
pub const SCATTER_ROWS: &str =
    "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1";

/// Shapes and attributes of scatters in every form, for [`scatter_of`]; small ones.
pub const SCATTER_ARRANGEMENTS: &[([&str; 3], &str)] = &[
    // Windows of two dimensions, some of them out of bounds.
    (
        ["9,12", "s32[2,30]", "3,30,5"],
        "update_window_dims={0,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={1,0}, index_vector_dim=0",
    ),
    // Batches, and indices without an index vector dimension.
    (
        ["4,20", "s32[30,4]", "30,4"],
        "update_window_dims={}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={1}, index_vector_dim=2",
    ),
    // Unsigned indices, columns.
    (
        ["6,9", "u8[11,1]", "6,11"],
        "update_window_dims={0}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, index_vector_dim=1",
    ),
    // One window without index components.
    (
        ["6,9", "s32[0]", "4,9"],
        "update_window_dims={0,1}, inserted_window_dims={}, scatter_dims_to_operand_dims={}, index_vector_dim=0",
    ),
    // Empty arrays.
    (["6,9", "s32[0,1]", "0,9"], SCATTER_ROWS),
    (["0,9", "s32[3,1]", "3,9"], SCATTER_ROWS),
    (["9,40", "s64[300,1]", "300,23"], SCATTER_ROWS),
    // Several windows of few elements, which must not be treated as contiguous runs beyond their array.
    (
        ["7,7", "s32[31,2]", "31,2,2"],
        "update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1",
    ),
    (
        ["7", "s32[31,1]", "31,3"],
        "update_window_dims={1}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1",
    ),
    // Index vectors of three components, in another order than the dimensions, over two dimensions.
    (
        ["3,4,5", "s32[3,9,20]", "9,20"],
        "update_window_dims={}, inserted_window_dims={0,1,2}, scatter_dims_to_operand_dims={2,0,1}, index_vector_dim=0",
    ),
];

/// Returns scatters with indices of every wide type, far out of bounds: of single elements, and of windows of three.
pub fn scatters_far_out_of_range() -> Vec<String> {
    let mut programs = Vec::new();
    for (ty, numbers) in [
        ("s64", "-9223372036854775808, 9223372036854775807, -1, 4294967296, 4294967297, 4, 5, 0"),
        ("u64", "18446744073709551615, 9223372036854775808, 9223372036854775807, 4294967296, 1, 4, 5, 0"),
        ("s32", "-2147483648, 2147483647, -1, -5, 1, 4, 5, 0"),
        ("u32", "4294967295, 2147483648, 2147483647, 65536, 1, 4, 5, 0"),
        ("s8", "-128, 127, -1, -5, 1, 4, 5, 0"),
        ("u8", "255, 128, 127, 6, 1, 4, 5, 0"),
    ] {
        // Single elements, and windows of three, the last of which fits at 2.
        for (update, window, inserted) in [("8", "", "0"), ("8,3", "1", "")] {
            programs.push(format!(
                "HloModule m
                combine {{
                  a = f32[] parameter(0)
                  b = f32[] parameter(1)
                  ROOT r = f32[] add(a, b)
                }}
                ENTRY main {{
                  x = f32[5] parameter(0)
                  u = f32[{update}] parameter(1)
                  i = {ty}[8] constant({{{numbers}}})
                  ROOT r = f32[5] scatter(x, i, u), update_window_dims={{{window}}}, inserted_window_dims={{{inserted}}}, scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=combine
                }}"
            ));
        }
    }
    programs
}

/// Returns a stable sort of an array and its indices along a dimension, by a comparator of `a`, `b` (and `i`, `j`) with
/// a given body.
pub fn sort_of(ty: &str, dims: &str, dimension: usize, before: &str) -> String {
    format!(
        "HloModule m
        before {{
          a = {ty}[] parameter(0)
          b = {ty}[] parameter(1)
          i = s32[] parameter(2)
          j = s32[] parameter(3)
          {before}
        }}
        ENTRY main {{
          x = {ty}[{dims}] parameter(0)
          places = s32[{dims}] iota(), iota_dimension={dimension}
          ROOT r = ({ty}[{dims}], s32[{dims}]) sort(x, places), dimensions={{{dimension}}}, is_stable=true, to_apply=before
        }}"
    )
}

/// Comparator for [`sort_of`] that is not equivalent to one key: by absolute value, equal ones by descending index.
pub const BY_SIZE_THEN_PLACE: &str = "p = f32[] abs(a)
          q = f32[] abs(b)
          less = pred[] compare(p, q), direction=LT
          same = pred[] compare(p, q), direction=EQ
          later = pred[] compare(i, j), direction=GT
          tie = pred[] and(same, later)
          ROOT r = pred[] or(less, tie)";

/// Comparator for [`sort_of`] on `c64`: by the imaginary part.
pub const BY_PART: &str = "p = f32[] imag(a)
          q = f32[] imag(b)
          ROOT r = pred[] compare(p, q), direction=LT";
