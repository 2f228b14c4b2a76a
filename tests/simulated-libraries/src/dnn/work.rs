//! Execution of convolutions in device memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use half::{bf16, f16};
use simulated_gpu::finding::Problem;
use simulated_gpu::machine::Memory;

use super::descriptors::TensorDescriptor;
use super::engines::Engine;
use super::graph::{Configuration, VariantPack};
use super::rules::{Convolution, ConvolutionKind, Graph, Step};
use super::{Dnn, Status};
use crate::arguments::overlaps;
use crate::element::{Element, tf32};
use crate::refusal::wrong;
use crate::workspace::Workspace;

/// Alignment of workspaces.
const WORKSPACE_ALIGNMENT: u64 = 16;

/// Graph with its arrays, fully checked.
#[derive(Clone, Debug)]
pub(super) struct Convolving {
    graph: Arc<Graph>,
    engine: Engine,
    /// Addresses of input, filter and output, one of which is the result.
    arrays: [u64; 3],
    bias: u64,
}

impl Convolving {
    /// Checks that arrays are not null, aligned, and disjoint.
    pub fn new(configuration: &Configuration, pack: &VariantPack) -> Dnn<(Convolving, Workspace)> {
        let Configuration { graph, engine } = configuration;
        let address = |tensor: &TensorDescriptor| {
            let Some(place) = pack.ids.iter().position(|&id| id == tensor.id) else {
                return wrong(Status::BAD_PARAM, format!("tensor {} is not in the variant pack", tensor.id));
            };
            match pack.addresses[place] {
                0 => wrong(Status::NULL_POINTER, format!("tensor {} is null", tensor.id)),
                address if !address.is_multiple_of(tensor.alignment) => wrong(
                    Status::MISALIGNED_POINTER,
                    format!("tensor {} at {address:#x} is not aligned to {} bytes", tensor.id, tensor.alignment),
                ),
                address => Ok(address),
            }
        };
        let Convolution { input, filter, output, .. } = &graph.convolution;
        let output = if output.is_virtual { &graph.result } else { output };
        let arrays = [address(input)?, address(filter)?, address(output)?];
        let bias = graph.bias.as_ref().map(address).transpose()?.unwrap_or(0);
        let bytes = engine.workspace(graph);
        if bytes > 0 && (pack.workspace == 0 || !pack.workspace.is_multiple_of(WORKSPACE_ALIGNMENT)) {
            let sentence = format!("a workspace of {bytes} bytes at {:#x}", pack.workspace);
            return wrong(Status::MISALIGNED_POINTER, sentence);
        }
        let range = |tensor: &TensorDescriptor, address| (address, tensor.extent() * tensor.element.bytes() as u64);
        let tensors = [(input, arrays[0]), (filter, arrays[1]), (output, arrays[2])];
        let made = range(&graph.result, address(&graph.result)?);
        let others = tensors.into_iter().chain(graph.bias.as_ref().map(|tensor| (tensor, bias)));
        let others = others.filter(|(tensor, _)| tensor.id != graph.result.id);
        let ranges = others.map(|(tensor, address)| range(tensor, address)).chain([(pack.workspace, bytes as u64)]);
        if ranges.into_iter().any(|range| overlaps(range, made)) {
            return wrong(Status::BAD_PARAM, "the result overlaps another array or the workspace");
        }
        let work = Convolving { graph: graph.clone(), engine: *engine, arrays, bias };
        Ok((work, Workspace::new(pack.workspace, bytes)))
    }
}

/// Array read from memory, row-major, with two dimensions and three spatial ones; missing spatial dimensions are first
/// and have size one.
struct TensorArray {
    sizes: [usize; 5],
    numbers: Vec<f64>,
}

