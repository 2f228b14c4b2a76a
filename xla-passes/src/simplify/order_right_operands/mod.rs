//! Puts right operands of dots and convolutions in the order in which a target takes them soonest, where that order is
//! free to choose.
//!
//! ```text
//! dot(x[M,K], constant[N,K])     ─>   dot(x[M,K], constant[K,N])
//!
//! while (w[N,K], ...)                 t[K,N] = transpose(w)
//!   dot(x[M,K], w)               ─>   while (w[N,K], t[K,N], ...)
//!                                       dot(x[M,K], t)
//! ```
//!
//! `order.rs` says which order is wanted, `constants.rs` and `invariants.rs` give it to what does not change.

mod constants;
mod invariants;
mod order;

use xla_hlo::{CompId, Module, Result};

use crate::{Pass, PassContext};

/// Permutes constants, and arrays that are the same in all iterations of a loop, so that a dot that has one of them on
/// the right finds its batch dimensions first, then contracted ones, then free ones; and a convolution its output
/// features first, then input features on the side on which its images have theirs.
///
/// Only for targets that want it, by [`DotProfile::right_rows`](crate::DotProfile) and
/// [`LayoutProfile::filters`](crate::LayoutProfile). A constant changes where all that
/// use it agree about the order; else each order gets a copy of its own, up to 1 MiB. An invariant of a loop is
/// transposed before the loop and carried as a further invariant, up to 256 MiB, unless the loop is known to run for
/// few iterations. Left operands stay as they are: rows are read along K as fast as across.
///
/// Comes after the laws, of which `dot_of_transpose` is the inverse. What a loop carries without need afterwards is for
/// [`SimplifyLoops`](crate::SimplifyLoops). Each element is the same sum of the same products, in an order that
/// is free before and after.
pub struct OrderRightOperands;

impl Pass for OrderRightOperands {
    fn name(&self) -> &'static str {
        "order-right-operands"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        if !order::matters(cx.profile()) {
            return Ok(());
        }
        let ids: Vec<CompId> = module.ids().filter(|&id| module[id].schedule().is_none()).collect();
        for id in ids {
            constants::put_in_order(module, id, cx)?;
        }
        invariants::put_in_order(module, cx)
    }
}
