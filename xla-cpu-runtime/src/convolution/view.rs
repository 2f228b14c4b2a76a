//! View of a chunk of a convolution: offsets of positions, of contracted elements and of packed elements.

use std::ops::Range;

use super::pack::{HOLE, Sources};
use super::tile::{Place, Run};
use crate::plans::convolution::{ConvolutionChunk, ConvolutionPlan, Spatial};

/// Role of a dimension of the input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    Image,
    Channel,
    Spatial(usize),
}

/// Part of the contraction that is summed at a time: ranges of channels and of window elements.
#[derive(Clone, Debug)]
pub(super) struct Slab {
    pub channels: Range<usize>,
    pub taps: Vec<Range<usize>>,
}

/// Strides in the array that is read: the input itself or its packed part.
#[derive(Clone, Debug)]
struct Steps {
    image: usize,
    channel: usize,
    /// Strides between adjacent positions and between adjacent elements of the window, for each spatial dimension.
    spatial: Vec<(usize, usize)>,
}

/// Offsets for one slab of a chunk.
pub(super) struct View {
    /// Axes of the packed array, except lanes that span several groups; empty if the input is read in place.
    pub packed: Vec<Sources>,
    /// Offset of the first element that is read in the input; 0 if it is packed.
    pub first: usize,
    pub places: Vec<Place>,
    pub runs: Vec<Run>,
    /// Stride of the elements of a run.
    pub step: usize,
    /// Offsets in the kernel of the elements of the runs, in their order.
    pub kernel: Vec<usize>,
}

/// Returns the input's dimensions in memory order, the outermost first.
pub(super) fn memory_order(plan: &ConvolutionPlan) -> Vec<Role> {
    let mut order = vec![(plan.images.input, Role::Image), (plan.channels.input, Role::Channel)];
    order.extend(plan.spatial.iter().enumerate().map(|(d, s)| (s.axis.input, Role::Spatial(d))));
    order.sort_by_key(|&(stride, _)| std::cmp::Reverse(stride));
    order.into_iter().map(|(_, role)| role).collect()
}

impl Slab {
    /// Returns the slab of the whole contraction.
    pub fn whole(plan: &ConvolutionPlan) -> Slab {
        let taps = plan.spatial.iter().map(|s| 0..s.window.size).collect();
        Slab { channels: 0..plan.channels.extent, taps }
    }

    /// Splits the outermost axis longer than 1 into at most `count` slabs.
    pub fn cut(&self, order: &[Role], count: usize) -> Vec<Slab> {
        let Some(&role) = order.iter().find(|&&role| self.range(role).is_some_and(|r| r.len() > 1)) else {
            return vec![self.clone()];
        };
        let Some(range) = self.range(role).cloned() else { return vec![self.clone()] };
        let size = range.len().div_ceil(count.clamp(1, range.len()));
        let part = |start: usize| {
            let mut slab = self.clone();
            let part = start..(start + size).min(range.end);
            match role {
                Role::Spatial(d) => slab.taps[d] = part,
                Role::Channel | Role::Image => slab.channels = part,
            }
            slab
        };
        range.clone().step_by(size).map(part).collect()
    }

    fn range(&self, role: Role) -> Option<&Range<usize>> {
        match role {
            Role::Image => None,
            Role::Channel => Some(&self.channels),
            Role::Spatial(d) => Some(&self.taps[d]),
        }
    }
}

impl View {
    /// Creates a view that reads the input in place.
    pub fn direct(plan: &ConvolutionPlan, order: &[Role], chunk: &ConvolutionChunk, slab: &Slab) -> View {
        let mut first = chunk.positions[0].start * plan.images.input + slab.channels.start * plan.channels.input;
        for (d, s) in plan.spatial.iter().enumerate() {
            first += first_place(s, &chunk.positions[d + 1], &slab.taps[d]) as usize * s.axis.input;
        }
        let spatial = plan
            .spatial
            .iter()
            .map(|s| (s.window.stride.wrapping_mul(s.axis.input), s.window.window_dilation.wrapping_mul(s.axis.input)));
        let steps = Steps { image: plan.images.input, channel: plan.channels.input, spatial: spatial.collect() };
        View::new(plan, order, chunk, slab, &steps, (first, Vec::new()))
    }

    /// Creates a view that reads a packed array whose elements are `side_by_side` values each.
    pub fn packed(
        plan: &ConvolutionPlan,
        order: &[Role],
        chunk: &ConvolutionChunk,
        slab: &Slab,
        side_by_side: usize,
    ) -> View {
        let mut steps = Steps { image: 0, channel: 0, spatial: vec![(0, 0); plan.spatial.len()] };
        let mut step = side_by_side;
        let mut packed = Vec::with_capacity(order.len());
        for &role in order.iter().rev() {
            let sources: Sources = match role {
                Role::Image => {
                    steps.image = step;
                    chunk.positions[0].clone().map(|i| i * plan.images.input).collect()
                }
                Role::Channel => {
                    steps.channel = step;
                    slab.channels.clone().map(|i| i * plan.channels.input).collect()
                }
                Role::Spatial(d) => {
                    let (positions, taps) = (&chunk.positions[d + 1], &slab.taps[d]);
                    let (sources, position, tap) = places(&plan.spatial[d], positions, taps);
                    // A stride without a second position or element may overflow; it is not used.
                    steps.spatial[d] = (position.wrapping_mul(step), tap.wrapping_mul(step));
                    sources
                }
            };
            step *= sources.len();
            packed.push(sources);
        }
        packed.reverse();
        View::new(plan, order, chunk, slab, &steps, (0, packed))
    }