impl TensorArray {
    /// Reads an array if `is_known`, otherwise returns zeros.
    fn read(
        memory: &mut Memory,
        address: u64,
        tensor: &TensorDescriptor,
        is_known: bool,
    ) -> Result<TensorArray, Problem> {
        let mut numbers = vec![0.0; tensor.sizes.iter().product()];
        if is_known {
            let bytes = tensor.element.bytes() as u64;
            for (number, place) in places(tensor).into_iter().enumerate() {
                numbers[number] = tensor.element.read(memory, address + place * bytes, 1)?[0].0;
            }
        }
        Ok(TensorArray { sizes: padded(&tensor.sizes, 1), numbers })
    }

    fn write(&self, memory: &mut Memory, address: u64, tensor: &TensorDescriptor) -> Result<(), Problem> {
        let bytes = tensor.element.bytes() as u64;
        let mut places = places(tensor).into_iter().zip(&self.numbers);
        places.try_for_each(|(place, &number)| tensor.element.write(memory, address + place * bytes, &[(number, 0.0)]))
    }

    fn at(&self, index: [usize; 5]) -> usize {
        index.iter().zip(&self.sizes).fold(0, |at, (index, size)| at * size + index)
    }
}

/// Returns the offsets of elements, in row-major order.
fn places(tensor: &TensorDescriptor) -> Vec<u64> {
    let mut places = vec![0];
    for (&size, &stride) in tensor.sizes.iter().zip(&tensor.strides) {
        let step = |place: u64| (0..size as u64).map(move |index| place + index * stride as u64);
        places = places.into_iter().flat_map(step).collect();
    }
    places
}

/// Pads a list of two numbers and up to three spatial ones.
fn padded(numbers: &[usize], missing: usize) -> [usize; 5] {
    let mut all = [missing; 5];
    let (first, rest) = numbers.split_at(2);
    all[..2].copy_from_slice(first);
    all[5 - rest.len()..].copy_from_slice(rest);
    all
}

/// Pads a list of up to three spatial numbers.
fn spatial(numbers: &[usize], missing: usize) -> [usize; 3] {
    let mut all = [missing; 3];
    all[3 - numbers.len()..].copy_from_slice(numbers);
    all
}

impl Convolving {
    /// Executes the call.
    pub fn run(&self, memory: &mut Memory) -> Result<(), Problem> {
        let Convolution { kind, input, filter, output, alpha, beta, .. } = &self.graph.convolution;
        let [input_at, filter_at, output_at] = self.arrays;
        let mut x = TensorArray::read(memory, input_at, input, *kind != ConvolutionKind::BackwardData)?;
        let mut w = TensorArray::read(memory, filter_at, filter, *kind != ConvolutionKind::BackwardFilter)?;
        let mut y = TensorArray::read(memory, output_at, output, *kind != ConvolutionKind::Forward)?;
        let factors = || [&x, &w, &y].into_iter().flat_map(|array| &array.numbers);
        let are_finite = factors().all(|number| number.is_finite());
        for number in x.numbers.iter_mut().chain(&mut w.numbers).chain(&mut y.numbers) {
            *number = self.factor(*number);
        }
        self.sum(&mut x, &mut w, &mut y);
        let (mut made, address) = match kind {
            ConvolutionKind::Forward => (y, output_at),
            ConvolutionKind::BackwardData => (x, input_at),
            ConvolutionKind::BackwardFilter => (w, filter_at),
        };
        let result = &self.graph.result;
        let before = TensorArray::read(memory, address, result, *beta != 0.0)?;
        for (number, before) in made.numbers.iter_mut().zip(before.numbers) {
            *number = self.rounded(*number, are_finite);
            *number = alpha * *number + if *beta == 0.0 { 0.0 } else { beta * before };
        }
        self.go_on(memory, &mut made)?;
        made.write(memory, address, result)
    }

    /// Returns an operand in the precision of the engine.
    fn factor(&self, number: f64) -> f64 {
        match (self.engine, self.graph.convolution.input.element) {
            (Engine::TensorCores, Element::F32) => tf32((number, 0.0)).0,
            (Engine::Narrowed, _) => f16::from_f64(number).to_f64(),
            _ => number,
        }
    }

