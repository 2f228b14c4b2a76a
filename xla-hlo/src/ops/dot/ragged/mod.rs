//! Ragged dots: the operation and its shape rule; what it means is in `ragged_eval.rs`.

use super::{DotDims, OpRules, Opcode, Precision, ReadAttributes, ShapeContext, ragged_eval, shape};
use crate::eval::Evaluator;
use crate::ops::checks::{self, ensure};
use crate::text::{AttributeReader, AttributeWriter};
use crate::{ArrayShape, Error, Literal, Result, Shape};

/// Contraction of two arrays, operands 0 and 1, where one dimension of the left one falls into groups, one after the
/// other from its beginning, of the sizes in operand 2.
///
/// What the dimension is decides what the groups are for: see [`RaggedMode`]. Group sizes are integers, `[groups]` or,
/// for other sizes at each index of the dimensions outside of the ragged one, those dimensions and then `groups`.
/// Negative sizes count as 0, and what is beyond the last group belongs to none.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RaggedDot {
    /// Which dimensions do what.
    pub dims: DotDims,
    /// The dimension of the left operand that falls into groups.
    pub ragged_dimension: usize,
    /// The dimension of the right operand that counts groups, where there is one.
    pub group_dimension: Option<usize>,
    /// One for each of the first two operands, or empty for the default.
    pub precision: Vec<Precision>,
}

/// What the ragged dimension of a ragged dot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RaggedMode {
    /// A free one: rows of group g are multiplied with the matrix g of the right operand; rows of no group give zeros.
    Rows,
    /// A contracted one: the result has a first dimension of groups, each summed over its own elements.
    Contracted,
    /// A batch one: this is a dot, whatever the groups are.
    Batch,
}

impl RaggedDot {
    /// What the ragged dimension is.
    pub fn mode(&self) -> RaggedMode {
        if self.dims.lhs_batch.contains(&self.ragged_dimension) {
            RaggedMode::Batch
        } else if self.dims.lhs_contracting.contains(&self.ragged_dimension) {
            RaggedMode::Contracted
        } else {
            RaggedMode::Rows
        }
    }

    /// Dimensions of the left operand, of that rank, for which there may be group sizes of their own, in their order.
    pub fn prefix(&self, lhs_rank: usize) -> Vec<usize> {
        let outside = |dims: &[usize]| -> Vec<usize> {
            dims.iter().copied().take_while(|&d| d != self.ragged_dimension).collect()
        };
        let dims = &self.dims;
        match self.mode() {
            RaggedMode::Batch => outside(&dims.lhs_batch),
            RaggedMode::Contracted => [dims.lhs_batch.clone(), outside(&dims.lhs_contracting)].concat(),
            RaggedMode::Rows => {
                let free = DotDims::free(lhs_rank, &dims.lhs_batch, &dims.lhs_contracting);
                [dims.lhs_batch.clone(), outside(&free)].concat()
            }
        }
    }
}

impl ReadAttributes for RaggedDot {
    fn read(_: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        let dims = DotDims::read(r)?;
        let precision = r.optional("operand_precision")?.unwrap_or_default();
        let ragged: Vec<usize> = r.required("lhs_ragged_dims")?;
        let groups: Vec<usize> = r.optional("rhs_group_dims")?.unwrap_or_default();
        RaggedDot::with_lists(dims, &ragged, &groups, precision)
    }
}

impl RaggedDot {
    /// From lists of dimensions, as text and messages have them.
    pub(super) fn with_lists(
        dims: DotDims,
        ragged: &[usize],
        groups: &[usize],
        precision: Vec<Precision>,
    ) -> Result<RaggedDot> {
        let (&[ragged_dimension], [] | [_]) = (ragged, groups) else {
            return Err(Error::unimplemented(format!(
                "ragged-dot with one ragged and at most one group dimension is implemented; there are {ragged:?} and {groups:?}"
            )));
        };
        Ok(RaggedDot { dims, ragged_dimension, group_dimension: groups.first().copied(), precision })
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
        super::write_precision(&self.precision, w);
        w.attribute("lhs_ragged_dims", &vec![self.ragged_dimension]);
        if let Some(group) = self.group_dimension {
            w.attribute("rhs_group_dims", &vec![group]);
        }
    }

    fn evaluate(&self, _: &mut Evaluator<'_>, operands: Vec<Literal>, shape: &Shape) -> Result<Literal> {
        let [lhs, rhs, sizes] = checks::operands(operands)?;
        ragged_eval::ragged_dot(self, &lhs, &rhs, &sizes, shape.expect_array()?)
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
        "with lhs_ragged_dims {ragged} in this place, rhs_group_dims has {expected} dimensions"
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
    shape::contraction(dims, &op.precision, &group_dimension, cx).and_then(|(ty, mut result)| {
        if mode == RaggedMode::Contracted {
            result.insert(0, groups);
        }
        checks::array(ty, result)
    })
}

/// Checks the array of group sizes; gives the number of groups.
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
