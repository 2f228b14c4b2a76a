//! Checks of the sizes and types of convolutions, and graphs of a convolution with its epilogue.

use super::descriptors::{ConvolutionDescriptor, TensorDescriptor};
use super::{Dnn, Status};
use crate::element::Element;
use crate::refusal::wrong;

/// Array that a convolution computes from the two others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConvolutionKind {
    Forward,
    BackwardData,
    BackwardFilter,
}

/// Convolution with all its descriptors.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Convolution {
    pub kind: ConvolutionKind,
    pub input: TensorDescriptor,
    pub filter: TensorDescriptor,
    pub output: TensorDescriptor,
    pub operation: ConvolutionDescriptor,
    pub alpha: f64,
    pub beta: f64,
}

/// Elementwise operation of an epilogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Add,
    Relu { keeps_nan: bool },
    Gelu,
}

/// Convolution with its epilogue.
#[derive(Debug)]
pub(super) struct Graph {
    pub handle: i64,
    pub capability: u32,
    pub convolution: Convolution,
    pub steps: Vec<Step>,
    /// Tensor that is added.
    pub bias: Option<TensorDescriptor>,
    /// Result of the graph.
    pub result: TensorDescriptor,
}

impl Graph {
    /// Returns the tensors of the convolution, the bias and the result.
    pub fn tensors(&self) -> impl Iterator<Item = &TensorDescriptor> {
        let Convolution { input, filter, output, .. } = &self.convolution;
        [input, filter, output].into_iter().chain(&self.bias).chain([&self.result])
    }
}

impl Convolution {
    /// Returns the tensor that the convolution computes.
    pub fn made(&self) -> &TensorDescriptor {
        match self.kind {
            ConvolutionKind::Forward => &self.output,
            ConvolutionKind::BackwardData => &self.input,
            ConvolutionKind::BackwardFilter => &self.filter,
        }
    }

    /// Returns the number of groups of channels.
    pub fn groups(&self) -> usize {
        self.input.sizes[1] / self.filter.sizes[1]
    }

    /// Checks that descriptors match.
    pub fn check(&self, capability: u32) -> Dnn {
        let Convolution { input, filter, output, operation, .. } = self;
        let bad = |why: &str| wrong(Status::SHAPE_MISMATCH, format!("{why}: {self:?}"));
        let rank = input.sizes.len();
        if [filter.sizes.len(), output.sizes.len(), operation.padding.len() + 2] != [rank; 3] {
            return bad("different numbers of dimensions");
        }
        if !(4..=5).contains(&rank) {
            return wrong(Status::NOT_SUPPORTED, format!("neither two nor three spatial dimensions: {self:?}"));
        }
        let fits = input.sizes[0] == output.sizes[0]
            && input.sizes[1].is_multiple_of(filter.sizes[1])
            && filter.sizes[0] == output.sizes[1]
            && filter.sizes[0].is_multiple_of(self.groups());
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
        // A virtual tensor may have the compute type.
        let made = output.element == element || (output.is_virtual && output.element == operation.compute);
        if filter.element != element || !made || !fits {
            return wrong(Status::NOT_SUPPORTED, format!("no such combination of types: {self:?}"));
        }
        if element == Element::Bf16 && capability < 80 {
            return wrong(Status::ARCH_MISMATCH, "bf16 on a GPU before sm_80");
        }
        Ok(())
    }
}

/// Returns the output size of a spatial dimension; `None` if the input is too short.
fn output_size(convolution: &Convolution, dimension: usize) -> Option<usize> {
    let ConvolutionDescriptor { padding, stride, dilation, .. } = &convolution.operation;
    let reach = (convolution.filter.sizes[2 + dimension] - 1).checked_mul(dilation[dimension])? + 1;
    let padded = convolution.input.sizes[2 + dimension] + 2 * padding[dimension];
    Some(padded.checked_sub(reach)? / stride[dimension] + 1)
}
