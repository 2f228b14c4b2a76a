//! Every collective, for every element type, agrees with the lock-step evaluator.

use std::sync::Arc;

use xla_hlo::eval::grid::{self, Grid};
use xla_hlo::{ElementType, Literal, Result};
use xla_service::collective::CollectiveSpec;

use crate::cases::{Case, KINDS, Kind, accumulators, is_same_array, operations};
use crate::support::{Member, Random, execute};

fn check_random(kind: Kind, ty: ElementType, seed: u64) {
    let random = &mut Random(seed);
    let case = Case::random(kind, ty, random);
    check(&case, ty, random);
}

fn check(case: &Case, ty: ElementType, random: &mut Random) {
    check_with(case, ty, random, execute);
}

/// Executes a collective for each group of a case. Returns the results of each member.
pub type Execute = fn(&Arc<CollectiveSpec>, &[Member], &mut Random) -> Result<Vec<Vec<Vec<u8>>>>;

/// Checks that `execute` agrees with the evaluator.
pub fn check_with(case: &Case, ty: ElementType, random: &mut Random, execute: Execute) {
    let devices = Grid::of(&case.module).unwrap().device_count();
    let shapes = case.parameters();
    let mut argument = |number: usize| case.argument(number, &shapes[number], random);
    let arguments: Vec<Vec<Literal>> = (0..devices).map(|_| (0..shapes.len()).map(&mut argument).collect()).collect();
    let expected = grid::evaluate(&case.module, arguments.clone()).unwrap();
    for group in &case.groups {
        let members: Vec<_> = group.iter().map(|&device| case.member(&arguments[device])).collect();
        let results = execute(&case.spec(group.len()), &members, random).unwrap();
        for (&device, results) in group.iter().zip(&results) {
            let leaves = expected[device].leaves();
            assert_eq!(leaves.len(), results.len());
            for (leaf, result) in leaves.iter().zip(results) {
                let text = || format!("device {device}: {leaf:?} but {result:?}\n{}", *case.module);
                assert!(is_same_array(case, ty, leaf.bytes(), result), "{}", text());
            }
        }
    }
}

#[test]
fn every_collective_of_every_type_agrees_with_the_evaluator() {
    for (i, &kind) in KINDS.iter().enumerate() {
        for (t, &ty) in ElementType::ALL.iter().enumerate() {
            for seed in 0..3 {
                check_random(kind, ty, seed + 1000 * t as u64 + 100_000 * i as u64);
            }
        }
    }
}

/// Checks reductions of every element type, accumulator and operation.
pub fn check_reductions(execute: Execute) {
    let random = &mut Random(7);
    for &ty in ElementType::ALL {
        for accumulator in accumulators(ty) {
            for operation in operations(accumulator) {
                check_with(&Case::reduction(ty, accumulator, operation), ty, random, execute);
            }
        }
    }
}

#[test]
fn reductions_of_every_type_agree_with_the_evaluator() {
    check_reductions(execute);
}

#[test]
fn groups_of_every_kind_and_size_agree_with_the_evaluator() {
    for (i, &kind) in KINDS.iter().enumerate() {
        for seed in 0..30 {
            check_random(kind, ElementType::F32, 9_000_000 + seed + 1000 * i as u64);
        }
    }
}
