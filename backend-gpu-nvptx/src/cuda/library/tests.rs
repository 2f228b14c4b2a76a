//! Tests of library calls with every algorithm that the library offers, against their definitions. Without a GPU or
//! without the library, nothing is tested.

use std::io::Write;
use std::sync::OnceLock;

use ElementType::{BF16, C64, C128, F8E4M3FN, F8E5M2, F16, F32, F64, S8, S32};
use xla_hlo::{ArrayShape, ElementType, Error, Literal, Scalar};
use xla_service::{DeviceMemory, StreamExecutor};

use super::*;
use crate::cuda::graph::GraphSlot;
use crate::cuda::graph::recording::Recording;
use crate::cuda::stream::CudaStream;
use crate::executor::CudaExecutor;
use crate::program::library_call::convolution::{
    Channels, Convolution, ConvolutionActivation, ConvolutionKind, Spatial,
};
use crate::program::library_call::fourier::{Fourier, FourierKind};
use crate::program::library_call::matmul::{Activation, Matmul, Operand, Precision};

/// GPU with its libraries.
struct Bench {
    executor: CudaExecutor,
    libraries: Libraries,
}

/// Returns the GPU of this process if it has the library for a call; otherwise prints the reason.
fn bench(call: &LibraryCall) -> Option<&'static Bench> {
    static BENCH: OnceLock<Option<Bench>> = OnceLock::new();
    let told = |error: &Error| writeln!(std::io::stderr(), "skipped: {error}").unwrap_or_default();
    let bench = BENCH.get_or_init(|| {
        let executor = CudaExecutor::new("gpu", 0, None, None).inspect_err(told).ok()?;
        let libraries = Libraries::new(executor.context());
        Some(Bench { executor, libraries })
    });
    let bench = bench.as_ref()?;
    bench.libraries.version(call).inspect_err(told).ok()?;
    let capability = bench.executor.context().info().capability;
    let checked = match call {
        LibraryCall::Matmul(matmul) => matmul.check(capability),
        LibraryCall::Convolution(convolution) => convolution.check(capability),
        LibraryCall::Fourier(fourier) => fourier.check(),
    };
    match checked {
        Err(error) if !is_nothing(call) => {
            assert!(capability < (9, 0), "{error}");
            None
        }
        _ => Some(bench),
    }
}

/// Whether the call has no result, so that the library need not take it.
fn is_nothing(call: &LibraryCall) -> bool {
    match call {
        LibraryCall::Matmul(matmul) => matmul.is_empty(),
        LibraryCall::Convolution(convolution) => convolution.is_empty(),
        LibraryCall::Fourier(fourier) => fourier.batch == 0,
    }
}

/// Byte that fills the memory of a result before the call.
const UNTOUCHED: u8 = 0x7b;

/// Returns the offset in bytes of moved arrays: the smallest alignment that the library allows.
fn unit(call: &LibraryCall) -> usize {
    let bytes = |element: ElementType| match element {
        F8E4M3FN | F8E5M2 => 16,
        S8 => 4,
        other => other.byte_width(),
    };
    match call {
        LibraryCall::Matmul(matmul) => bytes(matmul.lhs.element).max(bytes(matmul.result.element)),
        LibraryCall::Convolution(convolution) => bytes(convolution.element),
        LibraryCall::Fourier(fourier) => {
            if fourier.is_double {
                16
            } else {
                8
            }
        }
    }
}

/// Arrays of a call that are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved {
    None,
    All,
    /// Moves the array of this number.
    One(usize),
}

/// Returns the bytes of a call's result for every algorithm, sent directly and as a graph, with moved arrays. Empty
/// without the library.
pub(crate) fn results(call: &LibraryCall, operands: &[&[u8]], result: usize, moved: &[Moved]) -> Vec<Vec<u8>> {
    let Some(bench) = bench(call) else { return Vec::new() };
    let mut found = Vec::new();
    for &moved in moved {
        let places = (0..=operands.len()).map(|number| match moved {
            Moved::All => unit(call),
            Moved::One(other) if other == number => unit(call),
            Moved::One(_) | Moved::None => 0,
        });
        let places: Vec<usize> = places.collect();
        let (sent, algorithms) = bench.run(call, 0, operands, result, &places, None);
        found.push(sent);
        found.push(bench.run(call, 0, operands, result, &places, Some(&GraphSlot::default())).0);
        found.extend((1..algorithms).map(|number| bench.run(call, number, operands, result, &places, None).0));
    }
    found
}

