//! Traits of operations, looked up in the operation table.

use super::Op;
use super::list::for_operations;

/// A property that an operation has for all attributes and operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpTrait {
    /// Execution has an effect beyond the result; effects of called computations do not count. Tokens and dependencies
    /// only order other operations, and a start operation is kept alive by its done operation (see
    /// [`is_async_start`](crate::effects::is_async_start)), so neither has this trait.
    SideEffect,
    /// The result depends only on the operands, execution never fails, and the cost does not depend on operand values:
    /// code motion may execute it speculatively, where the result is not needed. Excluded are copies, whose position is
    /// deliberate, tuples, which cost nothing, and fusions, which are formed after code motion.
    Speculatable,
    /// Constant folding may replace it: it computes one array from arrays, and the result is worth storing as a
    /// constant. Excluded are broadcasts and iotas, whose result is larger than the operation, and operations that may
    /// run for long.
    Foldable,
    /// Float arithmetic may run in a wider element type, followed by a single rounding.
    Widenable,
}

/// Context in which an operation runs the computations that it calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CallContext {
    /// Calls no computation.
    None,
    /// Called computations are separate programs on whole values: loops, branches, calls.
    Control,
    /// Called computations are compiled into the calling operation: combiners, comparators, mapped functions, steps of
    /// scans.
    Embedded,
    /// The called computation is compiled as one kernel.
    Fusion,
}

impl CallContext {
    /// Returns the name for reports, in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            CallContext::None => "none",
            CallContext::Control => "control",
            CallContext::Embedded => "embedded",
            CallContext::Fusion => "fusion",
        }
    }
}

/// A table row: traits as a bit set, and the context of called computations.
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
    /// Whether the operation has the trait `wanted`.
    pub const fn has_trait(&self, wanted: OpTrait) -> bool {
        row(self).0 & (1 << wanted as u8) != 0
    }

    /// Whether execution has an effect beyond the result, without the effects of called computations. Custom calls
    /// declare it by an attribute.
    pub const fn has_side_effect(&self) -> bool {
        match self {
            Op::CustomCall(call) => call.has_side_effect,
            op => op.has_trait(OpTrait::SideEffect),
        }
    }

    /// Returns the context in which the operation runs the computations that it calls. It is [`CallContext::None`] if
    /// the operation calls none, which depends on the attributes for asynchronous operations, collectives and custom
    /// calls.
    pub fn call_context(&self) -> CallContext {
        match row(self).1 {
            CallContext::None => CallContext::None,
            _ if self.called_computations().is_empty() => CallContext::None,
            context => context,
        }
    }
}
