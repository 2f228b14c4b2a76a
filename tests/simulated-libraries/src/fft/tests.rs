//! Tests of cuFFT calls that are refused, and of their status codes.

use super::plan::FftPlan;
use super::{Fft, Status};

const C2C: u32 = 0x29;
const R2C: u32 = 0x2a;
const C2R: u32 = 0x2c;

fn status<T: std::fmt::Debug>(answer: Fft<T>) -> Status {
    answer.unwrap_err().status
}

/// Returns a plan whose work area the caller provides.
fn made(sizes: &[i64], number: u32) -> FftPlan {
    let mut plan = FftPlan::default();
    plan.set_auto_allocation(false).unwrap();
    plan.make(sizes, number, 3).unwrap();
    plan
}

#[test]
fn plans_are_made_once_and_before_they_are_used() {
    let mut plan = FftPlan::default();
    assert_eq!(status(plan.checked(C2C, 64, 128)), Status::INVALID_PLAN);
    assert_eq!(status(plan.set_work_area(64)), Status::INVALID_PLAN);
    assert_eq!(status(plan.make(&[4], 7, 1)), Status::INVALID_TYPE);
    assert_eq!(status(plan.make(&[2; 4], C2C, 1)), Status::INVALID_VALUE);
    assert_eq!(status(plan.make(&[4, 0], C2C, 1)), Status::INVALID_SIZE);
    assert_eq!(status(plan.make(&[4], C2C, 0)), Status::INVALID_SIZE);
    assert_eq!(status(plan.make(&[1 << 40], C2C, 1)), Status::INVALID_SIZE);
    assert_eq!(plan.make(&[4, 6], R2C, 2).unwrap(), 2 * 4 * 4 * 8);
    assert_eq!(status(plan.make(&[4, 6], R2C, 2)), Status::INVALID_PLAN);
    assert_eq!(status(plan.set_auto_allocation(false)), Status::INVALID_PLAN);
}

#[test]
fn arrays_and_memory_are_there() {
    let mut plan = made(&[6], C2C);
    assert_eq!(status(plan.checked(C2C, 0x1000, 0x2000)), Status::NO_WORKSPACE);
    plan.set_work_area(0x3008).unwrap();
    assert_eq!(status(plan.checked(C2C, 0x1000, 0x2000)), Status::UNALIGNED_DATA);
    plan.set_work_area(0x2010).unwrap();
    assert_eq!(status(plan.checked(C2C, 0x1000, 0x2000)), Status::INVALID_VALUE, "the memory is in the output");
    plan.set_work_area(0x3000).unwrap();
    plan.checked(C2C, 0x1000, 0x2000).unwrap();
    plan.checked(C2C, 0x1000, 0x1000).unwrap();
    assert_eq!(status(plan.checked(R2C, 0x1000, 0x2000)), Status::INVALID_TYPE);
    assert_eq!(status(plan.checked(C2C, 0x1004, 0x2000)), Status::UNALIGNED_DATA);
    assert_eq!(status(plan.checked(C2C, 0, 0x2000)), Status::INVALID_VALUE);
    assert_eq!(status(plan.checked(C2C, 0x1000, 0x1010)), Status::INVALID_VALUE, "arrays overlap");
    assert_eq!(status(made(&[8], C2R).checked(C2R, 0x1000, 0x1000)), Status::NOT_SUPPORTED, "in place");
}
