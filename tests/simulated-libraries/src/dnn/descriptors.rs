//! Descriptors of tensors, filters and convolutions, with the limits of NVIDIA's documentation of the functions that
//! set them.

use super::{Dnn, Status};
use crate::element::Element;
use crate::refusal::wrong;

/// `CUDNN_DIM_MAX`.
const MOST_DIMENSIONS: usize = 8;

/// Elements of an array with all that lies between them, at most.
const MOST_ELEMENTS: u64 = 2 << 30;

/// `cudnnTensorDescriptor_t`: batch, channels, spatial dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TensorDescriptor {
    pub element: Element,
    pub sizes: Vec<usize>,
    /// In elements.
    pub strides: Vec<usize>,
}

/// `cudnnFilterDescriptor_t`: output channels, input channels of a group, spatial dimensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FilterDescriptor {
    pub element: Element,
    /// Whether channels are innermost in memory.
    pub channels_last: bool,
    pub sizes: Vec<usize>,
}

/// `cudnnConvolutionDescriptor_t`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConvolutionDescriptor {
    pub padding: Vec<usize>,
    pub stride: Vec<usize>,
    pub dilation: Vec<usize>,
    /// Whether the filter runs backwards.
    pub is_turned: bool,
    pub compute: Element,
    /// `cudnnMathType_t`.
    pub math: u32,
    pub groups: usize,
}

/// `cudnnDataType_t`, as far as it is simulated.
fn element(number: u32) -> Dnn<Element> {
    Ok(match number {
        0 => Element::F32,
        1 => Element::F64,
        2 => Element::F16,
        9 => Element::Bf16,
        _ => return wrong(Status::NOT_SUPPORTED, format!("data type {number} is not simulated")),
    })
}

/// Numbers of which none is less than that.
fn numbers(what: &str, list: &[i32], least: i32) -> Dnn<Vec<usize>> {
    if let Some(bad) = list.iter().find(|number| **number < least) {
        return wrong(Status::BAD_PARAM, format!("{what} cannot be {bad}"));
    }
    Ok(list.iter().map(|number| *number as usize).collect())
}

impl TensorDescriptor {
    pub fn new(number: u32, sizes: &[i32], strides: &[i32]) -> Dnn<TensorDescriptor> {
        if !(4..=MOST_DIMENSIONS).contains(&sizes.len()) {
            let sentence = format!("an array of {} dimensions; there are 4 to {MOST_DIMENSIONS}", sizes.len());
            return wrong(Status::NOT_SUPPORTED, sentence);
        }
        let element = element(number)?;
        let (sizes, strides) = (numbers("a size", sizes, 1)?, numbers("a stride", strides, 1)?);
        let tensor = TensorDescriptor { element, sizes, strides };
        if tensor.extent() > MOST_ELEMENTS {
            return wrong(Status::NOT_SUPPORTED, format!("an array of more than {MOST_ELEMENTS} elements"));
        }
        Ok(tensor)
    }

    /// Elements from the first one to the last one.
    pub fn extent(&self) -> u64 {
        let reach = |(size, stride): (&usize, &usize)| (*size as u64 - 1).saturating_mul(*stride as u64);
        self.sizes.iter().zip(&self.strides).map(reach).fold(1, u64::saturating_add)
    }

    /// Whether channels are innermost, and nothing lies between elements.
    pub fn is_channels_last(&self) -> bool {
        self.strides == strides(&self.sizes, true)
    }
}

impl FilterDescriptor {
    pub fn new(number: u32, format: u32, sizes: &[i32]) -> Dnn<FilterDescriptor> {
        if !(3..=MOST_DIMENSIONS).contains(&sizes.len()) {
            let sentence = format!("a filter of {} dimensions; there are 3 to {MOST_DIMENSIONS}", sizes.len());
            return wrong(Status::NOT_SUPPORTED, sentence);
        }
        let channels_last = match format {
            0 => false,
            1 => true,
            _ => return wrong(Status::NOT_SUPPORTED, format!("format {format} is not simulated")),
        };
        Ok(FilterDescriptor { element: element(number)?, channels_last, sizes: numbers("a size", sizes, 1)? })
    }

    /// As an array, which a filter fills without gaps.
    pub fn tensor(&self) -> TensorDescriptor {
        TensorDescriptor {
            element: self.element,
            sizes: self.sizes.clone(),
            strides: strides(&self.sizes, self.channels_last),
        }
    }
}

/// Strides of an array without gaps.
fn strides(sizes: &[usize], channels_last: bool) -> Vec<usize> {
    let rank = sizes.len();
    let mut order: Vec<usize> = (0..rank).collect();
    if channels_last {
        order.remove(1);
        order.push(1);
    }
    let mut strides = vec![1; rank];
    let mut stride = 1usize;
    for dimension in order.into_iter().rev() {
        strides[dimension] = stride;
        stride = stride.saturating_mul(sizes[dimension]);
    }
    strides
}

impl ConvolutionDescriptor {
    pub fn new(
        padding: &[i32],
        stride: &[i32],
        dilation: &[i32],
        mode: u32,
        compute: u32,
    ) -> Dnn<ConvolutionDescriptor> {
        if padding.is_empty() || padding.len() > MOST_DIMENSIONS - 2 {
            return wrong(Status::NOT_SUPPORTED, format!("a convolution of {} dimensions", padding.len()));
        }
        if mode > 1 {
            return wrong(Status::BAD_PARAM, format!("there is no mode {mode}"));
        }
        Ok(ConvolutionDescriptor {
            padding: numbers("a padding", padding, 0)?,
            stride: numbers("a stride", stride, 1)?,
            dilation: numbers("a dilation", dilation, 1)?,
            is_turned: mode == 0,
            compute: element(compute)?,
            math: 0,
            groups: 1,
        })
    }

    pub fn set_math(&mut self, math: u32) -> Dnn {
        if math > 3 {
            return wrong(Status::BAD_PARAM, format!("there is no type of mathematics {math}"));
        }
        self.math = math;
        Ok(())
    }

    pub fn set_groups(&mut self, groups: i32) -> Dnn {
        self.groups = numbers("a number of groups", &[groups], 1)?[0];
        Ok(())
    }
}
