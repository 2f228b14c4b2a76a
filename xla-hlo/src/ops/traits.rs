//! Traits of operations, looked up in the table of operations.

use super::Op;
use super::list::for_operations;

/// A property that an operation has for all attributes and operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpTrait {
    /// Running it does more than compute its result, the computations it calls aside. Tokens and dependencies only
    /// order, and a start is kept by its done, see [`is_async_start`](crate::effects::is_async_start): they have no
    /// effect.
    SideEffect,
    /// It computes a function of its operands alone, never fails, and costs the same whatever its operands are: it may
    /// run where its result is not needed. Copies are not, which stand where they stand on purpose, nor tuples, which
    /// cost nothing, nor fusions, which are made when code motion is over.
    Speculatable,
    /// One array computed from arrays, worth storing as a constant where the operands are constants. Broadcasts and
    /// iotas are not, which are smaller than their results, nor operations that may run for long.
    Foldable,
    /// On floats it may be computed in a wider element type and rounded once.
    Widenable,
}

/// The way an operation runs the computations it calls.
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

impl CallContext {
    /// The name for reports, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            CallContext::None => "none",
            CallContext::Control => "control",
            CallContext::Embedded => "embedded",
            CallContext::Fusion => "fusion",
        }
    }
}

/// A row of the table: traits as a set of bits, and the context of called computations.
type Row = (u8, CallContext);

macro_rules! rows {
    ($($(#[$doc:meta])* $variant:ident [$($trait:ident)*] $(calls $context:ident)?: $($opcode:ident)|+;)*) => {
        const fn row(op: &Op) -> Row {
            match op {
                $(Op::$variant(_) => (0 $(| 1 << OpTrait::$trait as u8)*, rows!(@context $($context)?)),)*
            }
        }
    };
    (@context) => { CallContext::None };
    (@context $context:ident) => { CallContext::$context };
}

for_operations!(rows);

impl Op {
    /// Whether the operation has a trait.
    pub const fn has_trait(&self, wanted: OpTrait) -> bool {
        row(self).0 & (1 << wanted as u8) != 0
    }

    /// Whether running the operation does more than compute its result, the computations it calls aside. Custom calls
    /// say it themselves.
    pub const fn has_side_effect(&self) -> bool {
        match self {
            Op::CustomCall(call) => call.has_side_effect,
            op => op.has_trait(OpTrait::SideEffect),
        }
    }

    /// The context in which the operation runs the computations it calls: [`CallContext::None`] where it calls none,
    /// which the attributes of asynchronous operations, collectives and custom calls decide.
    pub fn call_context(&self) -> CallContext {
        match row(self).1 {
            CallContext::None => CallContext::None,
            _ if self.called_computations().is_empty() => CallContext::None,
            context => context,
        }
    }
}
