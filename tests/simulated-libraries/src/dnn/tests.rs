//! Tests of cuDNN calls that are refused, and of their status codes.

use super::descriptors::{ConvolutionDescriptor, FilterDescriptor, TensorDescriptor};
use super::rules::{Convolution, ConvolutionKind};
use super::{Dnn, Status};

const FLOAT: u32 = 0;
const DOUBLE: u32 = 1;
const HALF: u32 = 2;
const NCHW: u32 = 0;
const NHWC: u32 = 1;
const CROSS_CORRELATION: u32 = 1;

/// A layer of 2 images of 3 channels, 5 by 6, with 4 filters of 3 by 3 and one zero on each side.
fn layer(channels_last: bool) -> Convolution {
    let strides = |channels: i32| {
        if channels_last { [30 * channels, 1, 6 * channels, channels] } else { [30 * channels, 30, 6, 1] }
    };
    Convolution {
        kind: ConvolutionKind::Forward,
        input: TensorDescriptor::new(FLOAT, &[2, 3, 5, 6], &strides(3)).unwrap(),
        filter: FilterDescriptor::new(FLOAT, if channels_last { NHWC } else { NCHW }, &[4, 3, 3, 3]).unwrap(),
        output: TensorDescriptor::new(FLOAT, &[2, 4, 5, 6], &strides(4)).unwrap(),
        operation: ConvolutionDescriptor::new(&[1, 1], &[1, 1], &[1, 1], CROSS_CORRELATION, FLOAT).unwrap(),
    }
}

fn status<T: std::fmt::Debug>(answer: Dnn<T>) -> Status {
    answer.unwrap_err().status
}

#[test]
fn descriptions_have_bounds() {
    assert_eq!(
        status(TensorDescriptor::new(FLOAT, &[2, 3, 5], &[15, 5, 1])),
        Status::NOT_SUPPORTED,
        "three dimensions"
    );
    assert_eq!(status(TensorDescriptor::new(FLOAT, &[2, 3, 5, 0], &[15, 5, 1, 1])), Status::BAD_PARAM);
    assert_eq!(status(TensorDescriptor::new(77, &[1; 4], &[1; 4])), Status::NOT_SUPPORTED);
    let large = TensorDescriptor::new(FLOAT, &[2, 1, 1, 1], &[i32::MAX, 1, 1, 1]);
    assert!(large.is_ok());
    assert_eq!(status(TensorDescriptor::new(FLOAT, &[3, 1, 1, 1], &[i32::MAX, 1, 1, 1])), Status::NOT_SUPPORTED);
    assert_eq!(status(FilterDescriptor::new(FLOAT, 2, &[1; 4])), Status::NOT_SUPPORTED);
    assert_eq!(status(FilterDescriptor::new(FLOAT, NCHW, &[1, 1, -1])), Status::BAD_PARAM);
    assert_eq!(
        status(ConvolutionDescriptor::new(&[-1, 0], &[1, 1], &[1, 1], CROSS_CORRELATION, FLOAT)),
        Status::BAD_PARAM
    );
    assert_eq!(
        status(ConvolutionDescriptor::new(&[0, 0], &[0, 1], &[1, 1], CROSS_CORRELATION, FLOAT)),
        Status::BAD_PARAM
    );
    assert_eq!(
        status(ConvolutionDescriptor::new(&[0, 0], &[1, 1], &[1, 0], CROSS_CORRELATION, FLOAT)),
        Status::BAD_PARAM
    );
    let mut operation = layer(false).operation;
    assert_eq!(status(operation.set_groups(0)), Status::BAD_PARAM);
    assert_eq!(status(operation.set_math(4)), Status::BAD_PARAM);
}

#[test]
fn sizes_and_types_fit_to_each_other() {
    layer(false).check(90).unwrap();
    let told = |change: &dyn Fn(&mut Convolution)| {
        let mut layer = layer(false);
        change(&mut layer);
        status(layer.check(90))
    };
    assert_eq!(told(&|l| l.operation.padding[0] = 0), Status::SHAPE_MISMATCH);
    assert_eq!(told(&|l| l.operation.groups = 2), Status::SHAPE_MISMATCH);
    assert_eq!(told(&|l| l.operation.padding.push(0)), Status::SHAPE_MISMATCH);
    assert_eq!(told(&|l| l.filter.sizes[2] = 9), Status::SHAPE_MISMATCH);
    assert_eq!(told(&|l| l.output.sizes[0] = 1), Status::SHAPE_MISMATCH);
    let half = |l: &mut Convolution| l.input = TensorDescriptor::new(HALF, &[2, 3, 5, 6], &[90, 30, 6, 1]).unwrap();
    assert_eq!(told(&half), Status::NOT_SUPPORTED);
    let double = ConvolutionDescriptor::new(&[1, 1], &[1, 1], &[1, 1], CROSS_CORRELATION, DOUBLE).unwrap();
    assert_eq!(told(&|l| l.operation = double.clone()), Status::NOT_SUPPORTED);
}

#[test]
fn algorithms_have_limits() {
    let algorithms = |layer: &Convolution| (0..8).filter(|number| layer.workspace(*number).is_ok()).collect::<Vec<_>>();
    let mut first = layer(false);
    assert_eq!(algorithms(&first), [0, 1, 2]);
    assert_eq!(first.workspace(6).unwrap_err().sentence, None, "asking is no mistake");
    first.operation.dilation = vec![2, 1];
    assert_eq!(algorithms(&first), [0]);
    let mut last = layer(true);
    assert_eq!(algorithms(&last), [0, 1]);
    last.input.strides = vec![90, 30, 6, 1];
    assert_eq!(algorithms(&last), [0; 0], "one order of dimensions for all");
    first.kind = ConvolutionKind::BackwardData;
    assert_eq!(algorithms(&first), [0, 1]);
}
