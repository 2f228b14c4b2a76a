//! Scaled dots: the operation, its shape rule and its evaluator.

use super::{Dot, DotAlgorithm, DotDims, OpRules, Opcode, Precision, ReadAttributes, ShapeContext, eval, shape};
use crate::eval::Evaluator;
use crate::ops::checks::{self, ensure};
use crate::text::{AttributeReader, AttributeWriter};
use crate::{ArrayShape, ElementType, Literal, Result, Scalar, Shape, linear_index, multi_index};

/// `scaled-dot`: contraction of two float arrays, operands 0 and 1, whose blocks have scale factors, operands 2 and 3.
///
/// A scale has the rank of its array, and each of its dimensions divides the array's. One scale factor applies to a
/// block whose extent along each dimension is the quotient (32 in MX formats, 16 in NVFP4, the whole dimension if the
/// scale has size 1). A scale of shape `bf16[1,1]` means no scaling.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScaledDot {
    /// Roles of the dimensions.
    pub dims: DotDims,
    /// Precision of each of the first two operands; empty for the default.
    pub precision: Vec<Precision>,
    /// Algorithm, which overrides `precision`.
    pub algorithm: Option<DotAlgorithm>,
}

impl ScaledDot {
    /// Returns the dot of the arrays after scaling.
    pub fn unscaled(&self) -> Dot {
        Dot { dims: self.dims.clone(), precision: self.precision.clone(), algorithm: self.algorithm }
    }

    /// Whether a scale of this shape means no scaling.
    pub fn is_no_scale(scale: &ArrayShape) -> bool {
        scale.element_type() == ElementType::BF16 && scale.dims() == [1, 1]
    }
}

impl ReadAttributes for ScaledDot {
    fn read(opcode: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        let Dot { dims, precision, algorithm } = Dot::read(opcode, r)?;
        Ok(ScaledDot { dims, precision, algorithm })
    }
}

impl OpRules for ScaledDot {
    fn opcode(&self) -> Opcode {
        Opcode::ScaledDot
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        infer_shape(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        self.unscaled().write_attributes(w);
    }

    fn evaluate(&self, ev: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        let [lhs, rhs, lhs_scale, rhs_scale] = checks::operands(operands)?;
        let operands = vec![scaled(&lhs, &lhs_scale)?, scaled(&rhs, &rhs_scale)?];
        eval::dot(&self.unscaled(), ev, operands, shape)
    }
}

fn infer_shape(op: &ScaledDot, cx: &ShapeContext<'_>) -> Result<Shape> {
    for (side, name) in ["left", "right"].iter().enumerate() {
        let (array, scale) = (cx.array(side)?, cx.array(side + 2)?);
        checks::float(&format!("the {name} operand"), array)?;
        checks::float(&format!("the {name} scale"), scale)?;
        let divides = |(&block, &size): (&usize, &usize)| size.checked_rem(block).map_or(size == 0, |rest| rest == 0);
        let fits = array.rank() == scale.rank() && scale.dims().iter().zip(array.dims()).all(divides);
        ensure!(
            fits || ScaledDot::is_no_scale(scale),
            "each dimension of the {name} scale must divide that of its operand {array}, or the scale be bf16[1,1] for \
             none; it is {scale}"
        );
    }
    let result = shape::dot(&op.unscaled(), cx)?;
    checks::float("the result", result.expect_array()?)?;
    Ok(result)
}

/// Multiplies an array by its scales in `f64`, where products of all narrower types are exact.
fn scaled(array: &Literal, scale: &Literal) -> Result<Literal> {
    let shape = array.array_shape().clone().with_element_type(ElementType::F64);
    let (dims, blocks) = (shape.dims(), scale.array_shape().dims());
    let number = |x: Scalar| if let Scalar::Float(v) = x { v } else { f64::NAN };
    let none = ScaledDot::is_no_scale(scale.array_shape());
    Literal::from_fn(&shape, |i| {
        let x = number(array.get(i));
        if none {
            return Scalar::Float(x);
        }
        let index = multi_index(dims, i);
        let block: Vec<usize> = index.iter().zip(dims.iter().zip(blocks)).map(|(i, (d, b))| i / (d / b)).collect();
        Scalar::Float(x * number(scale.get(linear_index(blocks, &block))))
    })
}
