//! Convolution and its two gradients as plain data, with their sizes in cuDNN's form.

use serde::{Deserialize, Serialize};
use xla_hlo::{ElementType, Error, Result};

use super::matmul::Precision;

/// Convolution or one of its gradients: computes one of input, filter and output in `output = activation(input * filter
/// + bias)` from the other two. The filter is not reversed: `output[p] = sum over k of input[p * stride + k * dilation
/// - padding] filter[k]`.
///
/// The arrays of a call are the two given ones in the order of [`ConvolutionKind`], the bias if there is one, the
/// result.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Convolution {
    /// Array that is computed.
    pub kind: ConvolutionKind,
    /// Element type of all arrays.
    #[serde(with = "super::element_type")]
    pub element: ElementType,
    /// Precision of f32 operands.
    pub precision: Precision,
    /// Position of the channels.
    pub channels: Channels,
    /// Number of images.
    pub batch: usize,
    /// Number of independent groups of channels.
    pub groups: usize,
    /// Number of input channels of all groups.
    pub input_channels: usize,
    /// Number of output channels of all groups.
    pub output_channels: usize,
    /// Spatial dimensions, one to three.
    pub spatial: Vec<Spatial>,
    /// Whether a bias of the same element type, one for each output channel, is added; only if the output is computed.
    pub has_bias: bool,
    /// Activation, applied last; only if the output is computed.
    pub activation: ConvolutionActivation,
}

/// Activation of each element of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub(crate) enum ConvolutionActivation {
    /// No activation.
    #[default]
    None,
    /// `max(x, 0)`, which keeps NaN.
    Relu,
    /// `gelu`, approximated by `tanh`.
    GeluTanh,
}

/// Array that is computed. Each variant names the given arrays in the order of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum ConvolutionKind {
    /// Output, from input and filter.
    Forward,
    /// Gradient of the input, from the output's gradient and the filter.
    BackwardInput,
    /// Gradient of the filter, from the input and the output's gradient.
    BackwardFilter,
}

/// Order of the dimensions of all arrays, which are dense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Channels {
    /// `[batch, channels, spatial..]`, filters `[output channels, input channels of a group, spatial..]`.
    First,
    /// `[batch, spatial.., channels]`, filters `[output channels, spatial.., input channels of a group]`.
    Last,
}

/// One spatial dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Spatial {
    /// Size of the input.
    pub input: usize,
    /// Size of the filter.
    pub filter: usize,
    /// Size of the output.
    pub output: usize,
    /// Zeros on each side of the input.
    pub padding: usize,
    /// Distance between positions of the filter in the input.
    pub stride: usize,
    /// Distance between elements of the filter in the input.
    pub dilation: usize,
}

/// Sizes in cuDNN's form: batch, channels, and two or three spatial dimensions, in this order for every memory layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub input: Vec<i32>,
    pub input_strides: Vec<i32>,
    /// Output channels, input channels of a group, spatial dimensions.
    pub filter: Vec<i32>,
    pub filter_strides: Vec<i32>,
    pub output: Vec<i32>,
    pub output_strides: Vec<i32>,
    pub padding: Vec<i32>,
    pub stride: Vec<i32>,
    pub dilation: Vec<i32>,
    pub groups: i32,
}

impl Convolution {
    /// Checks that the library takes the convolution on a GPU of this compute capability. [`Error::Unimplemented`]
    /// states the reason otherwise.
    pub fn check(&self, capability: (u32, u32)) -> Result<()> {
        self.sizes()?;
        let is_known = match self.element {
            ElementType::F16 | ElementType::F32 | ElementType::F64 => true,
            ElementType::BF16 => capability >= (8, 0),
            _ => false,
        };
        if !is_known {
            return Err(refuse(format!(
                "its element type {} is not supported on sm_{}{}",
                self.element, capability.0, capability.1
            )));
        }
        let is_plain = !self.has_bias && self.activation == ConvolutionActivation::None;
        if !is_plain && (self.kind != ConvolutionKind::Forward || self.element == ElementType::F64) {
            return Err(refuse(format!("{:?} of {} cannot have a bias or an activation", self.kind, self.element)));
        }
        Ok(())
    }

    /// Returns the number of arrays of a call.
    pub fn arrays(&self) -> usize {
        3 + usize::from(self.has_bias)
    }

