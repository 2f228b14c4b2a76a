//! Random programs mean the same to the evaluator, after the passes, and on the CPU.
//!
//! `XLA_TESTS_GRAPHS=10000` tries so many programs of each family instead of the usual number, `XLA_TESTS_SEED=5000` begins with
//! another seed, and `XLA_TESTS_ONE=movement:17` tries that one alone. Each family is a test, so that they run side by side.

use std::num::NonZeroUsize;

use xla::CompileOptions;
use xla_tests::differential::{Differential, Failure};
use xla_tests::generate::{Family, program};
use xla_tests::program::Program;
use xla_tests::shrink::shrink;

/// Programs of each family: 2,400 in all.
const GRAPHS: u64 = 300;
/// No more failures are shrunk.
const MOST_FAILURES: usize = 5;

fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

fn number(name: &str) -> Option<u64> {
    setting(name).map(|text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number")))
}

/// The seeds to try of a family.
fn seeds(family: Family) -> Vec<u64> {
    if let Some(one) = setting("XLA_TESTS_ONE") {
        let (name, seed) = one.split_once(':').expect("XLA_TESTS_ONE is FAMILY:SEED");
        let of_family = Family::from_name(name).expect("XLA_TESTS_ONE names a family") == family;
        return if of_family { vec![seed.parse().expect("XLA_TESTS_ONE ends with a number")] } else { Vec::new() };
    }
    let first = number("XLA_TESTS_SEED").unwrap_or(0);
    (first..first + number("XLA_TESTS_GRAPHS").unwrap_or(GRAPHS)).collect()
}

/// The CPU with one thread, and with two.
fn platforms() -> [Differential; 2] {
    let registry = xla::registry();
    [1, 2].map(|threads| {
        let options = CompileOptions { threads: NonZeroUsize::new(threads), ..CompileOptions::default() };
        Differential::new(&registry, "cpu", options).expect("the CPU is there")
    })
}

fn check(family: Family) {
    let platforms = platforms();
    let seeds = seeds(family);
    let mut failures = Vec::new();
    let mut instructions = 0;
    for &seed in &seeds {
        let program = program(family, seed);
        instructions += program.module.instruction_count();
        let platform = &platforms[(seed % 2) as usize];
        let failure =
            platform.failure(&program).unwrap_or_else(|e| panic!("{}:{seed} is no program: {e}", family.name()));
        if let Some(failure) = failure {
            println!("{}", describe(family, seed, platform, &program, &failure));
            failures.push(seed);
            if failures.len() == MOST_FAILURES {
                break;
            }
        }
    }
    println!("{}: {} programs, {instructions} instructions", family.name(), seeds.len());
    assert!(failures.is_empty(), "{} programs of seeds {failures:?} fail", family.name());
}

/// The failure, and the smallest program that fails like it.
fn describe(family: Family, seed: u64, platform: &Differential, program: &Program, failure: &Failure) -> String {
    let same =
        |candidate: &Program| matches!(platform.failure(candidate), Ok(Some(other)) if other.kind == failure.kind);
    let small = shrink(program, &same);
    let (again, text) = (platform.failure(&small), small.to_text());
    let smaller = again.ok().flatten().map_or(String::new(), |f| f.message);
    let optimized = platform.optimized(&small).unwrap_or_else(|e| e.to_string());
    let name = family.name();
    format!(
        "XLA_TESTS_ONE={name}:{seed} fails ({:?}): {}\nshrunk: {smaller}\n{text}\nafter passes:\n{optimized}\n",
        failure.kind, failure.message
    )
}

#[test]
fn elementwise() {
    check(Family::Elementwise);
}

#[test]
fn movement() {
    check(Family::Movement);
}

#[test]
fn reduction() {
    check(Family::Reduction);
}

#[test]
fn window() {
    check(Family::Window);
}

#[test]
fn dot() {
    check(Family::Dot);
}

#[test]
fn indexing() {
    check(Family::Indexing);
}

#[test]
fn control() {
    check(Family::Control);
}

#[test]
fn mixed() {
    check(Family::Mixed);
}
