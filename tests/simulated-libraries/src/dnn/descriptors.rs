//! Descriptors of tensors and convolutions, with the limits of their attributes in NVIDIA's documentation.

use super::{Dnn, Status};
use crate::element::Element;
use crate::refusal::wrong;

/// Maximum number of elements of an array, gaps included.
const MOST_ELEMENTS: u64 = 2 << 30;

/// `CUDNN_BACKEND_TENSOR_DESCRIPTOR`. Dimensions are batch, channels, spatial dimensions; those of a filter are output
/// channels, input channels of a group, spatial dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TensorDescriptor {
    pub id: i64,
    pub element: Element,
    pub sizes: Vec<usize>,
    /// Strides in elements.
    pub strides: Vec<usize>,
    pub alignment: u64,
    /// Whether the tensor is an intermediate result without memory.
    pub is_virtual: bool,
}

/// `CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConvolutionDescriptor {
    pub padding: Vec<usize>,
    pub stride: Vec<usize>,
    pub dilation: Vec<usize>,
    /// Whether the filter is reversed (a true convolution instead of a cross-correlation).
    pub is_turned: bool,
    pub compute: Element,
}

/// Converts a `cudnnDataType_t`; other types are not simulated.
pub(super) fn element(number: i64) -> Dnn<Element> {
    Ok(match number {
        0 => Element::F32,
        1 => Element::F64,
        2 => Element::F16,
        9 => Element::Bf16,
        _ => return wrong(Status::NOT_SUPPORTED, format!("data type {number} is not simulated")),
    })
}

/// Converts numbers, none of which may be below `least`.
fn numbers(what: &str, list: &[i64], least: i64) -> Dnn<Vec<usize>> {
    let number = |&number: &i64| match usize::try_from(number) {
        Ok(size) if number >= least => Ok(size),
        _ => wrong(Status::BAD_PARAM, format!("{what} cannot be {number}")),
    };
    list.iter().map(number).collect()
}

impl TensorDescriptor {
    pub fn new(id: i64, ty: i64, sizes: &[i64], strides: &[i64], alignment: i64) -> Dnn<TensorDescriptor> {
        if sizes.len() != strides.len() || sizes.len() < 3 {
            let sentence = format!("a tensor of {} dimensions with {} strides", sizes.len(), strides.len());
            return wrong(Status::BAD_PARAM, sentence);
        }
        let element = element(ty)?;
        let alignment = match u64::try_from(alignment) {
            Ok(alignment) if alignment.is_power_of_two() && alignment >= element.bytes() as u64 => alignment,
            _ => return wrong(Status::BAD_PARAM, format!("{element:?} cannot be aligned to {alignment} bytes")),
        };
        let (sizes, strides) = (numbers("a size", sizes, 1)?, numbers("a stride", strides, 1)?);
        let tensor = TensorDescriptor { id, element, sizes, strides, alignment, is_virtual: false };
        if tensor.extent() > MOST_ELEMENTS {
            return wrong(Status::NOT_SUPPORTED, format!("an array of more than {MOST_ELEMENTS} elements"));
        }
        Ok(tensor)
    }

    /// Returns the number of elements from the first to the last one, gaps included.
    pub fn extent(&self) -> u64 {
        let reach = |(size, stride): (&usize, &usize)| (*size as u64 - 1).saturating_mul(*stride as u64);
        self.sizes.iter().zip(&self.strides).map(reach).fold(1, u64::saturating_add)
    }

    /// Whether the tensor is dense, with channels innermost or right after the batch. Strides of dimensions of size one
    /// are ignored.
    pub fn lies(&self, channels_last: bool) -> bool {
        let rank = self.sizes.len();
        let mut order: Vec<usize> = (0..rank).collect();
        if channels_last {
            order.remove(1);
            order.push(1);
        }
        let mut dense = 1;
        order.into_iter().rev().all(|dimension| {
            let fits = self.sizes[dimension] == 1 || self.strides[dimension] == dense;
            dense *= self.sizes[dimension];
            fits
        })
    }
}

impl ConvolutionDescriptor {
    /// Creates a descriptor from padding before and after, strides and dilations, with one number for each spatial
    /// dimension.
    pub fn new(rank: i64, lists: [&[i64]; 4], mode: i64, compute: i64) -> Dnn<ConvolutionDescriptor> {
        let [before, after, stride, dilation] = lists;
        if lists.iter().any(|list| i64::try_from(list.len()) != Ok(rank)) {
            return wrong(Status::BAD_PARAM, format!("lists that have not one number for each of {rank} dimensions"));
        }
        if before != after {
            return wrong(Status::NOT_SUPPORTED, format!("paddings {before:?} before and {after:?} after"));
        }
        if !(0..=1).contains(&mode) {
            return wrong(Status::BAD_PARAM, format!("there is no mode {mode}"));
        }
        Ok(ConvolutionDescriptor {
            padding: numbers("a padding", before, 0)?,
            stride: numbers("a stride", stride, 1)?,
            dilation: numbers("a dilation", dilation, 1)?,
            is_turned: mode == 0,
            compute: element(compute)?,
        })
    }
}