impl Bench {
    /// Runs a call. Returns its result and the number of its algorithms.
    fn run(
        &self,
        call: &LibraryCall,
        algorithm: usize,
        operands: &[&[u8]],
        result: usize,
        places: &[usize],
        graph: Option<&GraphSlot>,
    ) -> (Vec<u8>, usize) {
        let stream = self.executor.create_stream().unwrap();
        let cuda: &CudaStream = stream.downcast().unwrap();
        let sizes = operands.iter().map(|operand| operand.len()).chain([result]).zip(places);
        let mut memories: Vec<DeviceMemory> =
            sizes.map(|(bytes, place)| self.executor.allocate(bytes + place).unwrap()).collect();
        let untouched = vec![UNTOUCHED; result];
        let contents = operands.iter().copied().chain([&untouched[..]]);
        for ((memory, content), &place) in memories.iter_mut().zip(contents).zip(places) {
            stream.copy_to_device(content, memory, place).unwrap();
        }
        let address = |(memory, &place): (&DeviceMemory, &usize)| {
            cuda.address_of(memory, place, memory.byte_size() - place).unwrap()
        };
        let addresses: Vec<u64> = memories.iter().zip(places).map(address).collect();
        let algorithms = self.libraries.algorithms(call, &addresses).unwrap();
        let chosen = ChosenCall { call: call.clone(), algorithm };
        match graph {
            Some(slot) => self.run_graph(slot, &chosen, &addresses, cuda),
            None => cuda.library(&self.libraries, &chosen, &addresses).unwrap(),
        }
        let read = |number: usize, bytes: usize| {
            let mut read = vec![0; bytes];
            if bytes > 0 {
                stream.copy_to_host(&memories[number], places[number], &mut read).unwrap();
            }
            read
        };
        for (number, operand) in operands.iter().enumerate() {
            assert!(read(number, operand.len()) == *operand, "{call:?} changes operand {number}");
        }
        (read(operands.len(), result), algorithms)
    }

    fn run_graph(&self, slot: &GraphSlot, chosen: &ChosenCall, addresses: &[u64], stream: &CudaStream) {
        let bytes = self.libraries.workspace(chosen, addresses).unwrap();
        let workspace = stream.scratch(bytes).unwrap();
        let mut recording = Recording::default();
        recording.library(chosen, addresses, stream.address_in(&workspace, 0, bytes).unwrap(), &[]);
        recording.keep(workspace);
        slot.run(recording, None, &self.libraries, stream).unwrap();
    }
}

/// Returns small numbers, whose sums are exact in every type.
fn numbers(element: ElementType, count: usize, salt: usize) -> Literal {
    let number = |i: usize| ((i * 7 + salt * 5) % 5) as f64 - 2.0;
    let scalar = |i: usize| match element {
        C64 | C128 => Scalar::Complex(number(i), number(i + 3)),
        S8 | S32 => Scalar::Signed(number(i) as i64),
        _ => Scalar::Float(number(i)),
    };
    Literal::from_fn(&ArrayShape::new(element, [count]), scalar).unwrap()
}

/// Splits a number into its real and imaginary parts.
fn parts(scalar: Scalar) -> (f64, f64) {
    match scalar {
        Scalar::Float(real) => (real, 0.0),
        Scalar::Complex(real, imaginary) => (real, imaginary),
        Scalar::Signed(integer) => (integer as f64, 0.0),
        Scalar::Pred(_) | Scalar::Unsigned(_) => panic!("no matmul has such numbers"),
    }
}

/// Returns the number of elements from the first to the last one of a batch of matrices, including gaps.
fn extent(operand: &Operand, batch: usize, rows: usize, columns: usize) -> usize {
    let (rows, columns) = if operand.transposed { (columns, rows) } else { (rows, columns) };
    (batch - 1) * operand.batch_stride + (rows - 1) * operand.row_stride + columns
}

/// Returns the index of an element of a matrix.
fn place(operand: &Operand, z: usize, row: usize, column: usize) -> usize {
    let (row, column) = if operand.transposed { (column, row) } else { (row, column) };
    z * operand.batch_stride + row * operand.row_stride + column
}

