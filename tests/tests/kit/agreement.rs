//! Tolerances of agreement with the evaluator.

use xla_hlo::Scalar;
use xla_service::interpreter;
use xla_tests::agreement::{assert_agrees, is_close};

#[test]
fn what_is_close() {
    let float = Scalar::Float;
    assert!(is_close(float(1.000001), float(1.0)) && !is_close(float(1.0001), float(1.0)));
    assert!(is_close(float(f64::NAN), float(-f64::NAN)) && !is_close(float(f64::NAN), float(1.0)));
    assert!(is_close(float(-0.0), float(-0.0)) && !is_close(float(-0.0), float(0.0)));
    assert!(is_close(float(f64::INFINITY), float(f64::INFINITY)));
    assert!(!is_close(float(f64::INFINITY), float(1.0)) && !is_close(float(1.0), float(f64::INFINITY)));
    let complex = Scalar::Complex;
    assert!(is_close(complex(100.0, 0.0), complex(100.0, 1e-4)) && !is_close(complex(0.0, 0.0), complex(0.0, 1e-4)));
    assert!(is_close(complex(f64::INFINITY, f64::NAN), complex(f64::INFINITY, f64::NAN)));
    assert!(is_close(complex(1.0, 0.0), complex(1.0, -0.0)) && !is_close(complex(1.0, f64::NAN), complex(1.0, 0.0)));
    assert!(!is_close(Scalar::Signed(1), Scalar::Signed(2)));
}

#[test]
fn the_evaluator_agrees_with_itself() {
    assert_agrees(interpreter::platform(), "ENTRY e { x = bf16[3,2] parameter(0) ROOT r = bf16[3,2] sine(x) }");
}