    fn new(
        plan: &ConvolutionPlan,
        order: &[Role],
        chunk: &ConvolutionChunk,
        slab: &Slab,
        steps: &Steps,
        (first, packed): (usize, Vec<Sources>),
    ) -> View {
        let mut axes = Vec::with_capacity(order.len());
        let mut kernel = vec![0];
        for &role in order {
            let (step, offsets): (usize, Vec<usize>) = match role {
                Role::Image => continue,
                Role::Channel => (steps.channel, slab.channels.clone().map(|c| c * plan.channels.kernel).collect()),
                Role::Spatial(d) => {
                    let Spatial { window, axis, .. } = plan.spatial[d];
                    let index = |tap: usize| if window.reversal { window.size - 1 - tap } else { tap };
                    (steps.spatial[d].1, slab.taps[d].clone().map(|tap| index(tap) * axis.kernel).collect())
                }
            };
            kernel = kernel.iter().flat_map(|&outer| offsets.iter().map(move |&inner| outer + inner)).collect();
            axes.push((offsets.len(), step));
        }
        let (runs, step) = runs(&axes);
        View { packed, first, places: all_places(plan, chunk, steps), runs, step, kernel }
    }
}

/// Returns the position of a window's first element in the input's dimension, with holes and padding counted.
fn first_place(s: &Spatial, positions: &Range<usize>, taps: &Range<usize>) -> i128 {
    let at = |i: usize, step: usize| i as i128 * step as i128;
    at(positions.start, s.window.stride) + at(taps.start, s.window.window_dilation) - i128::from(s.window.pad_low)
}

/// Returns the number of positions from the first to the last that is read, or `None` if it exceeds the number of pairs
/// of a position and an element of the window.
fn span(s: &Spatial, positions: usize, taps: usize) -> Option<usize> {
    let last = |count: usize, step: usize| (count as i128 - 1).max(0).saturating_mul(step as i128);
    let span = last(positions, s.window.stride).saturating_add(last(taps, s.window.window_dilation)).saturating_add(1);
    (span <= positions as i128 * taps as i128).then_some(span as usize)
}

/// Returns the number of elements of the packed input of a slab.
pub(super) fn packed_size(plan: &ConvolutionPlan, chunk: &ConvolutionChunk, slab: &Slab) -> usize {
    let places = plan.spatial.iter().zip(&slab.taps).enumerate().map(|(d, (s, taps))| {
        let positions = chunk.positions[d + 1].len();
        span(s, positions, taps.len()).unwrap_or(positions * taps.len())
    });
    places.fold(chunk.positions[0].len() * slab.channels.len(), usize::saturating_mul)
}

/// Returns a packed spatial dimension, and its strides between adjacent positions and between adjacent elements of the
/// window.
///
/// The dimension contains every position from the first to the last that is read. If that exceeds the number of pairs
/// of an element of the window and a position, it contains each pair instead.
fn places(s: &Spatial, positions: &Range<usize>, taps: &Range<usize>) -> (Sources, usize, usize) {
    let first = first_place(s, positions, taps);
    let (stride, dilation) = (s.window.stride as i128, s.window.window_dilation as i128);
    let holes = s.window.base_dilation as i128;
    let source = |place: i128| {
        let inside = place >= 0 && place % holes == 0 && place / holes < s.base as i128;
        if inside { (place / holes) as usize * s.axis.input } else { HOLE }
    };
    if let Some(span) = span(s, positions.len(), taps.len()) {
        ((0..span).map(|i| source(first + i as i128)).collect(), s.window.stride, s.window.window_dilation)
    } else {
        let of_tap =
            |tap: usize| (0..positions.len()).map(move |p| first + tap as i128 * dilation + p as i128 * stride);
        ((0..taps.len()).flat_map(of_tap).map(source).collect(), 1, positions.len())
    }
}

/// Merges nested axes (extent, stride), outermost first, into contiguous runs; returns them with the stride inside a
/// run.
fn runs(axes: &[(usize, usize)]) -> (Vec<Run>, usize) {
    let mut outer: Vec<(usize, usize)> = axes.iter().copied().filter(|&(extent, _)| extent != 1).collect();
    let (mut length, step) = outer.pop().unwrap_or((1, 1));
    while let Some(&(extent, distance)) = outer.last() {
        if distance != step * length {
            break;
        }
        length *= extent;
        outer.pop();
    }
    let mut offsets = vec![0];
    for (extent, distance) in outer {
        offsets = offsets.iter().flat_map(|&at| (0..extent).map(move |i| at + i * distance)).collect();
    }
    (offsets.into_iter().map(|offset| Run { offset, length }).collect(), step)
}

/// Returns every position of a chunk.
fn all_places(plan: &ConvolutionPlan, chunk: &ConvolutionChunk, steps: &Steps) -> Vec<Place> {
    let mut places = vec![Place { input: 0, output: 0 }];
    let axes = std::iter::once((steps.image, plan.images.output))
        .chain(steps.spatial.iter().zip(&plan.spatial).map(|(&(position, _), s)| (position, s.axis.output)));
    for (range, (input, output)) in chunk.positions.iter().zip(axes) {
        let along = |place: Place| {
            let start = range.start;
            range
                .clone()
                .map(move |i| Place { input: place.input + (i - start) * input, output: place.output + i * output })
        };
        places = places.into_iter().flat_map(along).collect();
    }
    places
}
