//! Convolutions that cuDNN supports, and their algorithms: the tables under `cudnnConvolutionForward` and its like.
//! Where those leave it open, a question is answered with no.

use super::descriptors::{ConvolutionDescriptor, FilterDescriptor, TensorDescriptor};
use super::{Dnn, Status};
use crate::element::Element;
use crate::refusal::{none, wrong};

/// The one of the three arrays that is computed from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConvolutionKind {
    Forward,
    BackwardData,
    BackwardFilter,
}

/// A convolution with all its descriptions.
#[derive(Clone, Debug)]
pub(super) struct Convolution {
    pub kind: ConvolutionKind,
    pub input: TensorDescriptor,
    pub filter: FilterDescriptor,
    pub output: TensorDescriptor,
    pub operation: ConvolutionDescriptor,
}

/// Multiples that workspaces are of.
const UNIT: usize = 256;

/// Algorithms that accumulate products, by their numbers in the header.
const FORWARD_IMPLICIT: u32 = 0;
const FORWARD_PRECOMPUTED: u32 = 1;
const FORWARD_EXPLICIT: u32 = 2;
const BACKWARD_ATOMIC: u32 = 0;
const BACKWARD_SUMMED: u32 = 1;

impl Convolution {
    /// Sees that descriptions fit to each other.
    pub fn check(&self, capability: u32) -> Dnn {
        let Convolution { input, filter, output, operation, .. } = self;
        let bad = |why: &str| wrong(Status::SHAPE_MISMATCH, format!("{why}: {self:?}"));
        let rank = input.sizes.len();
        if [filter.sizes.len(), output.sizes.len(), operation.padding.len() + 2] != [rank; 3] {
            return bad("different numbers of dimensions");
        }
        if rank > 5 {
            return wrong(Status::NOT_SUPPORTED, format!("more than three spatial dimensions: {self:?}"));
        }
        let groups = operation.groups;
        let fits = input.sizes[0] == output.sizes[0]
            && filter.sizes[1].checked_mul(groups) == Some(input.sizes[1])
            && filter.sizes[0] == output.sizes[1]
            && filter.sizes[0].is_multiple_of(groups);
        if !fits {
            return bad("batches or channels do not fit to each other");
        }
        for dimension in 0..rank - 2 {
            let made = output_size(self, dimension);
            if made != Some(output.sizes[2 + dimension]) {
                return bad(&format!("spatial dimension {dimension} becomes {made:?}"));
            }
        }
        self.check_types(capability)
    }

    fn check_types(&self, capability: u32) -> Dnn {
        let Convolution { input, filter, output, operation, .. } = self;
        let element = input.element;
        let fits = match element {
            Element::F16 => matches!(operation.compute, Element::F32 | Element::F16),
            Element::Bf16 => operation.compute == Element::F32,
            other => operation.compute == other,
        };
        if [filter.element, output.element] != [element; 2] || !fits {
            return wrong(Status::NOT_SUPPORTED, format!("no such combination of types: {self:?}"));
        }
        if element == Element::Bf16 && capability < 80 {
            return wrong(Status::ARCH_MISMATCH, "bf16 on a GPU before sm_80");
        }
        Ok(())
    }

    /// Bytes of workspace for an algorithm, of convolutions that were checked.
    pub fn workspace(&self, algorithm: u32) -> Dnn<usize> {
        let Convolution { kind, input, filter, output, operation } = self;
        let is_dilated = operation.dilation.iter().any(|dilation| *dilation > 1);
        let is_flat = input.sizes.len() == 4;
        if filter.channels_last {
            let lies = input.is_channels_last() && output.is_channels_last();
            if !lies || input.element == Element::F64 {
                return none(Status::NOT_SUPPORTED);
            }
        }
        let (all, outputs) = (filter.sizes.iter().product::<usize>(), output.sizes.iter().product::<usize>());
        let bytes = match (kind, algorithm) {
            (ConvolutionKind::Forward, FORWARD_IMPLICIT) if is_flat || !filter.channels_last => 0,
            (ConvolutionKind::Forward, FORWARD_PRECOMPUTED) if !is_dilated => {
                filter.sizes[2..].iter().product::<usize>() * 4
            }
            (ConvolutionKind::Forward, FORWARD_EXPLICIT) if is_flat && !is_dilated && !filter.channels_last => {
                outputs.saturating_mul(input.element.bytes())
            }
            (ConvolutionKind::BackwardData | ConvolutionKind::BackwardFilter, BACKWARD_ATOMIC) => 0,
            (ConvolutionKind::BackwardData | ConvolutionKind::BackwardFilter, BACKWARD_SUMMED) => all * 4,
            _ => return none(Status::NOT_SUPPORTED),
        };
        Ok(bytes.next_multiple_of(UNIT))
    }
}

/// Output size of a spatial dimension; none if it is too short.
fn output_size(convolution: &Convolution, dimension: usize) -> Option<usize> {
    let ConvolutionDescriptor { padding, stride, dilation, .. } = &convolution.operation;
    let reach = (convolution.filter.sizes[2 + dimension] - 1).checked_mul(dilation[dimension])? + 1;
    let padded = convolution.input.sizes[2 + dimension] + 2 * padding[dimension];
    Some(padded.checked_sub(reach)? / stride[dimension] + 1)
}
