//! Tests of dots and convolutions: matmul tiles of every size and element type, with prologues and epilogues.

use super::agrees;

fn dot(types: [&str; 3], dims: [&str; 3], attributes: &str) -> String {
    let ([a, b, r], [x, y, z]) = (types, dims);
    format!(
        "HloModule m
        ENTRY main {{
          x = {a}[{x}] parameter(0)
          y = {b}[{y}] parameter(1)
          ROOT r = {r}[{z}] dot(x, y), {attributes}
        }}"
    )
}

fn convolution(types: [&str; 3], dims: [&str; 3], attributes: &str) -> String {
    let ([a, b, r], [x, y, z]) = (types, dims);
    format!(
        "HloModule m
        ENTRY main {{
          x = {a}[{x}] parameter(0)
          y = {b}[{y}] parameter(1)
          ROOT r = {r}[{z}] convolution(x, y), {attributes}
        }}"
    )
}

const ROWS_BY_COLUMNS: &str = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";

#[test]
fn matmuls_of_every_element_type() {
    for ty in [
        "pred", "s4", "u4", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f8e5m2", "f16", "bf16", "f32",
        "f64", "c64", "c128",
    ] {
        agrees(&dot([ty; 3], ["70,68", "68,72", "70,72"], ROWS_BY_COLUMNS));
        agrees(&dot([ty; 3], ["67,65", "65,63", "67,63"], ROWS_BY_COLUMNS));
        agrees(&dot([ty; 3], ["5,7", "7,3", "5,3"], ROWS_BY_COLUMNS));
    }
    for types in [["f16", "f16", "f32"], ["bf16", "bf16", "f32"], ["s8", "s8", "s32"], ["f32", "f32", "f64"]] {
        agrees(&dot(types, ["64,80", "80,96", "64,96"], ROWS_BY_COLUMNS));
    }
}