/// Compares a matmul on the device with its definition. Memory between the elements of the result must stay unchanged.
fn multiplies(matmul: &Matmul) {
    let Matmul { batch, m, n, k, .. } = *matmul;
    let call = LibraryCall::Matmul(matmul.clone());
    let count = extent(&matmul.result, batch, m, n);
    let mut arrays = vec![
        numbers(matmul.lhs.element, extent(&matmul.lhs, batch, m, k), 1),
        numbers(matmul.rhs.element, extent(&matmul.rhs, batch, k, n), 2),
    ];
    arrays.extend(matmul.has_addend.then(|| numbers(matmul.result.element, count, 3)));
    arrays.extend(matmul.has_bias.then(|| numbers(matmul.result.element, n, 4)));
    let number = |array: usize, at: usize| parts(arrays[array].get(at));
    let expected = |z: usize, i: usize, j: usize| {
        let (mut real, mut imaginary) = (0.0, 0.0);
        for l in 0..k {
            let (a, b) = (number(0, place(&matmul.lhs, z, i, l)), number(1, place(&matmul.rhs, z, l, j)));
            real += a.0 * b.0 - a.1 * b.1;
            imaginary += a.0 * b.1 + a.1 * b.0;
        }
        let alpha = f64::from_bits(matmul.alpha);
        (real, imaginary) = (real * alpha, imaginary * alpha);
        if matmul.has_addend {
            let added = number(2, place(&matmul.result, z, i, j));
            (real, imaginary) = (real + added.0, imaginary + added.1);
        }
        if matmul.has_bias {
            real += number(arrays.len() - 1, j).0;
        }
        (if matmul.activation == Activation::Relu { real.max(0.0) } else { real }, imaginary)
    };
    let operands: Vec<&[u8]> = arrays.iter().map(Literal::bytes).collect();
    let shape = ArrayShape::new(matmul.result.element, [count]);
    let moved: Vec<Moved> = [Moved::None, Moved::All].into_iter().chain((0..arrays.len()).map(Moved::One)).collect();
    let width = matmul.result.element.byte_width();
    for bytes in results(&call, &operands, shape.byte_size(), &moved) {
        let mut rest = bytes.clone();
        let made = Literal::from_bytes(&shape, bytes).unwrap();
        for (z, i, j) in (0..batch).flat_map(|z| (0..m).flat_map(move |i| (0..n).map(move |j| (z, i, j)))) {
            let at = place(&matmul.result, z, i, j);
            assert_eq!(parts(made.get(at)), expected(z, i, j), "{z} {i} {j} of {matmul:?}");
            rest[at * width..(at + 1) * width].fill(UNTOUCHED);
        }
        assert!(rest.iter().all(|byte| *byte == UNTOUCHED), "what lies between is written: {matmul:?}");
    }
}

/// Element types of matmuls that the library has: lhs, rhs, result.
const TYPES: [[ElementType; 3]; 15] = [
    [F16; 3],
    [F16, F16, F32],
    [BF16; 3],
    [BF16, BF16, F32],
    [F32; 3],
    [F64; 3],
    [C64; 3],
    [C128; 3],
    [S8, S8, S32],
    [F8E4M3FN, F8E4M3FN, F32],
    [F8E4M3FN, F8E5M2, F16],
    [F8E5M2, F8E4M3FN, BF16],
    [F8E4M3FN, F8E4M3FN, BF16],
    [F8E5M2, F8E4M3FN, F32],
    [F8E4M3FN, F8E5M2, F32],
];

/// Returns a matmul with transposed or plain operands, and gaps of `gap` elements between rows.
fn dense(elements: [ElementType; 3], batch: usize, sizes: [usize; 3], turned: [bool; 2], gap: usize) -> Matmul {
    let mut matmul = Matmul::dense(batch, sizes, elements);
    let [m, k, n] = sizes;
    let lay = |operand: &mut Operand, rows: usize, columns: usize, is_turned: bool| {
        let (rows, columns) = if is_turned { (columns, rows) } else { (rows, columns) };
        operand.transposed = is_turned;
        operand.row_stride = columns + gap;
        operand.batch_stride = rows * operand.row_stride;
    };
    lay(&mut matmul.lhs, m, k, turned[0]);
    lay(&mut matmul.rhs, k, n, turned[1]);
    lay(&mut matmul.result, m, n, false);
    matmul
}

