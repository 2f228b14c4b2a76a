//! Layout assignment: chooses orders of dimensions that minimize the bytes of transposes.
//!
//! Arrays are row-major, so that a layout is an order of dimensions, and a change of layout is a `transpose`. A
//! *region* is a set of connected operations that compute the same elements in any order; the whole region uses one
//! order. A good choice removes transposes at the border of the region or moves them:
//!
//! ```text
//! b = transpose(a)                   c = exp(a)
//! c = exp(b)               ─>        d = c + transpose(w)
//! d = c + w                          e = d
//! e = transpose(d)
//! ```
//!
//! This also moves transposes towards each other, towards operations that absorb them (contractions, convolutions,
//! broadcasts, reductions and constants, by the rules of [`SimplifyAlgebra`](crate::SimplifyAlgebra)), or to smaller
//! arrays.

mod choose;
mod convolution;
mod cost;
mod member;
pub(crate) mod order;
mod rewrite;
mod view;

use xla_hlo::{CompId, Module, Result};

use crate::{Pass, PassContext};

/// Assigns an order to each region of order-independent operations, such that the fewest bytes are transposed.
///
/// The target's preferences come from its [`LayoutProfile`](crate::LayoutProfile) and
/// [`DotProfile`](crate::DotProfile). Parameters, results and states of loops keep their order. A region changes only
/// if this reduces the bytes of transposes.
pub struct AssignLayouts;

/// Maximum number of iterations over the regions. Each change reduces the bytes of transposes, so that few iterations
/// suffice.
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

/// Visits each region once. Returns whether one of them changed.
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