#[test]
fn matmuls_of_any_order_of_dimensions() {
    let cases = [
        (["72,70", "72,68", "70,68"], "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
        (["70,72", "68,72", "70,68"], "lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
        (["72,70", "68,72", "70,68"], "lhs_contracting_dims={0}, rhs_contracting_dims={1}"),
        (
            ["3,40,48", "3,48,56", "3,40,56"],
            "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}",
        ),
        (
            ["40,3,48", "48,56,3", "3,40,56"],
            "lhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_batch_dims={2}, rhs_contracting_dims={0}",
        ),
        (
            ["2,40,3,48", "2,44,3,48", "2,3,40,44"],
            "lhs_batch_dims={0,2}, lhs_contracting_dims={3}, rhs_batch_dims={0,2}, rhs_contracting_dims={3}",
        ),
        (["5,12,7,12", "12,9,7,8", "5,12,9,8"], "lhs_contracting_dims={3,2}, rhs_contracting_dims={0,2}"),
        (["7,12,5,16", "6,7,11,12", "5,16,6,11"], "lhs_contracting_dims={0,1}, rhs_contracting_dims={1,3}"),
        (["300,200", "200", "300"], ROWS_BY_COLUMNS),
        (["4000", "4000", ""], "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
        (["30", "20", "30,20"], "lhs_contracting_dims={}, rhs_contracting_dims={}"),
        (["30,0", "0,20", "30,20"], ROWS_BY_COLUMNS),
        (["0,70", "70,20", "0,20"], ROWS_BY_COLUMNS),
    ];
    for (dims, attributes) in cases {
        agrees(&dot(["f32"; 3], dims, attributes));
        agrees(&dot(["c64"; 3], dims, attributes));
    }
    // Several matrices of tensor cores for each warp, from operands that no copies of 16 bytes can bring.
    for (dims, attributes) in [
        (["16,100", "4096,16", "100,4096"], "lhs_contracting_dims={0}, rhs_contracting_dims={1}"),
        (["100,18", "18,4095", "100,4095"], ROWS_BY_COLUMNS),
    ] {
        agrees(&dot(["bf16", "bf16", "f32"], dims, attributes));
    }
}

#[test]
fn matmuls_in_tiles_of_every_size() {
    for dims in [["16,1030", "1030,33", "16,33"], ["600,24", "24,516", "600,516"], ["2100,17", "17,1030", "2100,1030"]]
    {
        agrees(&dot(["f32"; 3], dims, ROWS_BY_COLUMNS));
    }
    agrees(&dot(["bf16"; 3], ["1024,40", "40,1040", "1024,1040"], ROWS_BY_COLUMNS));
    agrees(&dot(["f64"; 3], ["1030,18", "18,700", "1030,700"], ROWS_BY_COLUMNS));
    agrees(&dot(["c128"; 3], ["700,16", "16,700", "700,700"], ROWS_BY_COLUMNS));
}

/// Operands with rows of 16-byte multiples (multistage kernels): every order of dimensions, and edges in every
/// direction.
#[test]
fn matmuls_in_stages() {
    let orders = [
        (["M,K", "K,N"], "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
        (["M,K", "N,K"], "lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
        (["K,M", "K,N"], "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
        (["K,M", "N,K"], "lhs_contracting_dims={0}, rhs_contracting_dims={1}"),
    ];
    let sizes =
        [["64", "64", "96"], ["72", "136", "72"], ["200", "40", "40"], ["32", "264", "40"], ["264", "16", "136"]];
    for (operands, attributes) in orders {
        for [m, n, k] in sizes {
            let [x, y] = operands.map(|dims| dims.replace('M', m).replace('N', n).replace('K', k));
            let result = format!("{m},{n}");
            agrees(&dot(["bf16"; 3], [&x, &y, &result], attributes));
            agrees(&dot(["f16", "f16", "f32"], [&x, &y, &result], attributes));
        }
    }
    // Odd numbers of rows and columns, with K contiguous.
    agrees(&dot(["bf16"; 3], ["131,72", "67,72", "131,67"], orders[1].1));
    agrees(&dot(["bf16", "bf16", "f32"], ["131,72", "72,88", "131,88"], orders[0].1));
    agrees(&dot(["f16"; 3], ["40,136", "67,40", "136,67"], orders[3].1));
}

#[test]
fn matmuls_in_stages_in_batches_and_of_several_dimensions() {
    let cases = [
        (
            ["3,40,48", "3,48,56", "3,40,56"],
            "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}",
        ),
        (
            ["40,3,48", "48,3,56", "3,40,56"],
            "lhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_batch_dims={1}, rhs_contracting_dims={0}",
        ),
        (
            ["2,40,3,48", "2,44,3,48", "2,3,40,44"],
            "lhs_batch_dims={0,2}, lhs_contracting_dims={3}, rhs_batch_dims={0,2}, rhs_contracting_dims={3}",
        ),
        // K of two dimensions that collapse to one, and of two that do not.
        (["70,6,16", "6,16,72", "70,72"], "lhs_contracting_dims={1,2}, rhs_contracting_dims={0,1}"),
        (["70,6,16", "72,6,16", "70,72"], "lhs_contracting_dims={1,2}, rhs_contracting_dims={1,2}"),
        (["6,70,16", "6,16,72", "70,72"], "lhs_contracting_dims={0,2}, rhs_contracting_dims={0,1}"),
        (["70,6,16", "6,16,72", "70,72"], "lhs_contracting_dims={2,1}, rhs_contracting_dims={1,0}"),
        // Rows and columns of several dimensions.
        (["5,14,64", "64,9,8", "5,14,9,8"], "lhs_contracting_dims={2}, rhs_contracting_dims={0}"),
        (["5,48,16", "9,48,8", "5,16,9,8"], "lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
    ];
    for (dims, attributes) in cases {
        agrees(&dot(["bf16"; 3], dims, attributes));
        agrees(&dot(["f16", "f16", "f32"], dims, attributes));
    }
    // Split K.
    agrees(&dot(["bf16"; 3], ["64,4104", "4104,64", "64,64"], ROWS_BY_COLUMNS));
    agrees(&dot(["bf16"; 3], ["70,4104", "62,4104", "70,62"], "lhs_contracting_dims={1}, rhs_contracting_dims={1}"));
}

/// Not in the conformance kit, whose programs must not spill: this kernel does, for `sm_90`.
#[test]
fn matmul_with_bias_relu_and_residual() {
    agrees(include_str!("programs/matmul_with_bias_relu_and_residual.hlo"));
}

#[test]
fn convolutions_of_every_element_type() {
    let window = "window={size=3x3 pad=1_1x0_2}";
    for ty in ["pred", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f16", "bf16", "f32", "f64", "c64", "c128"]
    {
        let large = ["2,9,8,12", "3,3,12,20", "2,9,8,20"];
        agrees(&convolution([ty; 3], large, &format!("{window}, dim_labels=b01f_01io->b01f")));
        let small = ["2,3,5,6", "4,3,3,3", "2,4,5,6"];
        agrees(&convolution([ty; 3], small, &format!("{window}, dim_labels=bf01_oi01->bf01")));
    }
    for types in [["f16", "f16", "f32"], ["s8", "s8", "s32"], ["f32", "f32", "bf16"]] {
        let dims = ["2,9,8,12", "3,3,12,20", "2,9,8,20"];
        agrees(&convolution(types, dims, &format!("{window}, dim_labels=b01f_01io->b01f")));
    }
}

#[test]
fn convolutions_of_every_geometry() {
    let cases = [
        (["2,16,9,8", "20,16,3,3", "2,20,9,8"], "window={size=3x3 pad=1_1x0_2}, dim_labels=bf01_oi01->bf01"),
        (
            ["4,15,17,16", "3,2,16,24", "4,8,10,24"],
            "window={size=3x2 stride=2x2 pad=1_1x2_2}, dim_labels=b01f_01io->b01f",
        ),
        (
            ["4,8,9,16", "3,3,16,24", "4,15,19,24"],
            "window={size=3x3 pad=1_1x2_2 lhs_dilate=2x2}, dim_labels=b01f_01io->b01f",
        ),
        (
            ["4,14,15,16", "3,3,16,24", "4,11,7,24"],
            "window={size=3x3 stride=1x2 pad=1_0x2_2 rhs_dilate=2x3}, dim_labels=b01f_01io->b01f",
        ),
        (
            ["4,10,12,16", "3,3,16,24", "4,6,9,24"],
            "window={size=3x3 pad=-2_0x-1_0 rhs_reversal=1x0}, dim_labels=b01f_01io->b01f",
        ),
        (
            ["4,12,12,32", "3,3,16,48", "4,10,10,48"],
            "window={size=3x3}, dim_labels=b01f_01io->b01f, feature_group_count=2",
        ),
        (
            ["8,12,12,16", "3,3,16,40", "4,10,10,40"],
            "window={size=3x3}, dim_labels=b01f_01io->b01f, batch_group_count=2",
        ),
        (["2,9,9,6", "3,3,1,12", "2,7,7,12"], "window={size=3x3}, dim_labels=b01f_01io->b01f, feature_group_count=6"),
        (["3,200,18", "5,18,33", "3,98,33"], "window={size=5 stride=2}, dim_labels=b0f_0io->b0f"),
        (["2,6,7,8,16", "2,3,2,16,20", "2,5,5,7,20"], "window={size=2x3x2}, dim_labels=b012f_012io->b012f"),
        (["64,72", "72,80", "64,80"], "dim_labels=bf_io->bf"),
        (["16,10,12,4", "16,24,3,3", "24,8,10,4"], "window={size=3x3}, dim_labels=f01b_io01->f01b"),
        (["2,0,8,12", "3,3,12,20", "2,1,6,20"], "window={size=3x3 pad=3_0x0_0}, dim_labels=b01f_01io->b01f"),
        (["2,8,8,0", "3,3,0,20", "2,6,6,20"], "window={size=3x3}, dim_labels=b01f_01io->b01f"),
    ];
    for (dims, attributes) in cases {
        agrees(&convolution(["f32"; 3], dims, attributes));
    }
}

#[test]
fn skinny_matmuls_of_every_element_type() {
    let columns = "lhs_contracting_dims={1}, rhs_contracting_dims={1}";
    for ty in ["pred", "s8", "u16", "s32", "s64", "f8e5m2", "f16", "bf16", "f32", "f64", "c64", "c128"] {
        // The larger operand is contiguous along the columns, and along K; either operand is the smaller one.
        agrees(&dot([ty; 3], ["3,512", "512,264", "3,264"], ROWS_BY_COLUMNS));
        agrees(&dot([ty; 3], ["3,512", "264,512", "3,264"], columns));
        agrees(&dot([ty; 3], ["264,512", "512,2", "264,2"], ROWS_BY_COLUMNS));
    }
    for types in [["f16", "f16", "f32"], ["bf16", "bf16", "f32"], ["s8", "s8", "s32"], ["bf16", "f32", "f32"]] {
        agrees(&dot(types, ["1,1024", "1024,512", "1,512"], ROWS_BY_COLUMNS));
        agrees(&dot(types, ["1,1024", "512,1024", "1,512"], columns));
    }
}

#[test]
fn skinny_matmuls_of_every_size() {
    for few in [1, 2, 5, 8, 15] {
        for (depth, many) in [(64, 4096), (1031, 257), (520, 1031), (4096, 64), (4098, 66), (20000, 16)] {
            let dims = [format!("{few},{depth}"), format!("{depth},{many}"), format!("{few},{many}")];
            agrees(&dot(["f32"; 3], [&dims[0], &dims[1], &dims[2]], ROWS_BY_COLUMNS));
            let turned = format!("{many},{depth}");
            let attributes = "lhs_contracting_dims={1}, rhs_contracting_dims={1}";
            agrees(&dot(["bf16", "bf16", "f32"], [&dims[0], &turned, &dims[2]], attributes));
        }
    }
    agrees(&dot(["f32"; 3], ["500,600", "600", "500"], ROWS_BY_COLUMNS));
    agrees(&dot(["f32"; 3], ["600", "600,500", "500"], "lhs_contracting_dims={0}, rhs_contracting_dims={0}"));
}

#[test]
fn split_k_matmuls_of_every_element_type() {
    let columns = "lhs_contracting_dims={1}, rhs_contracting_dims={1}";
    for ty in ["pred", "s4", "u8", "s16", "s32", "u64", "f8e5m2", "f16", "bf16", "f32", "f64", "c64", "c128"] {
        // Tiles; then operands contiguous along K, and along the columns.
        agrees(&dot([ty; 3], ["18,2100", "2100,20", "18,20"], ROWS_BY_COLUMNS));
        agrees(&dot([ty; 3], ["2,32768", "4,32768", "2,4"], columns));
        agrees(&dot([ty; 3], ["2,32768", "32768,4", "2,4"], ROWS_BY_COLUMNS));
    }
    for types in [["f16", "f16", "f32"], ["bf16", "bf16", "f32"], ["s8", "s8", "s32"], ["bf16", "f32", "f32"]] {
        agrees(&dot(types, ["16,2200", "2200,32", "16,32"], ROWS_BY_COLUMNS));
        agrees(&dot(types, ["1,65536", "4,65536", "1,4"], columns));
    }
}

#[test]
fn split_k_matmuls_of_every_size() {
    for (rows, depth, columns) in
        [(16, 513, 64), (33, 1031, 17), (130, 1000, 20), (64, 2048, 64), (3, 40001, 3), (1, 300_000, 1), (15, 9000, 2)]
    {
        let dims = [format!("{rows},{depth}"), format!("{depth},{columns}"), format!("{rows},{columns}")];
        agrees(&dot(["f32"; 3], [&dims[0], &dims[1], &dims[2]], ROWS_BY_COLUMNS));
        let turned = [format!("{depth},{rows}"), format!("{columns},{depth}"), dims[2].clone()];
        let attributes = "lhs_contracting_dims={0}, rhs_contracting_dims={1}";
        agrees(&dot(["bf16", "bf16", "f32"], [&turned[0], &turned[1], &turned[2]], attributes));
    }
    agrees(&dot(["f32"; 3], ["270000", "270000", ""], "lhs_contracting_dims={0}, rhs_contracting_dims={0}"));
    let batched = "lhs_batch_dims={1}, lhs_contracting_dims={0,2}, rhs_batch_dims={0}, rhs_contracting_dims={1,3}";
    agrees(&dot(["f32"; 3], ["40,3,50,18", "3,40,20,50", "3,18,20"], batched));
    agrees(&dot(["bf16"; 3], ["80,3,128,2", "3,80,5,128", "3,2,5"], batched));
}

#[test]
fn what_comes_before_and_after_a_split_k_matmul() {
    for (rows, depth, columns) in [(24, 1500, 32), (4, 33000, 8)] {
        agrees(&format!(
            "HloModule m
            ENTRY main {{
              x = bf16[{depth},{rows}] parameter(0)
              w = s8[{depth},{columns}] parameter(1)
              bias = f32[{columns}] parameter(2)
              res = bf16[{rows},{columns}] parameter(3)
              v = bf16[{depth},{columns}] convert(w)
              y = bf16[{depth},{rows}] negate(x)
              d = f32[{rows},{columns}] dot(y, v), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
              b = f32[{rows},{columns}] broadcast(bias), dimensions={{1}}
              biased = f32[{rows},{columns}] add(d, b)
              add = f32[{rows},{columns}] convert(res)
              sum = f32[{rows},{columns}] add(biased, add)
              out = bf16[{rows},{columns}] convert(sum)
              ROOT r = (f32[{rows},{columns}], bf16[{rows},{columns}]) tuple(biased, out)
            }}"
        ));
    }
}

#[test]
fn gradients_of_filters_in_parts() {
    // Few channels, and a window over whole images.
    agrees(&convolution(
        ["f32"; 3],
        ["8,20,20,16", "8,18,18,32", "3,3,16,32"],
        "window={size=18x18}, dim_labels=f01b_i01o->01bf",
    ));
}

#[test]
fn skinny_matmuls_in_batches_and_of_several_dimensions() {
    let batched = "lhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_batch_dims={0,1}, rhs_contracting_dims={3}";
    agrees(&dot(["f32"; 3], ["2,3,1,64", "2,3,300,64", "2,3,1,300"], batched));
    let mixed = "lhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_batch_dims={0,1}, rhs_contracting_dims={2}";
    agrees(&dot(["bf16", "bf16", "f32"], ["2,3,4,300", "2,3,300,64", "2,3,4,64"], mixed));
    let inner = "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={2}, rhs_contracting_dims={1}";
    agrees(&dot(["f32"; 3], ["3,2,700", "70,700,3", "3,2,70"], inner));
    agrees(&dot(
        ["f32"; 3],
        ["2,2,20,12", "20,12,5,40", "2,2,5,40"],
        "lhs_contracting_dims={2,3}, rhs_contracting_dims={0,1}",
    ));
    agrees(&dot(
        ["f32"; 3],
        ["2,2,12,20", "20,5,40,12", "2,2,5,40"],
        "lhs_contracting_dims={3,2}, rhs_contracting_dims={0,3}",
    ));
}