#[test]
fn matmuls_of_all_types_however_they_lie() {
    for elements in TYPES {
        let is_narrow = matches!(elements[0], F8E4M3FN | F8E5M2 | S8);
        for (number, turned) in [[false, true], [false, false], [true, false], [true, true]].into_iter().enumerate() {
            if is_narrow && number > 0 {
                continue;
            }
            multiplies(&dense(elements, 1, [16, 32, 16], turned, 0));
            multiplies(&dense(elements, 3, [32, 16, 48], turned, 16));
            if !is_narrow {
                multiplies(&dense(elements, 2, [3, 5, 7], turned, number));
                multiplies(&dense(elements, 1, [1, 1, 1], turned, 0));
            }
        }
    }
}

#[test]
fn one_matrix_may_serve_a_whole_batch() {
    let mut matmul = dense([F32; 3], 3, [4, 5, 6], [false; 2], 0);
    matmul.lhs.batch_stride = 0;
    multiplies(&matmul);
    matmul.rhs.batch_stride = 0;
    multiplies(&matmul);
}

#[test]
fn what_comes_behind_a_matmul() {
    for elements in TYPES {
        for (number, (has_addend, has_bias)) in
            [(true, false), (false, true), (true, true), (false, false)].into_iter().enumerate()
        {
            let is_plain = matches!(elements[0], C64 | C128 | F64 | S8 | F8E4M3FN | F8E5M2);
            if is_plain && (has_bias || number == 3) {
                continue;
            }
            let mut matmul = dense(elements, 2, [16, 16, 16], [false, true], 0);
            (matmul.has_addend, matmul.has_bias) = (has_addend, has_bias);
            matmul.activation = if is_plain || number == 0 { Activation::None } else { Activation::Relu };
            matmul.alpha = if elements[2] == S32 { 1f64 } else { 2f64 }.to_bits();
            multiplies(&matmul);
            if !is_plain {
                (matmul.m, matmul.n, matmul.k) = (3, 5, 7);
                multiplies(&matmul);
            }
        }
    }
}

#[test]
fn gelu_is_the_one_by_tanh() {
    let mut matmul = dense([F32; 3], 1, [2, 3, 2], [false; 2], 0);
    matmul.activation = Activation::GeluTanh;
    let call = LibraryCall::Matmul(matmul.clone());
    let (lhs, rhs) = (numbers(F32, 6, 1), numbers(F32, 6, 2));
    for bytes in results(&call, &[lhs.bytes(), rhs.bytes()], 16, &[Moved::None]) {
        let made = Literal::from_bytes(&ArrayShape::new(F32, [4]), bytes).unwrap();
        for (i, j) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let term = |l: usize| parts(lhs.get(i * 3 + l)).0 * parts(rhs.get(l * 2 + j)).0;
            let x: f64 = (0..3).map(term).sum();
            let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3));
            let found = parts(made.get(i * 2 + j)).0;
            assert!((found - 0.5 * x * (1.0 + inner.tanh())).abs() < 1e-5, "{found} for {x}");
        }
    }
}

/// Runs a layer whose first input is NaN, with different epilogues, by each plan, in both orders of dimensions.
#[test]
fn what_comes_behind_a_convolution() {
    use ConvolutionActivation as After;
    let window = Spatial { input: 5, filter: 3, output: 5, padding: 1, stride: 1, dilation: 1 };
    for (element, channels) in
        [F16, BF16, F32].into_iter().flat_map(|element| [(element, Channels::First), (element, Channels::Last)])
    {
        for (has_bias, activation) in
            [(true, After::None), (false, After::Relu), (true, After::Relu), (true, After::GeluTanh)]
        {
            let layer = Convolution {
                kind: ConvolutionKind::Forward,
                element,
                precision: Precision::Exact,
                channels,
                batch: 2,
                groups: 1,
                input_channels: 3,
                output_channels: 4,
                spatial: vec![window; 2],
                has_bias,
                activation,
            };
            layer_agrees(&layer);
        }
    }
}

