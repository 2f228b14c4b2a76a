//! Tests of wgmma matmuls: tiles of every size, every order of dimensions, edges in every direction, batches, split K,
//! and epilogues.

use super::agrees;

fn dot(ty: &str, result: &str, [x, y, z]: [&str; 3], attributes: &str) -> String {
    format!(
        "HloModule m
        ENTRY main {{
          x = {ty}[{x}] parameter(0)
          y = {ty}[{y}] parameter(1)
          ROOT r = {result}[{z}] dot(x, y), {attributes}
        }}"
    )
}

const ORDERS: [([&str; 2], &str); 4] = [
    (["M,K", "K,N"], "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    (["M,K", "N,K"], "lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
    (["K,M", "K,N"], "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
    (["K,M", "N,K"], "lhs_contracting_dims={0}, rhs_contracting_dims={1}"),
];

/// Returns a dot of M, N and K in an order of dimensions.
fn ordered((operands, attributes): ([&str; 2], &str), types: [&str; 2], [m, n, k]: [&str; 3]) -> String {
    let [x, y] = operands.map(|dims| dims.replace('M', m).replace('N', n).replace('K', k));
    dot(types[0], types[1], [&x, &y, &format!("{m},{n}")], attributes)
}

/// Returns dots with every order of dimensions, and edges everywhere.
pub(crate) fn of_every_order() -> Vec<String> {
    let mut all = Vec::new();
    for order in ORDERS {
        for sizes in [["64", "64", "64"], ["72", "136", "40"], ["200", "72", "264"], ["136", "328", "8"]] {
            all.push(ordered(order, ["bf16", "bf16"], sizes));
            all.push(ordered(order, ["f16", "f32"], sizes));
        }
    }
    // Odd numbers of rows and columns, with K contiguous.
    all.push(dot("bf16", "f32", ["131,72", "67,72", "131,67"], ORDERS[1].1));
    all.push(dot("f16", "f16", ["131,72", "72,88", "131,88"], ORDERS[0].1));
    all
}

/// Returns dots for the largest tiles, which need many of them, and for those of medium size.
pub(crate) fn of_every_size() -> Vec<String> {
    let sizes = [["1408", "3080", "72"], ["1032", "1096", "72"], ["520", "1160", "72"]];
    let both = |sizes| [ORDERS[0], ORDERS[3]].map(|order| ordered(order, ["bf16", "bf16"], sizes));
    sizes.into_iter().flat_map(both).collect()
}

/// Returns dots with batches, and with K and rows of several dimensions that collapse to one.
pub(crate) fn of_several_dimensions() -> Vec<String> {
    let batched = "lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}";
    let heads = "lhs_batch_dims={0,2}, lhs_contracting_dims={3}, rhs_batch_dims={0,2}, rhs_contracting_dims={3}";
    let values = "lhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_batch_dims={0,2}, rhs_contracting_dims={1}";
    let three = "lhs_batch_dims={0,2,4}, lhs_contracting_dims={5}, rhs_batch_dims={0,1,2}, rhs_contracting_dims={4}";
    vec![
        dot("bf16", "f32", ["3,72,48", "3,48,80", "3,72,80"], batched),
        dot("bf16", "bf16", ["2,72,3,48", "2,64,3,48", "2,3,72,64"], heads),
        dot("f16", "f16", ["2,3,72,64", "2,64,3,80", "2,3,72,80"], values),
        dot("bf16", "bf16", ["70,6,16", "6,16,72", "70,72"], "lhs_contracting_dims={1,2}, rhs_contracting_dims={0,1}"),
        dot("bf16", "f32", ["5,14,64", "64,9,8", "5,14,9,8"], "lhs_contracting_dims={2}, rhs_contracting_dims={0}"),
        // Batch dimensions that do not collapse, up to the rank of a tensor map.
        dot("bf16", "f32", ["2,8,2,8,3,16", "2,2,3,64,16", "2,2,3,8,8,64"], three),
    ]
}

/// Returns dots with split K.
pub(crate) fn of_parts() -> Vec<String> {
    let sizes = [["64", "64", "4104"], ["136", "72", "6184"]];
    ORDERS.into_iter().flat_map(|order| sizes.map(|sizes| ordered(order, ["bf16", "f32"], sizes))).collect()
}

/// Infinities in a row: the zeros beyond the edges must not be multiplied by them.
const WITH_INFINITIES: &str = include_str!("programs/with_infinities.hlo");

const WITH_EPILOGUE: &str = include_str!("programs/with_epilogue.hlo");

/// Returns dots with rows of special numbers, and with an epilogue.
pub(crate) fn with_more() -> Vec<String> {
    vec![WITH_INFINITIES.to_string(), WITH_EPILOGUE.to_string()]
}

fn all_agree(programs: &[String]) {
    programs.iter().for_each(|text| agrees(text));
}

#[test]
fn every_order_of_dimensions_and_edges_everywhere() {
    all_agree(&of_every_order());
}

#[test]
fn tiles_of_every_size() {
    all_agree(&of_every_size());
}

#[test]
fn batches_and_several_dimensions() {
    all_agree(&of_several_dimensions());
}

#[test]
fn parts_of_the_sum() {
    all_agree(&of_parts());
}

#[test]
fn special_numbers_and_what_comes_after() {
    all_agree(&with_more());
}
