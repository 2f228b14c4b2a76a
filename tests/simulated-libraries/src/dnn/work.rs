//! Execution of convolutions in device memory.

use simulated_gpu::finding::Problem;
use simulated_gpu::machine::Memory;

use super::descriptors::TensorDescriptor;
use super::rules::{Convolution, ConvolutionKind};
use crate::element::tf32;

/// `CUDNN_FMA_MATH`: no tensor cores, so no TF32.
const FMA_MATH: u32 = 3;

/// A convolution with its arrays, all of it checked.
#[derive(Clone, Debug)]
pub(super) struct Convolving {
    pub convolution: Convolution,
    pub alpha: f64,
    pub beta: f64,
    pub input: u64,
    pub filter: u64,
    pub output: u64,
    /// Whether f32 is multiplied as TF32 where that is allowed.
    pub has_tf32: bool,
}

/// An array out of memory, row major: two dimensions and three spatial ones, the first of which may be missing there.
struct TensorArray {
    sizes: [usize; 5],
    numbers: Vec<f64>,
}

impl TensorArray {
    /// Content of memory, or zeros.
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

/// Addresses of elements, in row-major order.
fn places(tensor: &TensorDescriptor) -> Vec<u64> {
    let mut places = vec![0];
    for (&size, &stride) in tensor.sizes.iter().zip(&tensor.strides) {
        let step = |place: u64| (0..size as u64).map(move |index| place + index * stride as u64);
        places = places.into_iter().flat_map(step).collect();
    }
    places
}

/// Two numbers and three spatial ones.
fn padded(numbers: &[usize], missing: usize) -> [usize; 5] {
    let mut all = [missing; 5];
    let (first, rest) = numbers.split_at(2);
    all[..2].copy_from_slice(first);
    all[5 - rest.len()..].copy_from_slice(rest);
    all
}

/// Three spatial numbers.
fn spatial(numbers: &[usize], missing: usize) -> [usize; 3] {
    let mut all = [missing; 3];
    all[3 - numbers.len()..].copy_from_slice(numbers);
    all
}

impl Convolving {
    /// Does it.
    pub fn run(&self, memory: &mut Memory) -> Result<(), Problem> {
        let Convolution { kind, input, filter, output, operation } = &self.convolution;
        let filter = filter.tensor();
        let mut x = TensorArray::read(memory, self.input, input, *kind != ConvolutionKind::BackwardData)?;
        let mut w = TensorArray::read(memory, self.filter, &filter, *kind != ConvolutionKind::BackwardFilter)?;
        let mut y = TensorArray::read(memory, self.output, output, *kind != ConvolutionKind::Forward)?;
        if self.has_tf32 && operation.math != FMA_MATH && input.element == crate::element::Element::F32 {
            let all = x.numbers.iter_mut().chain(&mut w.numbers).chain(&mut y.numbers);
            all.for_each(|number| *number = tf32((*number, 0.0)).0);
        }
        self.sum(&mut x, &mut w, &mut y);
        let (mut made, address, tensor) = match kind {
            ConvolutionKind::Forward => (y, self.output, output),
            ConvolutionKind::BackwardData => (x, self.input, input),
            ConvolutionKind::BackwardFilter => (w, self.filter, &filter),
        };
        let before = TensorArray::read(memory, address, tensor, self.beta != 0.0)?;
        for (number, before) in made.numbers.iter_mut().zip(before.numbers) {
            *number = self.alpha * *number + if self.beta == 0.0 { 0.0 } else { self.beta * before };
        }
        made.write(memory, address, tensor)
    }

    /// Adds all products to the array that is computed: `y[n, k, p] += x[n, c, p * stride + r * dilation - padding]
    /// w[k, c, r]`, or one of its derivatives.
    fn sum(&self, x: &mut TensorArray, w: &mut TensorArray, y: &mut TensorArray) {
        let Convolution { kind, operation, .. } = &self.convolution;
        let (padding, stride) = (spatial(&operation.padding, 0), spatial(&operation.stride, 1));
        let dilation = spatial(&operation.dilation, 1);
        let ([_, _, id, ih, iw], [outputs, per_group, fd, fh, fw]) = (x.sizes, w.sizes);
        let (inside, per_output) = ([id, ih, iw], outputs / operation.groups);
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

/// All places of a block of three dimensions.
fn grid([a, b, c]: [usize; 3]) -> Vec<[usize; 3]> {
    (0..a).flat_map(|i| (0..b).flat_map(move |j| (0..c).map(move |k| [i, j, k]))).collect()
}
