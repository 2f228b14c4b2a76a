//! Facts about operations that several passes need: effects, and how called computations are run.

use xla_hlo::entity::SecondaryMap;
use xla_hlo::{CompId, Instruction, Module, Op};

/// How an operation runs the computations it calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallContext {
    /// It calls none.
    None,
    /// As a program of their own, on whole values: loops, branches, calls.
    Control,
    /// Compiled as part of the calling operation: combiners, comparators, mapped functions, steps of scans.
    Embedded,
    /// Compiled as one kernel.
    Fusion,
}

/// How `op` runs the computations it calls.
pub fn call_context(op: &Op) -> CallContext {
    match op {
        Op::While(_) | Op::Conditional(_) | Op::Call(_) => CallContext::Control,
        Op::Map(_)
        | Op::Reduce(_)
        | Op::ReduceWindow(_)
        | Op::SelectAndScatter(_)
        | Op::Scan(_)
        | Op::Scatter(_)
        | Op::Sort(_) => CallContext::Embedded,
        Op::Fusion(_) => CallContext::Fusion,
        Op::Parameter(_)
        | Op::Constant(_)
        | Op::Tuple(_)
        | Op::GetTupleElement(_)
        | Op::OptBarrier(_)
        | Op::Unary(_)
        | Op::Binary(_)
        | Op::Compare(_)
        | Op::Select(_)
        | Op::Clamp(_)
        | Op::Convert(_)
        | Op::BitcastConvert(_)
        | Op::ReducePrecision(_)
        | Op::Broadcast(_)
        | Op::Reshape(_)
        | Op::Transpose(_)
        | Op::Slice(_)
        | Op::Pad(_)
        | Op::Concatenate(_)
        | Op::Reverse(_)
        | Op::Iota(_)
        | Op::DynamicSlice(_)
        | Op::DynamicUpdateSlice(_)
        | Op::Copy(_)
        | Op::Bitcast(_)
        | Op::Dot(_)
        | Op::RaggedDot(_)
        | Op::ScaledDot(_)
        | Op::RngBitGenerator(_)
        | Op::Rng(_)
        | Op::RngGetAndUpdateState(_)
        | Op::StochasticConvert(_)
        | Op::BatchNorm(_)
        | Op::Gather(_)
        | Op::Fft(_)
        | Op::Cholesky(_)
        | Op::TriangularSolve(_)
        | Op::TopK(_) => CallContext::None,
    }
}

/// Whether running `op` does more than give its result, the computations it calls aside.
pub fn has_side_effect(op: &Op) -> bool {
    match op {
        Op::Parameter(_)
        | Op::Constant(_)
        | Op::Tuple(_)
        | Op::GetTupleElement(_)
        | Op::OptBarrier(_)
        | Op::Unary(_)
        | Op::Binary(_)
        | Op::Compare(_)
        | Op::Select(_)
        | Op::Clamp(_)
        | Op::Convert(_)
        | Op::BitcastConvert(_)
        | Op::ReducePrecision(_)
        | Op::Broadcast(_)
        | Op::Reshape(_)
        | Op::Transpose(_)
        | Op::Slice(_)
        | Op::Pad(_)
        | Op::Concatenate(_)
        | Op::Reverse(_)
        | Op::Iota(_)
        | Op::DynamicSlice(_)
        | Op::DynamicUpdateSlice(_)
        | Op::Copy(_)
        | Op::Bitcast(_)
        | Op::Dot(_)
        | Op::RaggedDot(_)
        | Op::ScaledDot(_)
        | Op::Reduce(_)
        | Op::Scan(_)
        | Op::ReduceWindow(_)
        | Op::SelectAndScatter(_)
        | Op::While(_)
        | Op::Conditional(_)
        | Op::Call(_)
        | Op::Map(_)
        | Op::Fusion(_)
        | Op::RngBitGenerator(_)
        | Op::StochasticConvert(_)
        | Op::BatchNorm(_)
        | Op::Gather(_)
        | Op::Scatter(_)
        | Op::Fft(_)
        | Op::Cholesky(_)
        | Op::TriangularSolve(_)
        | Op::Sort(_)
        | Op::TopK(_) => false,
        // They move the device's counter on.
        Op::Rng(_) | Op::RngGetAndUpdateState(_) => true,
    }
}

/// Which computations have side effects, their callees included.
pub struct Effects {
    computations: SecondaryMap<CompId, bool>,
}

impl Effects {
    /// Looks at every computation of a module. Linear time.
    pub fn of(module: &Module) -> Effects {
        let mut effects = Effects { computations: SecondaryMap::new(false) };
        for id in module.post_order() {
            let any = module[id].iter().any(|(_, instruction)| effects.has_effect(instruction));
            effects.computations[id] = any;
        }
        effects
    }

    /// Whether running an instruction does more than give its result.
    pub fn has_effect(&self, instruction: &Instruction) -> bool {
        let op = instruction.op();
        has_side_effect(op) || op.called_computations().iter().any(|&c| self.computations[c])
    }
}