    /// Returns a sum in the precision of the engine.
    fn rounded(&self, number: f64, are_finite: bool) -> f64 {
        static CALLS: AtomicU32 = AtomicU32::new(0);
        match self.engine {
            Engine::Winograd if !are_finite => f64::NAN,
            Engine::ShortSums => bf16::from_f64(number).to_f64(),
            Engine::Atomic => number + f64::from(CALLS.fetch_add(1, Ordering::Relaxed) % 7),
            _ => number,
        }
    }

    /// Applies the epilogue: bias and activation.
    fn go_on(&self, memory: &mut Memory, made: &mut TensorArray) -> Result<(), Problem> {
        let bias = match &self.graph.bias {
            Some(tensor) => TensorArray::read(memory, self.bias, tensor, true)?.numbers,
            None => Vec::new(),
        };
        let places: usize = made.sizes[2..].iter().product();
        for step in &self.graph.steps {
            for (place, number) in made.numbers.iter_mut().enumerate() {
                *number = match *step {
                    Step::Add => *number + bias[place / places % bias.len()],
                    Step::Relu { keeps_nan } if number.is_nan() => {
                        if keeps_nan && self.engine != Engine::Tiles {
                            *number
                        } else {
                            0.0
                        }
                    }
                    Step::Relu { .. } => number.max(0.0),
                    Step::Gelu => {
                        let inner = (2.0 / std::f64::consts::PI).sqrt() * (*number + 0.044_715 * number.powi(3));
                        0.5 * *number * (1.0 + inner.tanh())
                    }
                };
            }
        }
        Ok(())
    }

    /// Adds all products to the computed array: `y[n, k, p] += x[n, c, p * stride + r * dilation - padding] w[k, c,
    /// r]`, or the corresponding sum for one of the gradients.
    fn sum(&self, x: &mut TensorArray, w: &mut TensorArray, y: &mut TensorArray) {
        let convolution = &self.graph.convolution;
        let Convolution { kind, operation, .. } = convolution;
        let (padding, stride) = (spatial(&operation.padding, 0), spatial(&operation.stride, 1));
        let dilation = spatial(&operation.dilation, 1);
        let ([_, _, id, ih, iw], [outputs, per_group, fd, fh, fw]) = (x.sizes, w.sizes);
        let (inside, per_output) = ([id, ih, iw], outputs / convolution.groups());
        let filter_places = grid([fd, fh, fw]);
        for (n, k) in (0..y.sizes[0]).flat_map(|n| (0..outputs).map(move |k| (n, k))) {
            for p in grid([y.sizes[2], y.sizes[3], y.sizes[4]]) {
                let y_at = y.at([n, k, p[0], p[1], p[2]]);
                for r in &filter_places {
                    let turned = if operation.is_turned { [fd - 1 - r[0], fh - 1 - r[1], fw - 1 - r[2]] } else { *r };
                    let place = |d: usize| (p[d] * stride[d] + r[d] * dilation[d]).checked_sub(padding[d]);
                    let [Some(i0), Some(i1), Some(i2)] = [0, 1, 2].map(|d| place(d).filter(|at| *at < inside[d]))
                    else {
                        continue;
                    };
                    for c in 0..per_group {
                        let x_at = x.at([n, k / per_output * per_group + c, i0, i1, i2]);
                        let w_at = w.at([k, c, turned[0], turned[1], turned[2]]);
                        match kind {
                            ConvolutionKind::Forward => y.numbers[y_at] += x.numbers[x_at] * w.numbers[w_at],
                            ConvolutionKind::BackwardData => x.numbers[x_at] += y.numbers[y_at] * w.numbers[w_at],
                            ConvolutionKind::BackwardFilter => w.numbers[w_at] += x.numbers[x_at] * y.numbers[y_at],
                        }
                    }
                }
            }
        }
    }
}

/// Returns all indices of a three-dimensional block.
fn grid([a, b, c]: [usize; 3]) -> Vec<[usize; 3]> {
    (0..a).flat_map(|i| (0..b).flat_map(move |j| (0..c).map(move |k| [i, j, k]))).collect()
}
