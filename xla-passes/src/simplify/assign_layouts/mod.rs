//! Layout assignment: chooses orders of dimensions that need the fewest bytes of transposes.
//!
//! Arrays are row major, so that a layout is an order of dimensions, and a change of layout is a `transpose`. A
//! *region* is a set of connected operations that compute alike in any order; it computes in one. Transposes at its
//! border then vanish, or stand elsewhere:
//!
//! ```text
//! b = transpose(a)                   c = exp(a)
//! c = exp(b)               ─>        d = c + transpose(w)
//! d = c + w                          e = d
//! e = transpose(d)
//! ```
//!
//! This also is what moves transposes along: towards each other, towards operations that swallow them (contractions,
//! convolutions, broadcasts, reductions, constants, of which [`SimplifyAlgebra`](crate::SimplifyAlgebra) has the laws),
//! or to where arrays are smaller.

mod choose;
mod convolution;
mod cost;
mod member;
mod order;
mod rewrite;
mod view;

use xla_hlo::{CompId, Module, Result};

use crate::{Pass, PassContext};

/// Gives each region of operations that take any order of dimensions the order with the fewest bytes of transposes.
///
/// The target's preferences come from its [`LayoutProfile`](crate::LayoutProfile) and
/// [`DotProfile`](crate::DotProfile). Parameters, results, and states of loops keep their order. A region changes
/// only if that makes fewer bytes of transposes.
pub struct AssignLayouts;

/// Maximum number of times that regions are looked at again after others changed. Each change takes bytes away, so that
/// few iterations do.
const ROUNDS: usize = 8;

impl Pass for AssignLayouts {
    fn name(&self) -> &'static str {
        "assign-layouts"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let ids: Vec<CompId> = module.ids().collect();
        for id in ids {
            for _ in 0..ROUNDS {
                if !assign(module, id, cx)? {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// Looks at each region once; tells whether one changed.
fn assign(module: &mut Module, id: CompId, cx: &PassContext<'_>) -> Result<bool> {
    if module[id].schedule().is_some() {
        return Ok(false);
    }
    convolution::put_in_order(module, id, cx)?;
    let Some(view) = view::LayoutView::of(module, id, cx.profile()) else { return Ok(false) };
    let orders = choose::orders(&view, || cx.allow_rewrite("assign-layouts"));
    if orders.iter().all(|order| order.is_identity()) {
        return Ok(false);
    }
    let plan = view.into_plan(orders);
    rewrite::apply(module.computation_mut(id), &plan)?;
    Ok(true)
}
