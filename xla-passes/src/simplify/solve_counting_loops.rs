//! Closed forms of loops that only count.

use xla_hlo::ops::{BinaryOp, CompareDirection, GetTupleElement, Tuple};
use xla_hlo::{CompId, ElementKind, ElementType, InstrId, Module, Result, Scalar};

use crate::analysis::loops;
use crate::analysis::trip_count::{CountingLoop, Linear, counting_loop, trip_count};
use crate::rewrite::builder::Inserter;
use crate::{Pass, PassContext};

/// Replaces `while` loops that only count by the state after their last iteration. An iteration adds a constant to each
/// element of the state. The number of iterations is constant, or the counter runs in steps of 1 up or down to a bound,
/// which it cannot pass by overflow.
pub struct SolveCountingLoops;

impl Pass for SolveCountingLoops {
    fn name(&self) -> &'static str {
        "solve-counting-loops"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        for caller in module.post_order() {
            for id in loops::free_loops(module, caller) {
                let Some(counting) = counting_loop(module, caller, id) else { continue };
                let Some(trips) = Trips::of(module, (caller, id), &counting) else { continue };
                if cx.allow_rewrite(self.name()) {
                    solve(module, (caller, id), &counting, trips)?;
                }
            }
        }
        Ok(())
    }
}

/// Number of iterations.
enum Trips {
    Constant(u64),
    /// The distance from the counter up to its bound, or from the bound up to the counter; none if the counter is
    /// beyond the bound and `is_ordered`.
    Distance {
        is_up: bool,
        is_ordered: bool,
    },
}

impl Trips {
    fn of(module: &Module, (caller, id): (CompId, InstrId), counting: &CountingLoop) -> Option<Trips> {
        if let Some(count) = trip_count(module, caller, id) {
            return Some(Trips::Constant(count));
        }
        let step = counting.steps[counting.counter];
        match (counting.direction, step) {
            (CompareDirection::Lt, 1) => Some(Trips::Distance { is_up: true, is_ordered: true }),
            (CompareDirection::Gt, -1) => Some(Trips::Distance { is_up: false, is_ordered: true }),
            (CompareDirection::Ne, 1 | -1) => Some(Trips::Distance { is_up: step == 1, is_ordered: false }),
            _ => None,
        }
    }

    /// Adds the number of iterations as an unsigned integer.
    fn emit(&self, at: &mut Inserter<'_>, init: InstrId, counting: &CountingLoop) -> Result<InstrId> {
        let (is_up, is_ordered) = match *self {
            Trips::Constant(count) => return at.scalar(ElementType::U64, Scalar::Unsigned(count)),
            Trips::Distance { is_up, is_ordered } => (is_up, is_ordered),
        };
        let ty = counting.ty;
        let first = Linear { leaf: Some(counting.counter), plus: counting.plus };
        let (first, bound) = (value(at, init, first, ty)?, value(at, init, counting.bound, ty)?);
        let (from, to) = if is_up { (first, bound) } else { (bound, first) };
        let mut distance = at.binary(BinaryOp::Subtract, to, from)?;
        if is_ordered {
            let begins = at.compare(CompareDirection::Lt, from, to)?;
            let zero = at.scalar(ty, Scalar::zero(ty))?;
            distance = at.select(begins, distance, zero)?;
        }
        at.same_bits(distance, unsigned(ty))
    }
}

/// Replaces a loop by its last state.
fn solve(module: &mut Module, (caller, id): (CompId, InstrId), counting: &CountingLoop, trips: Trips) -> Result<()> {
    let init = module[caller][id].operand(0);
    let mut at = Inserter::new(module, caller);
    let trips = trips.emit(&mut at, init, counting)?;
    let mut elements = Vec::new();
    for (index, &step) in counting.steps.iter().enumerate() {
        let mut element = at.add(GetTupleElement { index }, [init])?;
        if step != 0 {
            let ty = at.element_type(element)?;
            let (trips, step) = (at.convert(trips, ty)?, at.integer(ty, step as i64)?);
            let all = at.binary(BinaryOp::Multiply, trips, step)?;
            element = at.binary(BinaryOp::Add, element, all)?;
        }
        elements.push(element);
    }
    let last = at.add(Tuple, elements)?;
    let graph = at.graph_mut();
    graph.replace_all_uses(id, last);
    graph.remove(id)
}

/// Adds a value in front of the loop.
fn value(at: &mut Inserter<'_>, init: InstrId, of: Linear, ty: ElementType) -> Result<InstrId> {
    let plus = at.integer(ty, of.plus as i64)?;
    let Some(index) = of.leaf else { return Ok(plus) };
    let element = at.add(GetTupleElement { index }, [init])?;
    at.binary(BinaryOp::Add, element, plus)
}

/// Returns the unsigned type of an integer's width.
fn unsigned(ty: ElementType) -> ElementType {
    let types = ElementType::ALL.iter().copied();
    let is_wanted = |other: &ElementType| other.kind() == ElementKind::Unsigned && other.bit_width() == ty.bit_width();
    types.into_iter().find(is_wanted).unwrap_or(ty)
}