    /// Whether the result has no elements.
    pub fn is_empty(&self) -> bool {
        let has_no = |size: fn(&Spatial) -> usize| self.spatial.iter().any(|dimension| size(dimension) == 0);
        match self.kind {
            ConvolutionKind::Forward => self.batch == 0 || self.output_channels == 0 || has_no(|d| d.output),
            ConvolutionKind::BackwardInput => self.batch == 0 || self.input_channels == 0 || has_no(|d| d.input),
            ConvolutionKind::BackwardFilter => {
                self.output_channels == 0 || self.input_channels == 0 || has_no(|d| d.filter)
            }
        }
    }

    /// Returns the sizes for the library, or the reason why it does not take them.
    pub(crate) fn sizes(&self) -> Result<Sizes> {
        if self.spatial.is_empty() || self.spatial.len() > 3 {
            return Err(refuse(format!("it has {} spatial dimensions", self.spatial.len())));
        }
        let groups = self.groups.max(1);
        if !self.input_channels.is_multiple_of(groups) || !self.output_channels.is_multiple_of(groups) {
            return Err(refuse(format!("its channels are not divisible by {groups} groups")));
        }
        // The library has no one-dimensional convolution: use images of height one.
        let flat = Spatial { input: 1, filter: 1, output: 1, padding: 0, stride: 1, dilation: 1 };
        let flat = (self.spatial.len() == 1).then_some(flat);
        let spatial: Vec<Spatial> = flat.into_iter().chain(self.spatial.iter().copied()).collect();
        spatial.iter().try_for_each(Spatial::check)?;
        let array = |channels: usize, size: fn(&Spatial) -> usize| -> Vec<usize> {
            [self.batch, channels].into_iter().chain(spatial.iter().map(size)).collect()
        };
        let input = array(self.input_channels, |d| d.input);
        let output = array(self.output_channels, |d| d.output);
        let mut filter = array(self.input_channels / groups, |d| d.filter);
        filter[0] = self.output_channels;
        if [&input, &output, &filter].iter().any(|sizes| sizes.contains(&0)) {
            return Err(refuse("one of its arrays has no elements".to_string()));
        }
        let each = |number: fn(&Spatial) -> usize| small(spatial.iter().map(number));
        Ok(Sizes {
            input_strides: self.strides(&input)?,
            filter_strides: self.strides(&filter)?,
            output_strides: self.strides(&output)?,
            input: small(input)?,
            output: small(output)?,
            filter: small(filter)?,
            padding: each(|d| d.padding)?,
            stride: each(|d| d.stride)?,
            dilation: each(|d| d.dilation)?,
            groups: small([groups])?[0],
        })
    }

    /// Returns the strides of a dense array with these sizes: batch, channels, spatial dimensions.
    fn strides(&self, sizes: &[usize]) -> Result<Vec<i32>> {
        let rank = sizes.len();
        // From the innermost dimension outwards.
        let order: Vec<usize> = match self.channels {
            Channels::First => (0..rank).rev().collect(),
            Channels::Last => [1].into_iter().chain((2..rank).rev()).chain([0]).collect(),
        };
        let mut strides = vec![0; rank];
        let mut stride = 1usize;
        for dimension in order {
            strides[dimension] = stride;
            stride = stride.checked_mul(sizes[dimension]).ok_or_else(too_large)?;
        }
        // The library also counts all elements with 32-bit integers.
        small([stride])?;
        small(strides)
    }
}

impl Spatial {
    /// Checks that the output has the size that the library computes.
    pub fn check(&self) -> Result<()> {
        let output = || -> Option<usize> {
            let padded = self.padding.checked_mul(2)?.checked_add(self.input)?;
            let reach = self.filter.checked_sub(1)?.checked_mul(self.dilation)?.checked_add(1)?;
            padded.checked_sub(reach)?.checked_div(self.stride)?.checked_add(1)
        };
        if self.dilation > 0 && output() == Some(self.output) {
            return Ok(());
        }
        Err(refuse(format!(
            "a dimension of {} with a filter of {} has no output of {} with padding {} on each side, stride {}, dilation {}",
            self.input, self.filter, self.output, self.padding, self.stride, self.dilation
        )))
    }
}

fn small(sizes: impl IntoIterator<Item = usize>) -> Result<Vec<i32>> {
    sizes.into_iter().map(|size| i32::try_from(size).map_err(|_| too_large())).collect()
}

fn too_large() -> Error {
    refuse("one of its sizes, strides or numbers of elements exceeds 2147483647".to_string())
}

