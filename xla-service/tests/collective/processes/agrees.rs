//! Collectives of several processes agree with the lock-step evaluator.

use xla_hlo::ElementType;

use super::cluster::execute;
use crate::agrees::{check_reductions, check_with};
use crate::cases::{Case, KINDS};
use crate::support::Random;

#[test]
fn every_collective_of_every_type_agrees_with_the_evaluator() {
    for (i, &kind) in KINDS.iter().enumerate() {
        for (t, &ty) in ElementType::ALL.iter().enumerate() {
            let random = &mut Random(50_000_000 + 1000 * t as u64 + 100_000 * i as u64);
            check_with(&Case::random(kind, ty, random), ty, random, execute);
        }
    }
}

#[test]
fn groups_of_every_kind_and_size_agree_with_the_evaluator() {
    for (i, &kind) in KINDS.iter().enumerate() {
        for seed in 0..12 {
            let random = &mut Random(60_000_000 + seed + 1000 * i as u64);
            check_with(&Case::random(kind, ElementType::F32, random), ElementType::F32, random, execute);
        }
    }
}

#[test]
fn reductions_of_every_type_agree_with_the_evaluator() {
    check_reductions(execute);
}
