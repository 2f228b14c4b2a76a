//! Rules of ragged dots: attributes and shape.

use super::{RaggedDot, RaggedMode, eval};
use crate::eval::Evaluator;
use crate::ops::checks::{self, ensure};
use crate::ops::dot::{DotDims, shape::contraction, write_precision};
use crate::ops::{OpRules, Opcode, ReadAttributes, ShapeContext};
use crate::text::{AttributeReader, AttributeWriter};
use crate::{ArrayShape, Error, Literal, Result, Shape};

impl ReadAttributes for RaggedDot {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        let dims = DotDims::read(r)?;
        let precision = r.optional("operand_precision")?.unwrap_or_default();
        let ragged: Vec<usize> = r.required("lhs_ragged_dims")?;
        let groups: Vec<usize> = r.optional("rhs_group_dims")?.unwrap_or_default();
        RaggedDot::with_lists(dims, &ragged, &groups, precision)
    }
}

impl OpRules for RaggedDot {
    fn opcode(&self) -> Opcode {
        Opcode::RaggedDot
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        infer_shape(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        self.dims.write(w);
        write_precision(&self.precision, w);
        w.attribute("lhs_ragged_dims", &vec![self.ragged_dimension]);
        if let Some(group) = self.group_dimension {
            w.attribute("rhs_group_dims", &vec![group]);
        }
    }

    fn evaluate(&self, _: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        let [lhs, rhs, sizes] = checks::operands(operands)?;
        eval::ragged_dot(self, &lhs, &rhs, &sizes, shape.expect_array()?)
    }
}

fn infer_shape(op: &RaggedDot, cx: &ShapeContext<'_>) -> Result<Shape> {
    let (lhs, rhs, sizes) = (cx.array(0)?, cx.array(1)?, cx.array(2)?);
    let ragged = op.ragged_dimension;
    ensure!(ragged < lhs.rank(), "lhs_ragged_dims names dimension {ragged}, which the left operand {lhs} lacks");
    let groups = check_sizes(op, lhs, sizes)?;
    let (mode, dims) = (op.mode(), &op.dims);
    let expected = usize::from(mode == RaggedMode::Rows);
    ensure!(
        op.group_dimension.iter().count() == expected,
        "for lhs_ragged_dims {ragged}, rhs_group_dims must have {expected} dimensions"
    );
    if let Some(group) = op.group_dimension {
        ensure!(group < rhs.rank(), "rhs_group_dims names dimension {group}, which the right operand {rhs} lacks");
        ensure!(
            !dims.rhs_batch.contains(&group) && !dims.rhs_contracting.contains(&group),
            "dimension {group} of the right operand counts groups and can be neither batch nor contracting"
        );
        ensure!(
            rhs.dims()[group] == groups,
            "there are {groups} group sizes, but the right operand {rhs} has {} groups",
            rhs.dims()[group]
        );
    }
    let group_dimension: Vec<usize> = op.group_dimension.into_iter().collect();
    contraction(dims, &op.precision, &group_dimension, cx).and_then(|(ty, mut result)| {
        if mode == RaggedMode::Contracted {
            result.insert(0, groups);
        }
        checks::array(ty, result)
    })
}

/// Checks the array of group sizes; returns the number of groups.
fn check_sizes(op: &RaggedDot, lhs: &ArrayShape, sizes: &ArrayShape) -> Result<usize> {
    checks::integer("operand 2, the group sizes,", sizes)?;
    let prefix: Option<Vec<usize>> = op.prefix(lhs.rank()).iter().map(|&d| lhs.dims().get(d).copied()).collect();
    match sizes.dims() {
        [groups] => Ok(*groups),
        [outer @ .., groups] if prefix.as_deref() == Some(outer) => Ok(*groups),
        _ => Err(Error::invalid_argument(format!(
            "group sizes are a vector, or dimensions {:?} of the left operand {lhs} and then the groups; they are {sizes}",
            op.prefix(lhs.rank())
        ))),
    }
}
