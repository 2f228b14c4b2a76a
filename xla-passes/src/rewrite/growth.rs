//! Limit on module growth: all passes that copy computations stop at the same number of instructions.

use xla_hlo::entity::SecondaryMap;
use xla_hlo::ops::CallContext;
use xla_hlo::{CompId, Error, Module, Result};

/// Maximum number of instructions to which a pass may grow a module by copies of computations.
///
/// Thirty functions that each call the previous one twice would expand to a billion instructions.
pub(crate) const MAX_INSTRUCTIONS: usize = 1 << 18;
/// Maximum depth of the nested calls that a rewrite follows by recursion.
const MAX_DEPTH: usize = 128;

/// Number of instructions of a module while a pass copies computations.
pub(crate) struct Growth {
    total: usize,
}

impl Growth {
    /// Counts the instructions of a module.
    pub(crate) fn of(module: &Module) -> Growth {
        Growth { total: module.instruction_count() }
    }

    /// Counts `added` instructions. Returns false, and counts nothing, if the module would become too large.
    pub(crate) fn admits(&mut self, added: usize) -> bool {
        let total = self.total.saturating_add(added);
        let fits = total <= MAX_INSTRUCTIONS;
        if fits {
            self.total = total;
        }
        fits
    }

    /// Subtracts removed instructions.
    pub(crate) fn shrinks(&mut self, removed: usize) {
        self.total = self.total.saturating_sub(removed);
    }

    /// Adds a copy of a computation. Returns an error if the module would become too large.
    pub(crate) fn copy(&mut self, module: &mut Module, callee: CompId) -> Result<CompId> {
        let clone = module[callee].clone();
        if self.admits(clone.len()) {
            return Ok(module.add(clone));
        }
        let place = format!("copying {} for each of its calls", clone.name());
        Err(exceeded(&place))
    }
}

/// Returns the error for a step that would make a module too large.
pub(crate) fn exceeded(step: &str) -> Error {
    Error::resource_exhausted(format!(
        "{step} makes more than {MAX_INSTRUCTIONS} instructions; call it from fewer places"
    ))
}

/// Returns an error if calls are nested too deeply for a rewrite that follows them by recursion.
pub(crate) fn check_depth(depth: usize) -> Result<()> {
    match depth > MAX_DEPTH {
        true => Err(Error::resource_exhausted(format!("calls are nested more than {MAX_DEPTH} levels deep"))),
        false => Ok(()),
    }
}

/// Returns the size of each computation after inlining all calls whose contexts `follows` accepts.
pub(crate) fn expanded_sizes(module: &Module, follows: impl Fn(CallContext) -> bool) -> SecondaryMap<CompId, usize> {
    let mut sizes = SecondaryMap::new(0usize);
    for id in module.post_order() {
        let calls = module[id].iter().filter(|(_, i)| follows(i.op().call_context()));
        let callees = calls.flat_map(|(_, i)| i.op().called_computations());
        sizes[id] = callees.map(|callee| sizes[callee]).fold(module[id].len(), usize::saturating_add);
    }
    sizes
}

/// Returns an error if inlining each call of some computations would nest calls too deeply, or grow the entry beyond
/// [`MAX_INSTRUCTIONS`].
pub(crate) fn check_inlining(module: &Module, is_inlined: impl Fn(CompId) -> bool) -> Result<()> {
    let mut sizes = SecondaryMap::new((0usize, 0usize));
    for id in module.post_order() {
        let callees = module[id].iter().flat_map(|(_, instruction)| instruction.op().called_computations());
        sizes[id] =
            callees.filter(|&callee| is_inlined(callee)).fold((module[id].len(), 1), |(size, depth), callee| {
                let (inner, levels) = sizes[callee];
                (size.saturating_add(inner), depth.max(levels + 1))
            });
    }
    let (size, depth) = sizes[module.entry_id()];
    check_depth(depth)?;
    match size > MAX_INSTRUCTIONS.max(module.instruction_count()) {
        true => Err(exceeded(&format!("inlining the calls in {}", module.entry().name()))),
        false => Ok(()),
    }
}
