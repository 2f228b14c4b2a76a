//! Convolutions as loops over strided arrays, partitioned for threads. Depends on shapes only, not on LLVM or memory.

use std::ops::Range;

use xla_hlo::ops::{Convolution, WindowDim};
use xla_hlo::{ArrayShape, strides};

use crate::plans::chunks::Chunks;

/// Dimension with its strides in elements; the stride is 0 in an array without the dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Number of steps.
    pub extent: usize,
    /// Stride in the input.
    pub input: usize,
    /// Stride in the kernel.
    pub kernel: usize,
    /// Stride in the result.
    pub output: usize,
}

/// Dimension that the window slides over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spatial {
    /// Movement of the window; its size is the kernel's.
    pub window: WindowDim,
    /// Number of elements of the input.
    pub base: usize,
    /// Number of positions of the window; strides of the input's elements, the kernel's and the positions.
    pub axis: Axis,
}

/// `out[n, p, g, o] = sum over c, k of input[n, place(p, k), g, c] * kernel[k, c, g, o]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvolutionPlan {
    /// Groups `g`; the strides in kernel and result are the strides of `outputs` times its extent.
    pub groups: Axis,
    /// Images `n` of a group.
    pub images: Axis,
    /// Channels `c` of a group, which are summed over.
    pub channels: Axis,
    /// Channels `o` of the result of a group.
    pub outputs: Axis,
    /// Positions `p` with the window's elements `k`.
    pub spatial: Vec<Spatial>,
    /// Offset of the first element of the kernel.
    pub kernel_first: usize,
    /// Offset of the first element of the result.
    pub output_first: usize,
}

impl ConvolutionPlan {
    /// Creates the plan of a convolution between arrays in their layouts.
    pub fn new(op: &Convolution, input: &ArrayShape, kernel: &ArrayShape, out: &ArrayShape) -> ConvolutionPlan {
        let dims = &op.dims;
        let [x, w, y] = [input, kernel, out].map(|s| strides(s.dims(), &s.minor_to_major()));
        let count = op.groups();
        let images = input.dims()[dims.input_batch] / op.batch_group_count;
        let channels = kernel.dims()[dims.kernel_input_feature];
        let outputs = kernel.dims()[dims.kernel_output_feature] / count;
        let (batch, feature) = (x[dims.input_batch], x[dims.input_feature]);
        let group = if op.batch_group_count > 1 { batch * images } else { feature * channels };
        let (from, to) = (w[dims.kernel_output_feature], y[dims.output_feature]);
        let spatial = op.window.dims.iter().enumerate().map(|(d, &window)| Spatial {
            window,
            base: input.dims()[dims.input_spatial[d]],
            axis: Axis {
                extent: out.dims()[dims.output_spatial[d]],
                input: x[dims.input_spatial[d]],
                kernel: w[dims.kernel_spatial[d]],
                output: y[dims.output_spatial[d]],
            },
        });
        ConvolutionPlan {
            groups: Axis { extent: count, input: group, kernel: from * outputs, output: to * outputs },
            images: Axis { extent: images, input: batch, kernel: 0, output: y[dims.output_batch] },
            channels: Axis { extent: channels, input: feature, kernel: w[dims.kernel_input_feature], output: 0 },
            outputs: Axis { extent: outputs, input: 0, kernel: from, output: to },
            spatial: spatial.collect(),
            kernel_first: 0,
            output_first: 0,
        }
    }

    /// Encodes the plan as numbers that generated code can carry.
    pub fn numbers(&self) -> Vec<i64> {
        let mut numbers = Vec::new();
        let push = |numbers: &mut Vec<i64>, axis: &Axis| {
            numbers.extend([axis.extent, axis.input, axis.kernel, axis.output].map(|n| n as i64));
        };
        for axis in [&self.groups, &self.images, &self.channels, &self.outputs] {
            push(&mut numbers, axis);
        }
        for Spatial { window, base, axis } in &self.spatial {
            push(&mut numbers, axis);
            let (dilation, holes) = (window.window_dilation as i64, window.base_dilation as i64);
            numbers.extend([*base as i64, window.size as i64, window.stride as i64, window.pad_low, window.pad_high]);
            numbers.extend([dilation, holes, i64::from(window.reversal)]);
        }
        numbers
    }

