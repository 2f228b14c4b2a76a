//! Reorders right operands of dots and convolutions into the order that is fastest on a target, if the order is free to
//! choose.
//!
//! ```text
//! dot(x[M,K], constant[N,K])     ─>   dot(x[M,K], constant[K,N])
//!
//! while (w[N,K], ...)                 t[K,N] = transpose(w)
//!   dot(x[M,K], w)               ─>   while (w[N,K], t[K,N], ...)
//!                                       dot(x[M,K], t)
//! ```
//!
//! `order.rs` determines the order, `constants.rs` and `invariants.rs` apply it to constants and loop invariants.

mod constants;
mod invariants;
mod order;

use xla_hlo::{CompId, Module, Result};

use crate::{Pass, PassContext};

/// Permutes constant and loop-invariant right operands. For a dot, batch dimensions come first, then contracted ones,
/// then free ones. For a convolution, output features come first, and input features are at the same end as in the
/// images.
///
/// Only for targets that request it by [`DotProfile::right_rows`](crate::DotProfile) and
/// [`LayoutProfile::filters`](crate::LayoutProfile). A constant is changed if all its users agree about the order;
/// otherwise each order gets a copy of up to 1 MiB. A loop invariant is transposed before the loop and carried as a
/// further invariant, up to 256 MiB, unless the loop is known to run for few iterations. Left operands are kept: their
/// rows are read along K as fast as across.
///
/// Runs after the algebraic rules, since it inverts `dot_of_transpose`. [`SimplifyLoops`](crate::SimplifyLoops) then
/// removes state elements that became dead. Each element is the same sum of the same products; the summation order is
/// unspecified before and after.
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
