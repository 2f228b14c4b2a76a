//! Arrays whose sizes are known when running become arrays of their bounds, beside scalars that say their sizes.
//!
//! What lies behind the sizes is undefined and must not matter: folds, contractions and paddings read a fill in its
//! place, concatenations and reshapes bring the elements together. Backends see static shapes only.

mod fill;
mod rules;

use std::collections::HashMap;

use xla_hlo::ops::Dynamic;
use xla_hlo::{CompId, Dynamism, Error, InstrId, Module, Op, ProgramShape, Result, ResultExt, Shape};

use crate::insert::Inserter;
use crate::{Pass, PassContext};

/// Puts sizes into scalars, as the module says.
///
/// [`Error::Unimplemented`] naming the instruction for what has no rule, and for sizes that come into or go out of a
/// computation.
pub struct PadDynamic;

impl Pass for PadDynamic {
    fn name(&self) -> &'static str {
        "pad-dynamic"
    }

    fn rewrite(&self, module: &mut Module, _: &PassContext<'_>) -> Result<()> {
        let ids: Vec<CompId> = module.ids().filter(|&id| is_concerned(module, id)).collect();
        for id in ids {
            Padder { at: Inserter::new(module, id), sizes: HashMap::new() }.run()?;
        }
        let header = module.attributes().entry_computation_layout.as_ref();
        if let Some(layout) = header.filter(|l| is_dynamic(&l.result) || l.parameters.iter().any(is_dynamic)) {
            let parameters = layout.parameters.iter().map(bounds).collect();
            let layout = ProgramShape { parameters, result: bounds(&layout.result) };
            module.attributes_mut().entry_computation_layout = Some(layout);
        }
        Ok(())
    }
}

fn is_concerned(module: &Module, id: CompId) -> bool {
    module[id].iter().any(|(_, i)| matches!(i.op(), Op::Dynamic(_)) || is_dynamic(i.shape()))
}

fn is_dynamic(shape: &Shape) -> bool {
    shape.leaves().iter().any(|(_, leaf)| leaf.as_array().is_some_and(|a| !a.is_static()))
}

/// The same shape with bounds as sizes.
fn bounds(shape: &Shape) -> Shape {
    match shape {
        Shape::Array(array) => array.clone().with_dynamism(Vec::new()).into(),
        Shape::Tuple(elements) => Shape::Tuple(elements.iter().map(bounds).collect()),
        Shape::Buffer(_) | Shape::Token | Shape::Opaque => shape.clone(),
    }
}

/// The sizes of an array's dimensions, `s32[]` each, where they are below the bound.
type Sizes = Vec<Option<InstrId>>;

/// Walks a computation.
struct Padder<'m> {
    at: Inserter<'m>,
    /// The sizes of each value's leaves, of values that have any.
    sizes: HashMap<InstrId, Vec<Sizes>>,
}

impl Padder<'_> {
    fn run(mut self) -> Result<()> {
        for id in self.at.graph().post_order() {
            let name = self.at.graph()[id].name().to_string();
            let place = format!("%{name} of {}", self.at.graph().name());
            let sizes = self.rule(id).context(|| place.clone())?;
            // Rules that put an instruction in other terms note the sizes of what stands for it.
            if self.at.graph().get(id).is_none() {
                continue;
            }
            self.check_known(id, &sizes).context(|| place)?;
            if sizes.iter().flatten().any(Option::is_some) {
                self.sizes.insert(id, sizes);
            }
        }
        let root = self.at.graph().root();
        if self.sizes.contains_key(&root) {
            return Err(Error::unimplemented(format!(
                "the result of {} has a size that is known only when running; give it its bound and return the size too",
                self.at.graph().name()
            )));
        }
        self.forget()
    }

    /// Demands that every dynamic dimension has its size by now.
    fn check_known(&self, id: InstrId, sizes: &[Sizes]) -> Result<()> {
        let instruction = &self.at.graph()[id];
        for (leaf, (_, shape)) in instruction.shape().leaves().into_iter().enumerate() {
            let Some(array) = shape.as_array().filter(|a| !a.is_static()) else { continue };
            let known = |d: usize| sizes.get(leaf).and_then(|s| s.get(d)).is_some_and(Option::is_some);
            if (0..array.rank()).any(|d| array.dynamism(d) != Dynamism::Static && !known(d)) {
                return Err(Error::unimplemented(format!(
                    "{} gives {array}, whose size is not known from its operands",
                    instruction.opcode()
                )));
            }
        }
        Ok(())
    }

    /// Takes operations on sizes and dynamic shapes out of the computation, now that scalars say it all.
    fn forget(&mut self) -> Result<()> {
        let computation = self.at.graph_mut();
        for id in computation.post_order() {
            if let Op::Dynamic(Dynamic::SetDimensionSize { .. }) = computation[id].op() {
                let data = computation[id].operand(0);
                let before = computation[id].control_predecessors().to_vec();
                let behind: Vec<InstrId> =
                    computation[id].users().iter().chain(computation[id].control_successors()).copied().collect();
                for (&before, &after) in before.iter().flat_map(|b| behind.iter().map(move |a| (b, a))) {
                    computation.add_control_dependency(before, after);
                }
                computation.replace_all_uses(id, data);
                computation.remove(id)?;
            } else if is_dynamic(computation[id].shape()) {
                let shape = bounds(computation[id].shape());
                computation.set_shape(id, shape);
            }
        }
        Ok(())
    }

    /// Sizes of an array; all `None` for one of static shape.
    fn array_sizes(&self, id: InstrId) -> Sizes {
        match self.sizes.get(&id) {
            Some(leaves) => leaves.first().cloned().unwrap_or_default(),
            None => vec![None; self.at.graph()[id].shape().as_array().map_or(0, |a| a.rank())],
        }
    }

    /// Sizes of all leaves of a value.
    fn leaf_sizes(&self, id: InstrId) -> Vec<Sizes> {
        let leaves = self.at.graph()[id].shape().leaves();
        let none = || leaves.iter().map(|(_, leaf)| vec![None; leaf.as_array().map_or(0, |a| a.rank())]).collect();
        self.sizes.get(&id).cloned().unwrap_or_else(none)
    }

    fn is_padded(&self, id: InstrId) -> bool {
        self.sizes.contains_key(&id)
    }
}