    /// Decodes the numbers of [`ConvolutionPlan::numbers`].
    pub fn from_numbers(numbers: &[i64]) -> ConvolutionPlan {
        let at = |i: usize| numbers.get(i).copied().unwrap_or_default();
        let size = |i: usize| at(i) as usize;
        let axis = |i: usize| Axis { extent: size(i), input: size(i + 1), kernel: size(i + 2), output: size(i + 3) };
        let spatial = (16..numbers.len()).step_by(12).map(|i| Spatial {
            axis: axis(i),
            base: size(i + 4),
            window: WindowDim {
                size: size(i + 5),
                stride: size(i + 6),
                pad_low: at(i + 7),
                pad_high: at(i + 8),
                window_dilation: size(i + 9),
                base_dilation: size(i + 10),
                reversal: at(i + 11) != 0,
            },
        });
        ConvolutionPlan {
            groups: axis(0),
            images: axis(4),
            channels: axis(8),
            outputs: axis(12),
            spatial: spatial.collect(),
            kernel_first: 0,
            output_first: 0,
        }
    }

    /// Splits the convolution into phases without base dilation. Results that no phase computes are 0.
    ///
    /// With `h - 1` holes between the elements of the input, every `h`th position meets input elements at the same
    /// elements of the window, every `h`th one. All other products are with holes. Dimensions with a stride or a window
    /// dilation other than 1 are not split.
    pub fn without_holes(&self) -> Vec<ConvolutionPlan> {
        let each = |plans: Vec<ConvolutionPlan>, d: usize| plans.iter().flat_map(|plan| plan.phases(d)).collect();
        (0..self.spatial.len()).fold(vec![self.clone()], each)
    }

    /// Splits the convolution into phases along one dimension; does nothing for a stride or a window dilation other
    /// than 1.
    fn phases(&self, d: usize) -> Vec<ConvolutionPlan> {
        let Spatial { window, axis, .. } = self.spatial[d];
        let holes = window.base_dilation;
        if holes == 1 || window.stride != 1 || window.window_dilation != 1 {
            return vec![self.clone()];
        }
        let mut phases = Vec::new();
        for position in 0..holes.min(axis.extent) {
            // First element of the window that meets an element of the input, and its index.
            let place = position as i128 - i128::from(window.pad_low);
            let tap = (-place).rem_euclid(holes as i128) as usize;
            if tap >= window.size {
                continue;
            }
            let size = (window.size - tap).div_ceil(holes);
            let kernel = if window.reversal { window.size - 1 - tap - (size - 1) * holes } else { tap };
            let mut plan = self.clone();
            plan.kernel_first += kernel * axis.kernel;
            plan.output_first += position * axis.output;
            let phase = &mut plan.spatial[d];
            phase.axis.extent = (axis.extent - position).div_ceil(holes);
            // A stride without a second step may overflow; it is not used.
            phase.axis.kernel = axis.kernel.wrapping_mul(holes);
            phase.axis.output = axis.output.wrapping_mul(holes);
            // The quotient of a padding, so it fits.
            let pad_low = -((place + tap as i128) / holes as i128) as i64;
            phase.window = WindowDim { size, pad_low, pad_high: 0, base_dilation: 1, ..window };
            phases.push(plan);
        }
        phases
    }

    /// Returns the number of elements of the result.
    pub fn results(&self) -> usize {
        let places = self.spatial.iter().map(|s| s.axis.extent);
        count(places.chain([self.groups.extent, self.images.extent, self.outputs.extent]))
    }

    /// Returns the number of products that are summed for one result.
    pub fn k(&self) -> usize {
        count(self.spatial.iter().map(|s| s.window.size).chain([self.channels.extent]))
    }

    /// Returns the extents of all positions: images, then spatial dimensions, outermost first.
    pub fn positions(&self) -> Vec<usize> {
        std::iter::once(self.images.extent).chain(self.spatial.iter().map(|s| s.axis.extent)).collect()
    }

    /// Whether every element of every window is an element of the input.
    pub fn reaches_no_padding(&self) -> bool {
        self.spatial.iter().all(|s| {
            let last = (s.axis.extent as i128 - 1) * s.window.stride as i128
                + (s.window.size as i128 - 1) * s.window.window_dilation as i128
                - i128::from(s.window.pad_low);
            s.window.base_dilation == 1 && s.window.pad_low <= 0 && last < s.base as i128
        })
    }
}

