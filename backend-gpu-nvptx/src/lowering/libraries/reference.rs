//! Reference implementations of library calls: plain loops, by their documentation, for tests of recognition.

use xla_hlo::eval::evaluate;
use xla_hlo::text::parse_module;
use xla_hlo::{ArrayShape, Literal, Module, Op, Scalar, VerifiedModule};

use super::RecognizedCall;
use crate::cuda::library::tests::{Moved, results};
use crate::program::library_call::LibraryCall;
use crate::program::library_call::convolution::{Convolution, ConvolutionKind};
use crate::program::library_call::fourier::{Fourier, FourierKind};

/// Computes a call on its operands.
fn call(call: &LibraryCall, [lhs, rhs]: [&[f64]; 2], size: usize) -> Vec<f64> {
    let mut result = vec![0.0; size];
    match call {
        LibraryCall::Matmul(matmul) => matmul.by_loops(lhs, rhs, &mut result),
        LibraryCall::Convolution(layer) => convolution(layer, lhs, rhs, &mut result),
        LibraryCall::Fourier(_) => panic!("a transform has one operand"),
    }
    result
}

/// Computes `y[n, k, p] += x[n, c, p * stride + r * dilation - padding] w[k, c, r]` for all elements inside of `x`,
/// where `c` counts the channels of the group of `k`. A gradient accumulates into `x` or `w` instead of `y`.
fn convolution(layer: &Convolution, lhs: &[f64], rhs: &[f64], result: &mut [f64]) {
    let sizes = layer.sizes().expect("a call that was checked");
    let (per_group, outputs) = (sizes.filter[1], sizes.output[1] / sizes.groups);
    let bounds: Vec<i32> = [&sizes.output[..], &sizes.filter[1..]].concat();
    for index in indices(&bounds) {
        let (y, rest) = index.split_at(sizes.output.len());
        let (c, r) = (rest[0], &rest[1..]);
        let mut x = vec![y[0], y[1] / outputs * per_group + c];
        x.extend((0..r.len()).map(|d| y[2 + d] * sizes.stride[d] + r[d] * sizes.dilation[d] - sizes.padding[d]));
        if x.iter().zip(&sizes.input).any(|(&at, &size)| at < 0 || at >= size) {
            continue;
        }
        let w = [&[y[1], c], r].concat();
        let [x, w, y] = [(&x[..], &sizes.input_strides), (&w, &sizes.filter_strides), (y, &sizes.output_strides)]
            .map(|(at, strides)| at.iter().zip(strides).map(|(&i, &stride)| (i * stride) as usize).sum::<usize>());
        match layer.kind {
            ConvolutionKind::Forward => result[y] += lhs[x] * rhs[w],
            ConvolutionKind::BackwardInput => result[x] += lhs[y] * rhs[w],
            ConvolutionKind::BackwardFilter => result[w] += lhs[x] * rhs[y],
        }
    }
}

fn indices(bounds: &[i32]) -> impl Iterator<Item = Vec<i32>> {
    let count: i32 = bounds.iter().product();
    (0..count).map(move |mut number| {
        let mut index = vec![0; bounds.len()];
        for (at, bound) in index.iter_mut().zip(bounds).rev() {
            (*at, number) = (number % bound, number / bound);
        }
        index
    })
}

