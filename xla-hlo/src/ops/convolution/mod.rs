//! Convolutions.

mod attributes;
mod eval;
mod proto;
mod shape;
mod sharding;

use super::{DotAlgorithm, OpRules, Opcode, Precision, ReadAttributes, ShapeContext, Window, dot_arithmetic};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{ElementType, Error, Literal, Result, Shape};

/// Roles of the dimensions of a convolution's arrays (`dim_labels=`). Spatial dimensions are paired by position.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ConvolutionDims {
    /// Batch dimension of the input: `b`.
    pub input_batch: usize,
    /// Channel dimension of the input: `f`.
    pub input_feature: usize,
    /// Spatial dimensions of the input: `0`, `1` and so on.
    pub input_spatial: Vec<usize>,
    /// Input channel dimension of the kernel: `i`.
    pub kernel_input_feature: usize,
    /// Output channel dimension of the kernel: `o`.
    pub kernel_output_feature: usize,
    /// Spatial dimensions of the kernel.
    pub kernel_spatial: Vec<usize>,
    /// Batch dimension of the result.
    pub output_batch: usize,
    /// Channel dimension of the result.
    pub output_feature: usize,
    /// Spatial dimensions of the result, which index window positions.
    pub output_spatial: Vec<usize>,
}

/// `convolution_kind=`: purpose of a convolution; has no effect on its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ConvolutionKind {
    /// Not specified.
    #[default]
    Unset,
    /// Result of a layer.
    Forward,
    /// Gradient of a layer's input.
    InputGradient,
    /// Gradient of a layer's kernel.
    KernelGradient,
}

/// Structured sparsity of an operand: only `kept` elements of each block are stored. A block consists of `block`
/// elements along `dimension` at distance `stride`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sparsity {
    /// Number of stored elements of a block.
    pub kept: usize,
    /// Number of elements of a block.
    pub block: usize,
    /// Dimension of the operand.
    pub dimension: i64,
    /// Distance between the elements of a block.
    pub stride: i64,
}

/// `sparsity_config=`: structured sparsity of the operands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SparsityConfig {
    /// Sparsity of the input.
    pub lhs: Option<Sparsity>,
    /// Sparsity of the kernel.
    pub rhs: Option<Sparsity>,
}

/// `convolution`: slides a kernel (operand 1) over the spatial dimensions of an input (operand 0). Each result is the
/// sum of products of the elements under the kernel, over the input's channels. Padding and dilation holes count as
/// zero.
///
/// The element type of the result is the written one (preferred element type) and may differ from the operands'.
///
/// The platform decides whether padding times an infinity or NaN of the kernel is zero or NaN: the evaluator omits the
/// product, and XLA does either, depending on the element type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Convolution {
    /// Window with one entry for each spatial dimension; its sizes equal the kernel's.
    pub window: Window,
    /// Roles of the dimensions.
    pub dims: ConvolutionDims,
    /// Number of channel groups. Group `g` of the result's channels reads only group `g` of the input's channels.
    pub feature_group_count: usize,
    /// Number of image groups. Group `g` of the result's channels reads only group `g` of the input's images.
    pub batch_group_count: usize,
    /// Precision of each operand; empty for the default.
    pub precision: Vec<Precision>,
    /// Algorithm, which overrides `precision`.
    pub algorithm: Option<DotAlgorithm>,
    /// Purpose of the convolution.
    pub kind: ConvolutionKind,
    /// Structured sparsity of the operands; the evaluator implements none yet.
    pub sparsity: SparsityConfig,
}

impl Convolution {
    /// Creates a convolution without groups and with default precision.
    pub fn new(window: Window, dims: ConvolutionDims) -> Convolution {
        Convolution {
            window,
            dims,
            feature_group_count: 1,
            batch_group_count: 1,
            precision: Vec::new(),
            algorithm: None,
            kind: ConvolutionKind::Unset,
            sparsity: SparsityConfig::default(),
        }
    }

    /// Returns the accumulator type of a sum of products. Operands are converted to it first, and the sum is then
    /// converted to `result`. It is `result` if that is the more precise operand type or more precise than both.
    /// Otherwise it is the more precise operand type, or f32 instead of a float of fewer than 32 bits.
    pub fn sum_type(lhs: ElementType, rhs: ElementType, result: ElementType) -> ElementType {
        dot_arithmetic::sum_type(lhs, rhs, result)
    }

    /// Returns the number of groups of the result's channels, be they feature groups or batch groups.
    pub fn groups(&self) -> usize {
        self.feature_group_count.max(self.batch_group_count)
    }
}

impl ConvolutionDims {
    /// Returns the number of spatial dimensions.
    pub fn spatial_rank(&self) -> usize {
        self.input_spatial.len()
    }
}

impl ReadAttributes for Convolution {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(Convolution {
            window: r.optional("window")?.unwrap_or_default(),
            dims: r.required("dim_labels")?,
            feature_group_count: r.optional("feature_group_count")?.unwrap_or(1),
            batch_group_count: r.optional("batch_group_count")?.unwrap_or(1),
            precision: r.optional("operand_precision")?.unwrap_or_default(),
            algorithm: r.optional("algorithm")?,
            kind: r.optional("convolution_kind")?.unwrap_or_default(),
            sparsity: r.optional("sparsity_config")?.unwrap_or_default(),
        })
    }
}

impl OpRules for Convolution {
    fn opcode(&self) -> Opcode {
        Opcode::Convolution
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::convolution(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        if !self.window.dims.is_empty() {
            w.attribute("window", &self.window);
        }
        w.attribute("dim_labels", &self.dims);
        for (name, count) in
            [("feature_group_count", self.feature_group_count), ("batch_group_count", self.batch_group_count)]
        {
            if count != 1 {
                w.attribute(name, &count);
            }
        }
        if self.kind != ConvolutionKind::Unset {
            w.attribute("convolution_kind", &self.kind);
        }
        if self.precision.iter().any(|p| *p != Precision::Default) {
            w.attribute("operand_precision", &self.precision);
        }
        if let Some(algorithm) = &self.algorithm {
            w.attribute("algorithm", algorithm);
        }
        if self.sparsity != SparsityConfig::default() {
            w.attribute("sparsity_config", &self.sparsity);
        }
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        eval::convolution(self, ev, operands, shape)
    }
}