/// Compares a layer on the device with its definition: 2 images of 3 channels, 5 by 5, to 4 channels.
fn layer_agrees(layer: &Convolution) {
    let sizes = layer.sizes().unwrap();
    let wrong = |i: usize, number: Scalar| if i == 0 { Scalar::Float(f64::NAN) } else { number };
    let image = numbers(layer.element, 150, 1);
    let image = Literal::from_fn(image.array_shape(), |i| wrong(i, image.get(i))).unwrap();
    let mut arrays = vec![image, numbers(layer.element, 108, 2)];
    arrays.extend(layer.has_bias.then(|| numbers(layer.element, 4, 3)));
    let at = |strides: &[i32], index: [i32; 4]| strides.iter().zip(index).map(|(s, i)| s * i).sum::<i32>() as usize;
    let number = |array: usize, at: usize| parts(arrays[array].get(at)).0;
    let expected = |[n, k, y, x]: [i32; 4]| {
        let mut sum = 0.0;
        for (c, r, s) in (0..3).flat_map(|c| (0..3).flat_map(move |r| (0..3).map(move |s| (c, r, s)))) {
            let (row, column) = (y + r - 1, x + s - 1);
            if (0..5).contains(&row) && (0..5).contains(&column) {
                let image = number(0, at(&sizes.input_strides, [n, c, row, column]));
                sum += image * number(1, at(&sizes.filter_strides, [k, c, r, s]));
            }
        }
        let sum = if layer.has_bias { sum + number(2, k as usize) } else { sum };
        match layer.activation {
            ConvolutionActivation::Relu if sum < 0.0 => 0.0,
            ConvolutionActivation::None | ConvolutionActivation::Relu => sum,
            ConvolutionActivation::GeluTanh => {
                0.5 * sum * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (sum + 0.044_715 * sum.powi(3))).tanh())
            }
        }
    };
    let operands: Vec<&[u8]> = arrays.iter().map(Literal::bytes).collect();
    let shape = ArrayShape::new(layer.element, [200]);
    let call = LibraryCall::Convolution(layer.clone());
    for bytes in results(&call, &operands, shape.byte_size(), &[Moved::None, Moved::All]) {
        let made = Literal::from_bytes(&shape, bytes).unwrap();
        for place in 0..200 {
            let index = [place / 100, place / 25 % 4, place / 5 % 5, place % 5];
            let (found, expected) = (parts(made.get(at(&sizes.output_strides, index))).0, expected(index));
            let is_near = (found - expected).abs() <= 0.01 * expected.abs() + 1e-5;
            assert!(is_near || (found.is_nan() && expected.is_nan()), "{found} for {expected} at {index:?}: {layer:?}");
        }
    }
}

#[test]
fn factors_are_as_exact_as_a_program_asks() {
    let fine = 1.0 + 2f64.powi(-15);
    let one = |number: f64| Literal::from_fn(&ArrayShape::new(F32, [1]), |_| Scalar::Float(number)).unwrap();
    for (precision, expected) in [(Precision::Exact, fine), (Precision::Tf32, 1.0)] {
        let matmul = Matmul { precision, ..dense([F32; 3], 1, [1, 1, 1], [false; 2], 0) };
        let (lhs, rhs) = (one(fine), one(1.0));
        for bytes in results(&LibraryCall::Matmul(matmul), &[lhs.bytes(), rhs.bytes()], 4, &[Moved::None]) {
            assert_eq!(f64::from(f32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])), expected);
        }
    }
}

#[test]
fn calls_without_a_result_are_nothing() {
    let nothing = |call: LibraryCall, operands: usize| {
        for bytes in results(&call, &vec![&[][..]; operands], 0, &[Moved::None]) {
            assert!(bytes.is_empty());
        }
    };
    nothing(LibraryCall::Matmul(Matmul::dense(0, [4, 4, 4], [F32; 3])), 2);
    nothing(LibraryCall::Matmul(Matmul::dense(1, [0, 4, 4], [F32; 3])), 2);
    let call = Fourier { kind: FourierKind::Forward, is_double: false, lengths: vec![6], batch: 0 };
    nothing(LibraryCall::Fourier(call), 1);
}

#[test]
fn a_graph_follows_a_call_whose_arrays_move() {
    let call = LibraryCall::Matmul(dense([F32; 3], 1, [8, 8, 8], [false; 2], 0));
    let Some(bench) = bench(&call) else { return };
    let (lhs, rhs) = (numbers(F32, 64, 1), numbers(F32, 64, 2));
    let slot = GraphSlot::default();
    // For poorly aligned arrays, the library's work may have another shape. Then the graph is rebuilt.
    let made =
        [0, 0, 4, 4, 0].map(|place| bench.run(&call, 0, &[lhs.bytes(), rhs.bytes()], 256, &[place; 3], Some(&slot)).0);
    assert!(made.iter().all(|bytes| *bytes == made[0]), "{made:?}");
    let counts = slot.counts();
    assert_eq!((counts.launches, counts.sent), (5, 0), "{counts:?}");
    assert!((1..=3).contains(&counts.builds), "{counts:?}");
}
