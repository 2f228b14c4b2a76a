//! Expands select-and-scatter into reductions of positions and a scatter.

use xla_hlo::ops::{BinaryOp, CompareDirection, Parameter, ReduceWindow, Scatter, SelectAndScatter, UnaryOp};
use xla_hlo::{
    CompId, Computation, ElementType, InstrId, Instruction, Literal, Module, Op, Opcode, Result, Scalar, Shape,
};

use crate::rewrite::builder::Inserter;
use crate::rewrite::graph;
use crate::{Pass, PassContext};

/// Expands `select-and-scatter` into a `reduce-window` that finds the position of each window's selected element, and a
/// `scatter` to these positions, if the target lacks it.
///
/// Exact if `reduce-window` visits windows and `scatter` visits updates in order, or if the order does not matter.
pub struct ExpandSelectAndScatter;

impl Pass for ExpandSelectAndScatter {
    fn name(&self) -> &'static str {
        "expand-select-and-scatter"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        super::expand_lacking(self, Opcode::SelectAndScatter, module, cx, expand)
    }
}

fn expand(at: &mut Inserter<'_>, id: InstrId) -> Result<InstrId> {
    let Op::SelectAndScatter(op) = at.graph()[id].op().clone() else { return Ok(id) };
    let &[operand, source, init] = &at.operands(id)[..] else { return Ok(id) };
    let shape = at.array(id)?.clone();
    let init = at.convert(init, shape.element_type())?;
    let (count, windows) = (shape.element_count(), at.array(source)?.element_count());
    if count == 0 || windows == 0 {
        return at.broadcast(init, shape.dims(), &[]);
    }
    let places = chosen_places(at, &op, operand, count)?;
    let places = at.reshape(places, &[windows, 1])?;
    let source = at.reshape(source, &[windows])?;
    let inputs = at.broadcast(init, &[count], &[])?;
    let result = at.add(scatter(op.scatter), [inputs, places, source])?;
    at.reshape(result, shape.dims())
}

/// Returns the linear index of the selected element of each window; -1 if the window only covers padding.
fn chosen_places(at: &mut Inserter<'_>, op: &SelectAndScatter, operand: InstrId, count: usize) -> Result<InstrId> {
    let shape = at.array(operand)?.clone();
    let place = if i32::try_from(count).is_ok() { ElementType::S32 } else { ElementType::S64 };
    let places = at.iota(place, &[count], 0)?;
    let places = at.reshape(places, shape.dims())?;
    let zero = at.literal(Literal::scalar(shape.element_type(), Scalar::zero(shape.element_type())))?;
    let none = at.integer(place, -1)?;
    let computation = chooser(at.module_mut(), op.select, shape.element_type(), place)?;
    let reduced = at.add(ReduceWindow { window: op.window.clone(), computation }, [operand, places, zero, none])?;
    at.get(reduced, 1)
}

/// Adds a combiner that selects one of two elements, each with its position. A position of -1 marks padding, so that
/// the other element is selected.
fn chooser(module: &mut Module, select: CompId, ty: ElementType, place: ElementType) -> Result<CompId> {
    let select = module[select].clone();
    let mut computation = Computation::new("choose");
    let mut parameter = |(number, ty): (usize, ElementType)| {
        computation.add(Instruction::new(Parameter { number }.into(), Shape::scalar(ty), []))
    };
    let [x, i, y, j] = [(0, ty), (1, place), (2, ty), (3, place)].map(&mut parameter);
    computation.set_root(x);
    let id = module.add(computation);
    let at = &mut Inserter::new(module, id);
    let stays = graph::splice(at.graph_mut(), &select, &[x, y]);
    let none = at.integer(place, 0)?;
    let (no_x, no_y) = (at.compare(CompareDirection::Lt, i, none)?, at.compare(CompareDirection::Lt, j, none)?);
    let is_x = at.unary(UnaryOp::Not, no_x)?;
    let stays = at.binary(BinaryOp::And, is_x, stays)?;
    let stays = at.binary(BinaryOp::Or, no_y, stays)?;
    let (element, number) = (at.select(stays, x, y)?, at.select(stays, i, j)?);
    let root = at.tuple(&[element, number])?;
    at.graph_mut().set_root(root);
    Ok(id)
}

/// Returns a scatter of single elements to positions in a vector.
fn scatter(computation: CompId) -> Scatter {
    Scatter {
        update_window_dims: vec![],
        inserted_window_dims: vec![0],
        scatter_dims_to_operand_dims: vec![0],
        input_batching_dims: vec![],
        scatter_indices_batching_dims: vec![],
        index_vector_dim: 1,
        indices_are_sorted: false,
        unique_indices: false,
        computation,
    }
}