/// Returns the product of extents. Arrays of these extents exist, so the product can only saturate if another extent is
/// 0.
fn count(extents: impl Iterator<Item = usize>) -> usize {
    extents.fold(1, usize::saturating_mul)
}

/// Unit of work of one thread: channels of the result at positions of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvolutionChunk {
    /// Number of the group; 0 if vectors span several groups.
    pub group: usize,
    /// Channels of the group's result, or of all groups if vectors span several.
    pub outputs: Range<usize>,
    /// Images, then positions of each spatial dimension.
    pub positions: Vec<Range<usize>>,
}

/// Convolution that is split into chunks.
#[derive(Clone, Debug)]
pub struct ConvolutionChunks {
    groups: usize,
    outputs: Chunks,
    positions: Vec<Chunks>,
}

/// Minimum work of a chunk in multiplications: about twenty microseconds.
const CHUNK_WORK: usize = 1 << 19;
/// Average number of chunks for each thread, for load balancing.
const CHUNKS_A_THREAD: usize = 4;
/// Minimum number of positions of a chunk, because each chunk packs its part of the kernel.
const FEWEST_POSITIONS: usize = 96;
/// Approximate maximum number of elements of packed input of a chunk, which should fit the L2 cache.
const PACKED_ELEMENTS: usize = 64 << 10;
/// Maximum number of positions of a chunk, so that its results stay in the cache while sums are accumulated.
const MOST_POSITIONS: usize = 1024;

impl ConvolutionChunks {
    /// Splits a convolution for `threads` threads. Each chunk has one of `groups` and a multiple of `lanes` of the
    /// `outputs`, and packs `channels` values for each position.
    pub fn new(
        plan: &ConvolutionPlan,
        threads: usize,
        (groups, outputs, lanes, channels): (usize, usize, usize, usize),
    ) -> ConvolutionChunks {
        let extents = plan.positions();
        let positions: usize = extents.iter().product();
        let work = positions.saturating_mul(outputs).saturating_mul(plan.k());
        let worth = if threads < 2 {
            1
        } else {
            (work.saturating_mul(groups) / CHUNK_WORK).clamp(1, threads * CHUNKS_A_THREAD)
        };
        let wanted = worth.div_ceil(groups);
        let most = (PACKED_ELEMENTS / channels.max(1)).clamp(FEWEST_POSITIONS, MOST_POSITIONS);
        let count = wanted.min(positions / FEWEST_POSITIONS).max(positions.div_ceil(most)).max(1);
        let positions = cut_outermost(&extents, positions.div_ceil(count));
        let made: usize = positions.iter().map(Chunks::count).product();
        ConvolutionChunks { groups, outputs: Chunks::new(outputs, wanted.div_ceil(made.max(1)), lanes), positions }
    }

    /// Returns the total number of chunks.
    pub fn count(&self) -> usize {
        self.groups * self.outputs.count() * self.positions.iter().map(Chunks::count).product::<usize>()
    }

    /// Returns a chunk. Consecutive chunks share positions, so that threads share the input that they read.
    pub fn get(&self, mut number: usize) -> ConvolutionChunk {
        let mut next = |count: usize| {
            let digit = number % count.max(1);
            number /= count.max(1);
            digit
        };
        let outputs = self.outputs.get(next(self.outputs.count()));
        let mut positions: Vec<Range<usize>> =
            self.positions.iter().rev().map(|cut| cut.get(next(cut.count()))).collect();
        positions.reverse();
        ConvolutionChunk { group: next(self.groups), outputs, positions }
    }
}

/// Splits positions into boxes of about `size`: whole inner axes, single steps of outer axes, and a range of the axis
/// in between.
fn cut_outermost(extents: &[usize], size: usize) -> Vec<Chunks> {
    let mut room = size.max(1);
    let mut cuts: Vec<Chunks> = extents
        .iter()
        .rev()
        .map(|&extent| {
            let steps = room.min(extent).max(1);
            room /= steps;
            Chunks::new(extent, extent.div_ceil(steps), 1)
        })
        .collect();
    cuts.reverse();
    cuts
}
