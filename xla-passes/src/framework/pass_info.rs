//! Documentation of a registered pass.

use crate::Pass;

/// Documentation of a pass and its constructor.
pub struct PassInfo {
    /// Name in pipelines and reports: lower case with dashes.
    pub name: &'static str,
    /// One clause that starts with a verb.
    pub summary: &'static str,
    /// Two to five sentences: pattern, result, reason, and the cases in which the pass does not apply.
    pub description: &'static str,
    /// Fields of [`TargetProfile`](crate::TargetProfile) that the pass or its stage reads, such as `dot.merge_bytes`.
    pub profile: &'static [&'static str],
    /// Counted rewrites.
    pub counted: Counted,
    /// Names of XLA's passes for the same job; [`registry::pass`](crate::registry::pass) accepts them.
    pub aliases: &'static [&'static str],
    pub(super) make: fn() -> Box<dyn Pass>,
}

/// Rewrites of a pass that [`PassContext::allow_rewrite`](crate::PassContext::allow_rewrite) counts.
#[derive(Clone, Copy)]
pub enum Counted {
    /// Each rewrite is counted under the name of one of these rules.
    Rules(fn() -> Vec<&'static str>),
    /// Each rewrite is counted under the name of the pass. The text is the unit, in the plural.
    Rewrites(&'static str),
    /// The pass edits the module as a whole. Only its runs and changes are counted.
    Nothing,
}