fn refuse(why: String) -> Error {
    Error::unimplemented(format!("cuDNN does not support this convolution: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spatial(input: usize, filter: usize, output: usize) -> Spatial {
        Spatial { input, filter, output, padding: 1, stride: 2, dilation: 1 }
    }

    fn convolution(channels: Channels, spatial: Vec<Spatial>) -> Convolution {
        Convolution {
            kind: ConvolutionKind::Forward,
            element: ElementType::F32,
            precision: Precision::Exact,
            channels,
            batch: 2,
            groups: 2,
            input_channels: 6,
            output_channels: 4,
            spatial,
            has_bias: false,
            activation: ConvolutionActivation::None,
        }
    }

    #[test]
    fn sizes_are_in_the_librarys_order_and_strides_in_memorys() {
        let images = vec![spatial(7, 3, 4), spatial(10, 3, 5)];
        let first = convolution(Channels::First, images.clone()).sizes().unwrap();
        assert_eq!((&first.input[..], &first.input_strides[..]), (&[2, 6, 7, 10][..], &[420, 70, 10, 1][..]));
        assert_eq!((&first.output[..], &first.output_strides[..]), (&[2, 4, 4, 5][..], &[80, 20, 5, 1][..]));
        assert_eq!((&first.filter[..], first.groups), (&[4, 3, 3, 3][..], 2));
        let last = convolution(Channels::Last, images).sizes().unwrap();
        assert_eq!((&last.input[..], &last.input_strides[..]), (&[2, 6, 7, 10][..], &[420, 1, 60, 6][..]));
        let line = convolution(Channels::Last, vec![spatial(10, 3, 5)]).sizes().unwrap();
        assert_eq!((&line.input[..], &line.input_strides[..]), (&[2, 6, 1, 10][..], &[60, 1, 60, 6][..]));
        assert_eq!((&line.padding[..], &line.stride[..], &line.dilation[..]), (&[0, 1][..], &[1, 2][..], &[1, 1][..]));
        let room = convolution(Channels::First, vec![spatial(3, 1, 3); 3]).sizes();
        assert_eq!(room.unwrap().input, [2, 6, 3, 3, 3]);
    }

    #[test]
    fn what_the_library_takes() {
        let good = convolution(Channels::First, vec![spatial(7, 3, 4)]);
        good.check((7, 0)).unwrap();
        let told = |change: &dyn Fn(&mut Convolution)| {
            let mut convolution = good.clone();
            change(&mut convolution);
            let error = convolution.check((7, 0)).unwrap_err();
            error.message().trim_start_matches("cuDNN does not support this convolution: ").to_string()
        };
        insta::assert_snapshot!(told(&|c| c.element = ElementType::BF16), @"its element type bf16 is not supported on sm_70");
        insta::assert_snapshot!(told(&|c| c.element = ElementType::S32), @"its element type s32 is not supported on sm_70");
        insta::assert_snapshot!(
            told(&|c| (c.element, c.has_bias) = (ElementType::F64, true)),
            @"Forward of f64 cannot have a bias or an activation"
        );
        let gradient = |c: &mut Convolution| {
            (c.kind, c.activation) = (ConvolutionKind::BackwardInput, ConvolutionActivation::Relu);
        };
        insta::assert_snapshot!(told(&gradient), @"BackwardInput of f32 cannot have a bias or an activation");
        insta::assert_snapshot!(told(&|c| c.groups = 4), @"its channels are not divisible by 4 groups");
        insta::assert_snapshot!(told(&|c| c.spatial.clear()), @"it has 0 spatial dimensions");
        insta::assert_snapshot!(told(&|c| c.batch = 0), @"one of its arrays has no elements");
        insta::assert_snapshot!(told(&|c| c.batch = usize::MAX), @"one of its sizes, strides or numbers of elements exceeds 2147483647");
        let told_of = |change: fn(&mut Spatial)| told(&|c| change(&mut c.spatial[0]));
        insta::assert_snapshot!(
            told_of(|d| d.output = 5),
            @"a dimension of 7 with a filter of 3 has no output of 5 with padding 1 on each side, stride 2, dilation 1"
        );
        let changes: [fn(&mut Spatial); 4] =
            [|d| d.stride = 0, |d| d.dilation = 0, |d| d.filter = 10, |d| d.filter = 0];
        for change in changes {
            assert!(told_of(change).starts_with("a dimension of 7 with a filter of "));
        }
    }

    #[test]
    fn results_without_elements_are_nothing() {
        let mut convolution = convolution(Channels::First, vec![spatial(7, 3, 4)]);
        assert!(!convolution.is_empty());
        convolution.batch = 0;
        assert!(convolution.is_empty());
        convolution.kind = ConvolutionKind::BackwardFilter;
        assert!(!convolution.is_empty(), "the filter's gradient is zero, and there");
    }
}
