//! Evaluator of convolutions.

use super::*;
use crate::eval::parallel::PRODUCT;
use crate::ops::WindowDim;
use crate::ops::checks;
use crate::ops::dot_arithmetic::{Domain, Wrapping, converted, elements};
use crate::ops::movement::strided::permuted;
use crate::{ArrayShape, ElementKind, IndexIter, linear_index};

/// Evaluates a convolution in the widest arithmetic for its class of elements; `precision` and `algorithm` only permit
/// less accuracy and are ignored.
pub(super) fn convolution(
    op: &Convolution,
    ev: &mut Evaluator<'_>,
    operands: Vec<Literal>,
    shape: &Shape,
) -> Result<Literal> {
    if op.sparsity != SparsityConfig::default() {
        return Err(Error::unimplemented("convolution of sparse operands (sparsity_config) is not implemented"));
    }
    let [input, kernel] = checks::operands(operands)?;
    let shape = shape.expect_array()?;
    let [lhs, rhs] = [&input, &kernel].map(|operand| operand.array_shape().element_type());
    let ty = Convolution::sum_type(lhs, rhs, shape.element_type());
    let (input, kernel) = (converted(input, ty)?, converted(kernel, ty)?);
    let sums = shape.clone().with_element_type(ty);
    let sums = match ty.kind() {
        ElementKind::Pred => sums_of_products::<bool>(ev, op, &input, &kernel, &sums),
        ElementKind::Signed | ElementKind::Unsigned => sums_of_products::<Wrapping>(ev, op, &input, &kernel, &sums),
        ElementKind::Float => sums_of_products::<f64>(ev, op, &input, &kernel, &sums),
        ElementKind::Complex => sums_of_products::<(f64, f64)>(ev, op, &input, &kernel, &sums),
    };
    converted(sums?, shape.element_type())
}

/// Computes all results in the accumulator type, the common type of `input`, `kernel` and `shape`.
fn sums_of_products<T: Domain>(
    ev: &mut Evaluator<'_>,
    op: &Convolution,
    input: &Literal,
    kernel: &Literal,
    shape: &ArrayShape,
) -> Result<Literal> {
    if shape.dims().contains(&0) {
        return Literal::zeros(shape);
    }
    let mut results = [Literal::zeros(shape)?];
    let slide = Slide::<T>::new(ev, op, input, kernel)?;
    let dims = &op.dims;
    let ty = shape.element_type();
    let work = slide.products().saturating_mul(PRODUCT);
    ev.fill(&mut results, Some(work), &mut slide.taps(vec![0; dims.spatial_rank()]), |_, taps, mut chunk| {
        let mut indices = IndexIter::starting_at(shape.dims(), chunk.range.start);
        for i in chunk.range.clone() {
            let Some(index) = indices.next_index() else { break };
            let position: Vec<usize> = dims.output_spatial.iter().map(|&d| index[d]).collect();
            if taps.output != position {
                *taps = slide.taps(position);
            }
            let sum = slide.sum(taps, index[dims.output_batch], index[dims.output_feature]);
            chunk.set(i, &[sum.to_element(ty).rounded(ty)]);
        }
        Ok(())
    })?;
    let [result] = results;
    Ok(result)
}

/// A kernel `[output channel, window, input channel]` applied to an input `[image, spatial, channel]`.
struct Slide<'a, T> {
    windows: &'a [WindowDim],
    input: Vec<T>,
    /// Sizes of the input's spatial dimensions.
    base: Vec<usize>,
    /// Number of channels of the input.
    channels: usize,
    kernel: Vec<T>,
    /// Window size along each spatial dimension.
    size: Vec<usize>,
    /// Number of input channels of the kernel, which is the size of one feature group.
    kernel_channels: usize,
    /// Number of images of one batch group, which is the batch size of the result.
    images: usize,
    /// Number of output channels of one feature group, and of one batch group.
    outputs: (usize, usize),
}

/// In-bounds taps of the window at one position: linear spatial indices into the input and into the kernel.
#[derive(Clone)]
struct Taps {
    output: Vec<usize>,
    places: Vec<(usize, usize)>,
}

impl<'a, T: Domain> Slide<'a, T> {
    fn new(ev: &mut Evaluator<'_>, op: &'a Convolution, input: &Literal, kernel: &Literal) -> Result<Slide<'a, T>> {
        let dims = &op.dims;
        let order = |first: usize, spatial: &[usize], last: usize| [&[first], spatial, &[last]].concat();
        let mut ordered = |array: &Literal, order: &[usize]| {
            elements(ev, array.array_shape().element_type(), &permuted(array, order))
        };
        let (base, size) = (input.array_shape().dims(), kernel.array_shape().dims());
        let features = size[dims.kernel_output_feature];
        Ok(Slide {
            windows: &op.window.dims,
            input: ordered(input, &order(dims.input_batch, &dims.input_spatial, dims.input_feature))?,
            base: dims.input_spatial.iter().map(|&d| base[d]).collect(),
            channels: base[dims.input_feature],
            kernel: ordered(
                kernel,
                &order(dims.kernel_output_feature, &dims.kernel_spatial, dims.kernel_input_feature),
            )?,
            size: dims.kernel_spatial.iter().map(|&d| size[d]).collect(),
            kernel_channels: size[dims.kernel_input_feature],
            images: base[dims.input_batch] / op.batch_group_count,
            outputs: (features / op.feature_group_count, features / op.batch_group_count),
        })
    }

    /// Returns the maximal number of products that contribute to a result.
    fn products(&self) -> usize {
        self.kernel_channels.saturating_mul(self.size.iter().product())
    }

    fn taps(&self, output: Vec<usize>) -> Taps {
        let held = |d: usize| -> Vec<(usize, usize)> {
            let window = &self.windows[d];
            let place = |k: usize| Some((window.base_index(output[d], k, self.base[d])?, k));
            (0..window.size).filter_map(place).collect()
        };
        let held: Vec<_> = (0..self.windows.len()).map(held).collect();
        let counts: Vec<usize> = held.iter().map(Vec::len).collect();
        let mut choices = IndexIter::new(&counts);
        let mut places = Vec::new();
        while let Some(choice) = choices.next_index() {
            let (at, k): (Vec<usize>, Vec<usize>) = choice.iter().zip(&held).map(|(&i, held)| held[i]).unzip();
            places.push((linear_index(&self.base, &at), linear_index(&self.size, &k)));
        }
        Taps { output, places }
    }

    /// Computes the result for an image, an output channel and the window position of `taps`.
    fn sum(&self, taps: &Taps, image: usize, channel: usize) -> T {
        let first_channel = channel / self.outputs.0 * self.kernel_channels;
        let image = channel / self.outputs.1 * self.images + image;
        let (places, window): (usize, usize) = (self.base.iter().product(), self.size.iter().product());
        taps.places.iter().fold(T::ZERO, |sum, &(at, k)| {
            let at = (image * places + at) * self.channels + first_channel;
            let k = (channel * window + k) * self.kernel_channels;
            let (x, w) = (&self.input[at..at + self.kernel_channels], &self.kernel[k..k + self.kernel_channels]);
            x.iter().zip(w).fold(sum, |sum, (&x, &w)| sum.plus_product(x, w))
        })
    }
}
