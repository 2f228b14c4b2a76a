//! Dynamic padding: replaces arrays with dynamic sizes by arrays of their bounds and scalars with the sizes.
//!
//! Elements beyond the sizes are undefined and must not affect results. Reductions, contractions and pads read a fill
//! value instead of them, concatenations and reshapes compact the elements, and sorts move them to the end. Sizes are
//! passed into and out of loops, branches and calls as additional tuple elements. Backends only see static shapes.

mod control;
mod fill;
mod order;
mod result;
mod rules;
mod slices;
mod windows;

use std::collections::HashMap;

use xla_hlo::ops::Dynamic;
use xla_hlo::{CompId, Computation, Dynamism, Error, InstrId, Module, Op, Result, ResultExt, Shape};

use crate::rewrite::builder::Inserter;
use crate::{Pass, PassContext};

/// Replaces dynamic sizes by scalars, as the module documentation describes.
///
/// A program result with a dynamic size becomes an array of the bound, and the program returns its size as well: see
/// [`xla_hlo::dynamic_result`]. Returns [`Error::Unimplemented`] with the name of the instruction for operations
/// without a rule, and for parameters of the program with dynamic sizes.
pub struct PadDynamic;

impl Pass for PadDynamic {
    fn name(&self) -> &'static str {
        "pad-dynamic"
    }

    fn rewrite(&self, module: &mut Module, _: &PassContext<'_>) -> Result<()> {
        let entry = module.entry_id();
        let asked = module.entry_layout();
        let ids: Vec<CompId> = module.ids().filter(|&id| is_concerned(module, id)).collect();
        for id in ids {
            // Computations that take or return sizes are copied and rewritten for each of their callers.
            if id == entry || !has_dynamic_interface(&module[id]) {
                Padder { at: Inserter::new(module, id), sizes: HashMap::new() }
                    .run((id == entry).then_some(&asked.result))?;
            }
        }
        if is_dynamic(&asked.result) {
            result::note_padded(module, &asked);
        }
        Ok(())
    }
}

fn has_dynamic_interface(computation: &Computation) -> bool {
    is_dynamic(computation.result_shape())
        || computation.parameters().iter().any(|&p| is_dynamic(computation[p].shape()))
}

fn is_concerned(module: &Module, id: CompId) -> bool {
    module[id].iter().any(|(_, i)| matches!(i.op(), Op::Dynamic(_)) || is_dynamic(i.shape()))
}

fn is_dynamic(shape: &Shape) -> bool {
    shape.leaves().iter().any(|(_, leaf)| leaf.as_array().is_some_and(|a| !a.is_static()))
}

/// Size of each dimension of an array as `s32[]`; `None` if it equals the bound.
type Sizes = Vec<Option<InstrId>>;

/// Rewriter of one computation.
struct Padder<'m> {
    at: Inserter<'m>,
    /// Sizes of the leaves of each value that has dynamic sizes.
    sizes: HashMap<InstrId, Vec<Sizes>>,
}

impl Padder<'_> {
    /// Rewrites a computation that takes no sizes. Only the entry may return sizes; `entry` is the shape of its result
    /// for the caller.
    fn run(mut self, entry: Option<&Shape>) -> Result<()> {
        self.walk()?;
        let root = self.at.graph().root();
        match entry {
            Some(asked) if is_dynamic(asked) => {
                let padded = self.padded(root, asked)?;
                self.at.graph_mut().set_root(padded);
            }
            _ => self.check_result(root)?,
        }
        self.forget()
    }

    /// Applies the rules, operands first.
    fn walk(&mut self) -> Result<()> {
        for id in self.at.graph().post_order() {
            // Parameters that are passed with their sizes are already done.
            if self.sizes.contains_key(&id) {
                continue;
            }
            let name = self.at.graph()[id].name().to_string();
            let place = format!("%{name} of {}", self.at.graph().name());
            let sizes = self.rule(id).context(|| place.clone())?;
            // Rules that replace an instruction record the sizes of its replacement.
            if self.at.graph().get(id).is_none() {
                continue;
            }
            self.check_known(id, &sizes).context(|| place)?;
            if sizes.iter().flatten().any(Option::is_some) {
                self.sizes.insert(id, sizes);
            }
        }
        Ok(())
    }

    /// Returns an error if a result has a size that may be smaller than its bound.
    fn check_result(&self, root: InstrId) -> Result<()> {
        let leaves = self.at.graph()[root].shape().leaves();
        let is_whole = |(sizes, (_, leaf)): (&Sizes, (_, &Shape))| {
            sizes.iter().zip(leaf.dims()).all(|(size, &bound)| size.is_none_or(|size| self.is_constant(size, bound)))
        };
        if self.sizes.get(&root).is_none_or(|sizes| sizes.iter().zip(leaves).all(is_whole)) {
            return Ok(());
        }
        Err(Error::unimplemented(format!(
            "the result of {} has a dynamic size; mark the dimension with <= in its shape",
            self.at.graph().name()
        )))
    }

    /// Whether a size is this constant.
    fn is_constant(&self, size: InstrId, value: usize) -> bool {
        match self.at.graph()[size].op() {
            Op::Constant(constant) => constant.literal.get(0).as_i128() == Some(value as i128),
            _ => false,
        }
    }

    /// Returns an error unless the size of every dynamic dimension is known.
    fn check_known(&self, id: InstrId, sizes: &[Sizes]) -> Result<()> {
        let instruction = &self.at.graph()[id];
        for (leaf, (_, shape)) in instruction.shape().leaves().into_iter().enumerate() {
            let Some(array) = shape.as_array().filter(|a| !a.is_static()) else { continue };
            let known = |d: usize| sizes.get(leaf).and_then(|s| s.get(d)).is_some_and(Option::is_some);
            if (0..array.rank()).any(|d| array.dynamism(d) != Dynamism::Static && !known(d)) {
                return Err(Error::unimplemented(match instruction.op() {
                    Op::Parameter(_) => format!(
                        "a parameter of the program has the dynamic shape {array}; pass an array of its bound and the size, and use set-dimension-size"
                    ),
                    op => format!("{} returns {array}, whose size does not follow from its operands", op.opcode()),
                }));
            }
        }
        Ok(())
    }

    /// Removes operations on sizes and dynamic shapes from the computation after all sizes are scalars.
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
                let shape = computation[id].shape().at_bounds();
                computation.set_shape(id, shape);
            }
        }
        Ok(())
    }

    /// Returns the sizes of an array; all `None` if its shape is static.
    fn array_sizes(&self, id: InstrId) -> Sizes {
        match self.sizes.get(&id) {
            Some(leaves) => leaves.first().cloned().unwrap_or_default(),
            None => vec![None; self.at.graph()[id].shape().as_array().map_or(0, |a| a.rank())],
        }
    }

    /// Returns the sizes of all leaves of a value.
    fn leaf_sizes(&self, id: InstrId) -> Vec<Sizes> {
        let leaves = self.at.graph()[id].shape().leaves();
        let none = || leaves.iter().map(|(_, leaf)| vec![None; leaf.as_array().map_or(0, |a| a.rank())]).collect();
        self.sizes.get(&id).cloned().unwrap_or_else(none)
    }

    fn is_padded(&self, id: InstrId) -> bool {
        self.sizes.contains_key(&id)
    }
}
