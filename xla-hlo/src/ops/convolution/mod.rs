//! Convolutions.

mod attributes;
mod eval;
mod proto;
mod shape;
#[cfg(test)]
mod tests;

use super::{DotAlgorithm, OpRules, Opcode, Precision, ReadAttributes, ShapeContext, Window, dot_arithmetic};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{ElementType, Error, Literal, Result, Shape};

/// Roles of the dimensions of a convolution's arrays (`dim_labels=`). Spatial dimensions pair up by position.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ConvolutionDims {
    /// The images' dimension of the input: `b`.
    pub input_batch: usize,
    /// The channels' dimension of the input: `f`.
    pub input_feature: usize,
    /// Dimensions of the input that the window slides over: `0`, `1` and so on.
    pub input_spatial: Vec<usize>,
    /// The input channels' dimension of the kernel: `i`.
    pub kernel_input_feature: usize,
    /// The result channels' dimension of the kernel: `o`.
    pub kernel_output_feature: usize,
    /// The window's dimensions in the kernel.
    pub kernel_spatial: Vec<usize>,
    /// The images' dimension of the result.
    pub output_batch: usize,
    /// The channels' dimension of the result.
    pub output_feature: usize,
    /// Dimensions of the window's positions in the result.
    pub output_spatial: Vec<usize>,
}

/// `convolution_kind=`: what a convolution is for; says nothing about its value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ConvolutionKind {
    /// Nobody said.
    #[default]
    Unset,
    /// A layer's result.
    Forward,
    /// The gradient of a layer's input.
    InputGradient,
    /// The gradient of a layer's kernel.
    KernelGradient,
}

/// Of each `block` elements of an operand along `dimension`, `stride` apart, only `kept` are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sparsity {
    /// Elements stored of a block.
    pub kept: usize,
    /// Elements of a block.
    pub block: usize,
    /// The operand's dimension.
    pub dimension: i64,
    /// Distance of a block's elements.
    pub stride: i64,
}

/// `sparsity_config=`: operands of which not all elements are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SparsityConfig {
    /// Of the input.
    pub lhs: Option<Sparsity>,
    /// Of the kernel.
    pub rhs: Option<Sparsity>,
}

/// A kernel (operand 1) slides over the spatial dimensions of an input (operand 0); each result is the sum of products
/// of the elements under the kernel, over the input's channels. Padding and holes count as zero.
///
/// The result's element type is the written one (preferred element type) and may differ from the operands'.
///
/// Whether padding times an infinity or NaN of the kernel is zero or NaN is for the platform to say: the evaluator
/// leaves it out, and XLA does either, by element type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Convolution {
    /// One entry for each spatial dimension; sizes are the kernel's.
    pub window: Window,
    /// Roles of the dimensions.
    pub dims: ConvolutionDims,
    /// Groups of channels; group `g` of the result's channels sees only group `g` of the input's.
    pub feature_group_count: usize,
    /// Groups of images; group `g` of the result's channels sees only group `g` of the input's images.
    pub batch_group_count: usize,
    /// One for each operand, or empty for the default.
    pub precision: Vec<Precision>,
    /// Overrides the precision.
    pub algorithm: Option<DotAlgorithm>,
    /// Purpose of the convolution.
    pub kind: ConvolutionKind,
    /// Operands of which not all elements are stored; none can be evaluated yet.
    pub sparsity: SparsityConfig,
}

impl Convolution {
    /// A convolution without groups, of default precision.
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

    /// The element type in which sums of products are computed, to which operands are converted before and from which
    /// the result is after: the result's type where that can hold more than the operands', else the wider of theirs.
    pub fn sum_type(lhs: ElementType, rhs: ElementType, result: ElementType) -> ElementType {
        dot_arithmetic::sum_type(lhs, rhs, result)
    }

    /// Groups of the result's channels, whichever operand dimension they go with.
    pub fn groups(&self) -> usize {
        self.feature_group_count.max(self.batch_group_count)
    }
}

impl ConvolutionDims {
    /// Number of dimensions that the window slides over.
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
