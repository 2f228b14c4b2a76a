//! Symbols of a plan's loop variables, from the counters of its loops.

use xla_hlo::Result;

use crate::fused::emitter::FusedEmitter;
use crate::fused::loops::affine::{AffineExpr, Symbol, SymbolId};
use crate::fused::loops::plan::{LoopPlan, carrier};
use crate::fused::value::SymbolValue;

/// Returns the counters of the outer loops, from the linear number of a row.
pub(crate) fn counters(s: &mut FusedEmitter<'_, '_, '_>, row: &AffineExpr, loops: &[u64]) -> Result<Vec<AffineExpr>> {
    let mut rest = row.clone();
    let mut counters = vec![AffineExpr::default(); loops.len()];
    for (counter, &extent) in counters.iter_mut().zip(loops).skip(1).rev() {
        let (quotient, remainder) = s.divide(&rest, extent as i64)?;
        *counter = remainder;
        rest = quotient;
    }
    if let Some(first) = counters.first_mut() {
        *first = rest;
    }
    Ok(counters)
}

/// Defines symbols for the variables of the outer loops, given the loops' counters.
pub(crate) fn outer_variables(
    s: &mut FusedEmitter<'_, '_, '_>,
    plan: &LoopPlan,
    counters: &[AffineExpr],
) -> Result<Vec<SymbolId>> {
    let mut symbols = Vec::new();
    counters.iter().try_for_each(|counter| next_variables(s, plan, counter, &mut symbols))?;
    Ok(symbols)
}

/// Appends the symbols of the next loop's variables, given its counter, to those of the enclosing loops.
pub(crate) fn next_variables(
    s: &mut FusedEmitter<'_, '_, '_>,
    plan: &LoopPlan,
    counter: &AffineExpr,
    symbols: &mut Vec<SymbolId>,
) -> Result<()> {
    if let Some(group) = plan.groups().iter().find(|group| group.start == symbols.len()) {
        let known = s.number_of(counter)?;
        let value = SymbolValue::Uniform(s.lanes_of(known));
        group_variables(s, plan, group, Counter::Value(value, counter.level(&s.symbols)), symbols);
    }
    Ok(())
}

/// Returns the symbols of all variables: the outer ones, and those of the innermost loop with its counter (0 if there
/// is none).
pub(crate) fn all_variables(
    s: &mut FusedEmitter<'_, '_, '_>,
    plan: &LoopPlan,
    outer: &[SymbolId],
    lane: Option<SymbolId>,
) -> Vec<SymbolId> {
    let mut symbols = outer.to_vec();
    let counter = match lane {
        Some(lane) => Counter::Value(s.symbol_value(lane), s.symbols.get(lane).level),
        None => Counter::Value(SymbolValue::Uniform(s.number(0)), 0),
    };
    for group in plan.groups().iter().filter(|g| g.start >= outer.len()) {
        group_variables(s, plan, group, counter, &mut symbols);
    }
    symbols
}

/// Returns the symbols of all variables, where the variable that carries the innermost loop is the symbol `turn` of an
/// iteration itself. Values computed at that symbol are therefore found at the variable's index.
pub(crate) fn turn_variables(
    s: &mut FusedEmitter<'_, '_, '_>,
    plan: &LoopPlan,
    outer: &[SymbolId],
    turn: SymbolId,
) -> Vec<SymbolId> {
    let mut symbols = outer.to_vec();
    for group in plan.groups().iter().filter(|g| g.start >= outer.len()) {
        group_variables(s, plan, group, Counter::Turn(turn), &mut symbols);
    }
    symbols
}

/// Counter of a loop.
#[derive(Clone, Copy)]
enum Counter<'e, 'ctx> {
    /// Symbol of an iteration of the whole loop.
    Turn(SymbolId),
    /// Value of the counter, and its level.
    Value(SymbolValue<'e, 'ctx>, usize),
}

/// Appends the symbols of one loop's variables: the carrier has the counter's value, the others are 0.
fn group_variables<'e, 'ctx>(
    s: &mut FusedEmitter<'e, 'ctx, '_>,
    plan: &LoopPlan,
    group: &std::ops::Range<usize>,
    counter: Counter<'e, 'ctx>,
    symbols: &mut Vec<SymbolId>,
) {
    let extents = plan.extents();
    let carrier = carrier(&extents, group);
    for v in group.clone() {
        let symbol = match counter {
            Counter::Turn(symbol) if carrier == Some(v) => symbol,
            Counter::Value(value, level) if carrier == Some(v) => {
                s.define(Symbol { extent: Some(extents[v]), level }, value)
            }
            // Values that depend only on the other variables are computed once, outside of all loops.
            Counter::Turn(_) | Counter::Value(..) => s.zero_symbol(v, extents[v]),
        };
        symbols.push(symbol);
    }
}