/// Parses a program of one operation on its parameters.
pub(super) fn program(text: &str) -> VerifiedModule {
    let module = parse_module(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    VerifiedModule::new(module).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Returns the operation of such a program, and the shapes of its operands and its result.
pub(super) fn root(module: &Module) -> (&Op, Vec<&ArrayShape>) {
    let entry = module.entry();
    let root = &entry[entry.root()];
    let arrays = root.operands().iter().copied().chain([entry.root()]);
    (root.op(), arrays.map(|id| entry[id].shape().as_array().expect("an array")).collect())
}

/// Compares the call found for a program's operation with the evaluator, on small integers, so that sums are exact.
pub(super) fn agrees(module: &Module, found: &RecognizedCall) {
    let (_, arrays) = root(module);
    let (result, operands) = arrays.split_last().expect("a result");
    let inputs: Vec<Literal> = operands.iter().enumerate().map(|(salt, shape)| input(shape, salt)).collect();
    let expected = evaluate(module, inputs.clone()).expect("the evaluator knows it");
    let (finish, prepare) = found.arrays.split_last().expect("a result");
    let prepared = inputs.into_iter().zip(prepare).map(|(array, how)| match how {
        Some(how) => evaluate(&how.program().unwrap(), vec![array]).unwrap(),
        None => array,
    });
    let prepared: Vec<Literal> = prepared.collect();
    let made = finish.as_ref().map_or(*result, |how| how.from());
    let size = made.element_count();
    let given: Vec<&[u8]> = prepared.iter().map(Literal::bytes).collect();
    let prepared: Vec<Vec<f64>> = prepared.iter().map(numbers).collect();
    let raw = call(&found.call, [&prepared[0], &prepared[1]], size);
    let by_loops = Literal::from_fn(made, |i| Scalar::Float(raw[i])).unwrap();
    for mut actual in [by_loops].into_iter().chain(on_device(&found.call, &given, made)) {
        if let Some(finish) = finish {
            actual = evaluate(&finish.program().unwrap(), vec![actual]).unwrap();
        }
        assert_eq!(numbers(&actual), numbers(&expected), "{found:?}\n{module}");
    }
}

/// Returns the library's own results for each of its algorithms; none if it is absent.
fn on_device(call: &LibraryCall, operands: &[&[u8]], result: &ArrayShape) -> Vec<Literal> {
    let results = results(call, operands, result.byte_size(), &[Moved::None, Moved::All]);
    results.into_iter().map(|bytes| Literal::from_bytes(result, bytes).unwrap()).collect()
}

fn input(shape: &ArrayShape, salt: usize) -> Literal {
    Literal::from_fn(shape, |i| Scalar::Float((i * 37 + salt * 101) as f64 % 23.0 - 11.0)).expect("a small array")
}

pub(super) fn numbers(array: &Literal) -> Vec<f64> {
    let number = |i| match array.get(i) {
        Scalar::Float(number) => number,
        other => panic!("{other:?} is no float"),
    };
    (0..array.array_shape().element_count()).map(number).collect()
}

/// Complex number, as real and imaginary part.
type Complex = (f64, f64);

/// Computes `sum over j of x[j] exp(sign * 2 pi i j k / n)` along a dimension of an array, for all `k`.
fn along(values: &[Complex], dims: &[usize], dimension: usize, sign: f64) -> Vec<Complex> {
    let (n, stride) = (dims[dimension], dims[dimension + 1..].iter().product::<usize>());
    let term = |at: usize, j: usize| {
        let (k, first) = (at / stride % n, at - at / stride % n * stride);
        let angle = sign * std::f64::consts::TAU * (j * k % n) as f64 / n as f64;
        let ((re, im), (cos, sin)) = (values[first + j * stride], (angle.cos(), angle.sin()));
        (re * cos - im * sin, re * sin + im * cos)
    };
    let sum = |at| (0..n).map(|j| term(at, j)).fold((0.0, 0.0), |sum: Complex, x| (sum.0 + x.0, sum.1 + x.1));
    (0..values.len()).map(sum).collect()
}

/// Computes a transform without scaling. The transform of a real array stores only the first half of its last
/// dimension. The other elements are complex conjugates of these; elements that are their own conjugates count as real.
fn transform(call: &Fourier, input: &[Complex]) -> Vec<Complex> {
    let last = call.lengths.len();
    let mut dims = [&[call.batch], &call.lengths[..]].concat();
    let n = dims[last];
    let half = n / 2 + 1;
    let lines = |values: &[Complex], size: usize, line: &dyn Fn(&[Complex]) -> Vec<Complex>| {
        values.chunks_exact(size).flat_map(line).collect::<Vec<Complex>>()
    };
    let all = |values: &[Complex], dims: &[usize], sign: f64, to: usize| {
        (1..=to).fold(values.to_vec(), |values, dimension| along(&values, dims, dimension, sign))
    };
    match call.kind {
        FourierKind::Forward => all(input, &dims, -1.0, last),
        FourierKind::Inverse => all(input, &dims, 1.0, last),
        FourierKind::RealForward => lines(&all(input, &dims, -1.0, last), n, &|line| line[..half].to_vec()),
        FourierKind::RealInverse => {
            dims[last] = half;
            let halves = all(input, &dims, 1.0, last - 1);
            let mirrored = |line: &[Complex]| {
                let number = |k: usize| match k {
                    0 => (line[0].0, 0.0),
                    k if 2 * k == n => (line[k].0, 0.0),
                    k if k < half => line[k],
                    k => (line[n - k].0, -line[n - k].1),
                };
                (0..n).map(number).collect()
            };
            dims[last] = n;
            along(&lines(&halves, half, &mirrored), &dims, last, 1.0)
        }
    }
}

/// Compares the call found for a program's Fourier transform with the evaluator.
pub(super) fn transform_agrees(module: &Module, found: &RecognizedCall) {
    let (_, arrays) = root(module);
    let LibraryCall::Fourier(call) = &found.call else { panic!("{found:?}") };
    let scalar = |shape: &ArrayShape, (re, im)| match shape.element_type().is_complex() {
        true => Scalar::Complex(re, im),
        false => Scalar::Float(re),
    };
    let number = |i: usize| ((i * 37 % 23) as f64 - 11.0, (i * 53 % 19) as f64 - 9.0);
    let input = Literal::from_fn(arrays[0], |i| scalar(arrays[0], number(i))).expect("a small array");
    let made = transform(call, &complex(&input));
    let by_loops = Literal::from_fn(arrays[1], |i| scalar(arrays[1], made[i])).expect("a small array");
    let by_library = on_device(&found.call, &[input.bytes()], arrays[1]);
    let expected = complex(&evaluate(module, vec![input]).expect("the evaluator knows it"));
    for mut actual in [by_loops].into_iter().chain(by_library) {
        if let Some(scaling) = &found.scaling {
            actual = evaluate(&scaling.program().unwrap(), vec![actual]).unwrap();
        }
        for (actual, expected) in complex(&actual).into_iter().zip(&expected) {
            let apart = (actual.0 - expected.0).abs() + (actual.1 - expected.1).abs();
            assert!(apart < 1e-9, "{actual:?} instead of {expected:?}: {found:?}\n{module}");
        }
    }
}

fn complex(array: &Literal) -> Vec<Complex> {
    let number = |i| match array.get(i) {
        Scalar::Float(number) => (number, 0.0),
        Scalar::Complex(re, im) => (re, im),
        other => panic!("{other:?} is no float"),
    };
    (0..array.array_shape().element_count()).map(number).collect()
}
