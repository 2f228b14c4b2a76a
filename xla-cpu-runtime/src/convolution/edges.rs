//! Correction of results at padded edges if the kernel contains NaN or infinity: padding must contribute nothing.
//!
//! The packed input contains zeros in place of padding, and the product of zero and a non-finite number is NaN. Such
//! kernels are rare, so the affected results are recomputed one product at a time instead of adding a test to the inner
//! loop.
#![expect(unsafe_code, reason = "convolutions work on raw buffers of generated code")]

use super::number::Number;
use crate::plans::convolution::{ConvolutionPlan, Spatial};

/// Recomputes results that padding may have made NaN.
///
/// # Safety
/// The pointers must point to arrays of the plan's shapes, `kernel` and `output` at the plan's first element. No other
/// code may access the result during the call.
pub(super) unsafe fn mend<T: Number>(plan: &ConvolutionPlan, input: *const T, kernel: *const T, output: *mut T) {
    // SAFETY: guaranteed by the caller. Check the results first: they are few, and kernels are large.
    if plan.reaches_no_padding() || unsafe { is_finite_at_edges(plan, output) || is_finite(plan, kernel) } {
        return;
    }
    let mut results = vec![plan.groups.extent, plan.images.extent, plan.outputs.extent];
    results.extend(plan.spatial.iter().map(|s| s.axis.extent));
    for_each(&results, |at| {
        let (group, image, channel, position) = (at[0], at[1], at[2], &at[3..]);
        if !plan.spatial.iter().zip(position).any(|(s, &p)| reaches_out(s, p)) {
            return;
        }
        let along = plan.spatial.iter().zip(position).map(|(s, &p)| p * s.axis.output).sum::<usize>();
        let to = group * plan.groups.output + image * plan.images.output + channel * plan.outputs.output + along;
        let from = group * plan.groups.input + image * plan.images.input;
        let weights = group * plan.groups.kernel + channel * plan.outputs.kernel;
        // SAFETY: an element of the result, of the input's group and image and of the kernel's channel.
        unsafe { output.add(to).write(sum(plan, position, input.add(from), kernel.add(weights))) };
    });
}

/// Returns the sum of products at a position over the elements of its window that exist.
///
/// # Safety
/// `input` must point to the first channel of a group and an image, `kernel` to the first channel of a channel of the
/// result.
unsafe fn sum<T: Number>(plan: &ConvolutionPlan, position: &[usize], input: *const T, kernel: *const T) -> T {
    let mut sum = T::ZERO;
    let taps: Vec<usize> = plan.spatial.iter().map(|s| s.window.size).collect();
    for_each(&taps, |tap| {
        let (mut from, mut weight) = (0, 0);
        for ((s, &p), &step) in plan.spatial.iter().zip(position).zip(tap) {
            let Some(place) = place(s, p, step) else { return };
            from += place * s.axis.input;
            weight += if s.window.reversal { s.window.size - 1 - step } else { step } * s.axis.kernel;
        }
        for channel in 0..plan.channels.extent {
            // SAFETY: the place is inside of the input, the step inside of the window, the channel one of the group's.
            let (x, y) = unsafe {
                (*input.add(from + channel * plan.channels.input), *kernel.add(weight + channel * plan.channels.kernel))
            };
            sum = sum.plus(x.times(y));
        }
    });
    sum
}

/// Whether no product with padding can have been NaN, judged by results of one image. Those at the corners suffice,
/// because their windows cover every step that is in padding for any window; with holes in the input, all are checked.
///
/// # Safety
/// `output` must satisfy the requirements of [`mend`].
unsafe fn is_finite_at_edges<T: Number>(plan: &ConvolutionPlan, output: *const T) -> bool {
    if plan.images.extent == 0 || plan.spatial.iter().any(|s| s.axis.extent == 0) {
        return true;
    }
    let has_holes = plan.spatial.iter().any(|s| s.window.base_dilation > 1);
    let spatial = plan.spatial.iter().map(|s| match s.axis.extent {
        extent if has_holes => (extent, s.axis.output),
        extent => (extent.min(2), (extent - 1) * s.axis.output),
    });
    let axes = [plan.groups, plan.outputs].map(|axis| (axis.extent, axis.output));
    let axes: Vec<(usize, usize)> = axes.into_iter().chain(spatial).collect();
    let extents: Vec<usize> = axes.iter().map(|axis| axis.0).collect();
    let mut finite = true;
    for_each(&extents, |at| {
        let place: usize = at.iter().zip(&axes).map(|(i, axis)| i * axis.1).sum();
        // SAFETY: an element of the result.
        finite &= unsafe { *output.add(place) }.is_finite();
    });
    finite
}

/// Whether all numbers of the kernel are finite.
///
/// # Safety
/// The requirements of [`mend`].
unsafe fn is_finite<T: Number>(plan: &ConvolutionPlan, kernel: *const T) -> bool {
    let axes = [plan.groups, plan.outputs, plan.channels].map(|axis| (axis.extent, axis.kernel));
    let axes: Vec<(usize, usize)> =
        axes.into_iter().chain(plan.spatial.iter().map(|s| (s.window.size, s.axis.kernel))).collect();
    let extents: Vec<usize> = axes.iter().map(|axis| axis.0).collect();
    let mut finite = true;
    for_each(&extents, |at| {
        let place: usize = at.iter().zip(&axes).map(|(i, axis)| i * axis.1).sum();
        // SAFETY: an element of the kernel.
        finite &= unsafe { *kernel.add(place) }.is_finite();
    });
    finite
}

/// Returns the element of the input under a step of the window at a position; `None` in padding and holes.
fn place(s: &Spatial, position: usize, step: usize) -> Option<usize> {
    let at = position as i128 * s.window.stride as i128 + step as i128 * s.window.window_dilation as i128
        - i128::from(s.window.pad_low);
    let holes = s.window.base_dilation as i128;
    (at >= 0 && at % holes == 0 && at / holes < s.base as i128).then_some((at / holes) as usize)
}

fn reaches_out(s: &Spatial, position: usize) -> bool {
    (0..s.window.size).any(|step| place(s, position, step).is_none())
}

/// Calls `f` with every index of an array of those extents.
fn for_each(extents: &[usize], mut f: impl FnMut(&[usize])) {
    if extents.contains(&0) {
        return;
    }
    let mut at = vec![0; extents.len()];
    loop {
        f(&at);
        let next = at.iter().zip(extents).rposition(|(&i, &extent)| i + 1 < extent);
        let Some(next) = next else { return };
        at[next] += 1;
        at[next + 1..].fill(0);
    }
}
