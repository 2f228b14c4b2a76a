//! Dispatch from an operation to the rules in its family's folder.

use super::list::for_operations;
use super::*;
use crate::proto::{ProtoAttributes, ProtoReader, ProtoWriter};
use crate::sdy::{RuleContext, ShardingRule};
use crate::text::AttributeReader;
use crate::{CompId, Error, Result};

macro_rules! dispatch {
    ($($(#[$doc:meta])* $variant:ident [$($trait:ident)*] $(calls $context:ident)?: $($opcode:ident)|+;)*) => {
        impl Op {
            /// Returns the rules of this operation.
            pub fn rules(&self) -> &dyn OpRules {
                match self { $(Op::$variant(op) => op,)* }
            }

            fn rules_mut(&mut self) -> &mut dyn OpRules {
                match self { $(Op::$variant(op) => op,)* }
            }

            /// Returns the sharding rule of this operation, see [`OpSharding`].
            pub fn sharding_rule(&self, cx: &RuleContext<'_>) -> Result<Option<ShardingRule>> {
                match self { $(Op::$variant(op) => op.sharding_rule(cx),)* }
            }

            /// Reads the attributes of an operation from text. The error names an operation that is not implemented
            /// yet.
            pub fn read(opcode: Opcode, reader: &mut AttributeReader<'_>) -> Result<Op> {
                match opcode {
                    $($(Opcode::$opcode)|+ => $variant::read(opcode, reader).map(Op::$variant),)*
                    later => Err(Error::unimplemented(format!("operation {later} is not implemented yet"))),
                }
            }

            /// Reads the attributes of an operation from its protobuf message, with the same errors as [`Op::read`].
            pub fn read_proto(opcode: Opcode, reader: &mut ProtoReader<'_>) -> Result<Op> {
                match opcode {
                    $($(Opcode::$opcode)|+ => $variant::read_proto(opcode, reader).map(Op::$variant),)*
                    later => Err(Error::unimplemented(format!("operation {later} is not implemented yet"))),
                }
            }

            /// Writes the attributes of the operation to its protobuf message.
            pub fn write_proto(&self, writer: &mut ProtoWriter<'_>) -> Result<()> {
                match self { $(Op::$variant(op) => op.write_proto(writer),)* }
            }
        }

        impl Opcode {
            /// Whether this crate implements the operation; the error for any other opcode in text names it.
            pub const fn is_implemented(self) -> bool {
                matches!(self, $($(Opcode::$opcode)|+)|*)
            }
        }
    };
}

for_operations!(dispatch);

impl Op {
    /// Returns the opcode, which is the operation's name in text.
    pub fn opcode(&self) -> Opcode {
        self.rules().opcode()
    }

    /// Returns the computations named by attributes, in the order of the text.
    pub fn called_computations(&self) -> Vec<CompId> {
        self.rules().called_computations()
    }

    /// Replaces the computations named by attributes; returns whether any of them changed.
    pub fn map_called_computations(&mut self, f: &mut dyn FnMut(CompId) -> CompId) -> bool {
        let mut changed = false;
        self.rules_mut().visit_called_computations(&mut |id| {
            let new = f(*id);
            changed |= new != *id;
            *id = new;
        });
        changed
    }
}
