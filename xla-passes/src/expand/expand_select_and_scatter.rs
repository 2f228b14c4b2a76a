//! Expands select-and-scatter into reductions of positions and a scatter.

use xla_hlo::ops::{BinaryOp, CompareDirection, Parameter, ReduceWindow, Scatter, SelectAndScatter, UnaryOp};
use xla_hlo::{
    CompId, Computation, ElementType, InstrId, Instruction, Literal, Module, Op, Opcode, Result, Scalar, Shape,
};

use crate::rewrite::builder::Inserter;
use crate::rewrite::graph;
use crate::{Pass, PassContext};

/// Puts `select-and-scatter` in terms of a `reduce-window` that finds the place of each window's choice, and a
/// `scatter` to those places, where the target lacks it.
///
/// Exact where `reduce-window` goes through windows, and `scatter` through updates, in order, or where their order does
/// not matter.
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

/// For each window the number of the element that is chosen in it; -1 where all of it is padding.
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

/// Of two elements with their places the one that stays chosen, or the only one that is an element: places of padding
/// are -1.
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

/// A scatter of single elements to places in a vector.
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
