//! Tests of wgmma programs, on GPUs that support it, against the evaluator.

use xla_hlo::ElementType;
use xla_tests::agreement::assert_agrees;

use super::client;
use crate::agrees::attention::{Case, agrees_on, error, with_edges};
use crate::agrees::warp_groups;

fn agree(programs: Vec<String>) {
    if client().is_some() {
        programs.iter().for_each(|text| assert_agrees(backend_gpu_nvptx::platform(), text));
    }
}

#[test]
fn products_of_every_order_and_batch() {
    agree(warp_groups::of_every_order());
    agree(warp_groups::of_several_dimensions());
    agree(warp_groups::with_more());
}

#[test]
fn products_in_parts() {
    agree(warp_groups::of_parts());
}

#[test]
fn attention() {
    if client().is_none() {
        return;
    }
    let agrees = |text: &str, ty: ElementType| agrees_on(backend_gpu_nvptx::platform(), text, |_| 2.0 * error(ty));
    for (name, ty) in [("bf16", ElementType::BF16), ("f16", ElementType::F16)] {
        agrees(&Case::new(name, [2, 100, 72, 64, 64]).text(), ty);
        agrees(&Case::causal(name, [1, 130, 130, 96, 48], "-inf").text(), ty);
        agrees(&Case::new(name, [1, 64, 300, 16, 256]).text(), ty);
        agrees(&with_edges(&Case::causal(name, [2, 136, 136, 32, 128], "-inf")), ty);
    }
    // Enough blocks for two warp groups in each.
    agrees(&Case::causal("bf16", [130, 128, 128, 64, 64], "-inf").text(), ElementType::BF16);
}
