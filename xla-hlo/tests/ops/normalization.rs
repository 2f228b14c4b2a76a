//! Tests of the normalization family: comparison with XLA's numbers, every float type, and edge cases.

use ElementType::{BF16, F32, F64, S32};
use xla_hlo::ops::{BatchNorm, BatchNormKind, Epsilon};
use xla_hlo::{ElementType, Literal};

use crate::testing::{array, assert_near, assert_refused, numbers, printed_root, run, run_text};

fn op(kind: BatchNormKind, feature_index: usize) -> BatchNorm {
    BatchNorm { kind, epsilon: Epsilon::new(0.001), feature_index }
}

fn x(ty: ElementType) -> Literal {
    array(ty, &[3, 2], &[1.0, 2.0, 3.0, 6.0, 5.0, -1.0])
}

fn vector(ty: ElementType, values: &[f64]) -> Literal {
    array(ty, &[values.len()], values)
}

#[test]
fn training_is_that_of_xla() {
    let text = include_str!("programs/training_is_that_of_xla.hlo");
    let result = run_text(text, &[x(F32), vector(F32, &[2.0, 0.5]), vector(F32, &[1.0, -1.0])]).unwrap();
    let expected: [&[f64]; 3] =
        [&[-1.4490304, -1.0581203, 1.0, -0.36067694, 3.4490304, -1.5812027], &[3.0, 2.3333335], &[2.666667, 8.222222]];
    for (found, expected) in result.elements().iter().zip(expected) {
        assert_near("training", &numbers(found), expected, 1e-6);
    }
}

#[test]
fn inference_is_that_of_xla() {
    let statistics = [vector(F32, &[3.0, 7.0 / 3.0]), vector(F32, &[8.0 / 3.0, 74.0 / 9.0])];
    let operands = [vec![x(F32), vector(F32, &[2.0, 0.5]), vector(F32, &[1.0, -1.0])], statistics.to_vec()].concat();
    let result = run(|_| op(BatchNormKind::Inference, 1), None, &operands).unwrap();
    let expected = [-1.4490304, -1.0581203, 1.0, -0.36067694, 3.4490304, -1.5812027];
    assert_near("inference", &numbers(&result), &expected, 1e-6);
}

#[test]
fn gradients_are_those_of_xla() {
    let operands = [
        x(F32),
        vector(F32, &[2.0, 0.5]),
        vector(F32, &[3.0, 7.0 / 3.0]),
        vector(F32, &[8.0 / 3.0, 74.0 / 9.0]),
        array(F32, &[3, 2], &[1.0, 0.0, 0.5, 2.0, -1.0, 1.0]),
    ];
    let result = run(|_| op(BatchNormKind::Grad, 1), None, &operands).unwrap();
    let expected: [&[f64]; 3] = [
        &[-0.20362684, -0.16493708, 0.40817177, 0.07069944, -0.20454493, 0.09423763],
        &[-2.4490306, 1.3948867],
        &[0.5, 3.0],
    ];
    for (found, expected) in result.elements().iter().zip(expected) {
        assert_near("gradients", &numbers(found), expected, 1e-6);
    }
}

#[test]
fn every_float_type_is_normalised_along_every_dimension() {
    for &ty in ElementType::ALL.iter().filter(|ty| ty.is_float()) {
        for feature_index in 0..3 {
            let values: Vec<f64> = (0..24).map(|i| f64::from(i % 3)).collect();
            let features = [2, 3, 4][feature_index];
            let ones = vector(ty, &vec![1.0; features]);
            let operands = [array(ty, &[2, 3, 4], &values), ones.clone(), ones];
            let result = run(|_| op(BatchNormKind::Training, feature_index), None, &operands).unwrap();
            assert_eq!(result.elements()[0].array_shape().dims(), [2, 3, 4], "{ty}");
            assert_eq!(result.elements()[1].array_shape().dims(), [features], "{ty}");
        }
    }
}

#[test]
fn edges() {
    let none = [array(F32, &[0, 2], &[]), vector(F32, &[1.0, 1.0]), vector(F32, &[0.0, 0.0])];
    let result = run(|_| op(BatchNormKind::Training, 1), None, &none).unwrap();
    assert_near("mean of nothing", &numbers(&result.elements()[1]), &[f64::NAN; 2], 0.0);
    let no_features = [array(F32, &[3, 0], &[]), vector(F32, &[]), vector(F32, &[])];
    let result = run(|_| op(BatchNormKind::Training, 1), None, &no_features).unwrap();
    assert_eq!(result.elements()[2].array_shape().dims(), [0]);
    let nan = [array(F64, &[2, 2], &[f64::NAN, 1.0, 2.0, 3.0]), vector(F64, &[1.0; 2]), vector(F64, &[0.0; 2])];
    let result = run(|_| op(BatchNormKind::Training, 1), None, &nan).unwrap();
    assert_near("one feature has a NaN", &numbers(&result.elements()[1]), &[f64::NAN, 2.0], 0.0);
}

#[test]
fn statistics_may_be_of_another_precision() {
    let text = include_str!("programs/statistics_may_be_of_another_precision.hlo");
    let result = run_text(text, &[x(BF16), vector(F32, &[1.0, 1.0]), vector(F32, &[0.0, 0.0])]).unwrap();
    assert_near("mean", &numbers(&result.elements()[1]), &[3.0, 7.0 / 3.0], 1e-7);
}

#[test]
fn epsilons_print_as_they_are_read() {
    let root = |epsilon: &str| {
        printed_root(&format!(
            "ENTRY e {{ x = f32[3,2] parameter(0)\n s = f32[2] parameter(1)\n o = f32[2] parameter(2)\n \
            ROOT r = (f32[3,2],f32[2],f32[2]) batch-norm-training(x, s, o), epsilon={epsilon}, feature_index=1 }}"
        ))
    };
    for epsilon in ["0.001", "1e-05", "1", "0", "1e+10", "0.1", "0.123456791", "9.99995e-41"] {
        let printed = root(epsilon);
        assert!(printed.ends_with(&format!("epsilon={epsilon}, feature_index=1")), "{printed}");
    }
}

#[test]
fn broken_rules_are_named() {
    let (two, three) = (vector(F32, &[1.0; 2]), vector(F32, &[1.0; 3]));
    type Case = (BatchNormKind, usize, Vec<Literal>, &'static str);
    let cases: Vec<Case> = vec![
        (BatchNormKind::Training, 2, vec![x(F32), two.clone(), two.clone()], "feature_index 2 is not a dimension"),
        (BatchNormKind::Training, 1, vec![x(S32), two.clone(), two.clone()], "operand 0 must have float elements"),
        (BatchNormKind::Training, 1, vec![x(F32), three.clone(), two.clone()], "the scale must be a vector of the 2"),
        (
            BatchNormKind::Inference,
            0,
            vec![x(F32), three.clone(), three.clone(), two.clone(), three.clone()],
            "the mean",
        ),
        (BatchNormKind::Grad, 1, vec![x(F32), two.clone(), two.clone(), two.clone(), two.clone()], "the gradient must"),
    ];
    for (kind, feature_index, operands, message) in cases {
        assert_refused(message, run(|_| op(kind, feature_index), None, &operands), message);
    }
}
