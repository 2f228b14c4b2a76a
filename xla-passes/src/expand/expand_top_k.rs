//! Expands top-k into a sort of rows.

use xla_hlo::ops::{Compare, CompareDirection, CompareType, Parameter, Sort, TopK};
use xla_hlo::{CompId, Computation, ElementType, InstrId, Instruction, Module, Op, Opcode, Result, Shape};

use crate::rewrite::builder::Inserter;
use crate::{Pass, PassContext, TopKProfile};

/// Expands `topk` into a stable sort of elements and their positions if the target lacks it. Exact, in the total order
/// of floats. Cases that the target supports natively are kept; see [`TopKProfile`].
pub struct ExpandTopK;

impl Pass for ExpandTopK {
    fn name(&self) -> &'static str {
        "expand-top-k"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        if !cx.profile().lacks.contains(&Opcode::TopK) {
            return Ok(());
        }
        let own = &cx.profile().top_k;
        super::replace_each(self, module, cx, |graph, id| is_lacking(graph, id, own), expand)
    }
}

/// Whether the target does not support this `topk` natively.
fn is_lacking(graph: &Computation, id: InstrId, own: &TopKProfile) -> bool {
    let Op::TopK(op) = graph[id].op() else { return false };
    let ty = graph[graph[id].operand(0)].shape().element_type();
    let stays = op.k <= own.most && ty.is_some_and(|ty| own.elements.contains(&ty));
    super::is_static(graph, id) && !stays
}

fn expand(at: &mut Inserter<'_>, id: InstrId) -> Result<InstrId> {
    let Op::TopK(op) = at.graph()[id].op().clone() else { return Ok(id) };
    let values = at.operands(id)[0];
    let dims = at.dims(values);
    let last = dims.len() - 1;
    let places = at.iota(ElementType::S32, &dims, last)?;
    let ty = at.element_type(values)?;
    let computation = comparator(at.module_mut(), &op, ty)?;
    let sorted = at.add(Sort { dimension: last, is_stable: true, computation }, [values, places])?;
    let (values, places) = (at.get(sorted, 0)?, at.get(sorted, 1)?);
    let (values, places) = (at.slice(values, last, 0, op.k)?, at.slice(places, last, 0, op.k)?);
    at.tuple(&[values, places])
}

/// Adds a comparator of elements. It ignores their positions, since the sort is stable.
fn comparator(module: &mut Module, op: &TopK, ty: ElementType) -> Result<CompId> {
    let mut computation = Computation::new("top_k_order");
    let types = [ty, ty, ElementType::S32, ElementType::S32];
    let parameters = types
        .into_iter()
        .enumerate()
        .map(|(number, ty)| computation.add(Instruction::new(Parameter { number }.into(), Shape::scalar(ty), [])));
    let parameters: Vec<InstrId> = parameters.collect();
    computation.set_root(parameters[0]);
    let id = module.add(computation);
    let at = &mut Inserter::new(module, id);
    let direction = if op.largest { CompareDirection::Gt } else { CompareDirection::Lt };
    let order = ty.is_float().then_some(CompareType::TotalOrder);
    let root = at.add(Compare { direction, order }, [parameters[0], parameters[1]])?;
    at.graph_mut().set_root(root);
    Ok(id)
}
