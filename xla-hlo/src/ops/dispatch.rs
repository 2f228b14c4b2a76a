//! Dispatch from an operation to the rules in its family's folder.

use super::list::for_operations;
use super::*;
use crate::proto::{ProtoAttributes, ProtoReader, ProtoWriter};
use crate::text::AttributeReader;
use crate::{CompId, Error, Result};

macro_rules! dispatch {
    ($($(#[$doc:meta])* $variant:ident [$($trait:ident)*] $(calls $context:ident)?: $($opcode:ident)|+;)*) => {
        impl Op {
            /// The rules of this operation.
            pub fn rules(&self) -> &dyn OpRules {
                match self { $(Op::$variant(op) => op,)* }
            }

            fn rules_mut(&mut self) -> &mut dyn OpRules {
                match self { $(Op::$variant(op) => op,)* }
            }

            /// Reads an operation's own attributes. The error names operations that are not here yet.
            pub fn read(opcode: Opcode, reader: &mut AttributeReader<'_>) -> Result<Op> {
                match opcode {
                    $($(Opcode::$opcode)|+ => $variant::read(opcode, reader).map(Op::$variant),)*
                    later => Err(Error::unimplemented(format!("operation {later} is not implemented yet"))),
                }
            }

            /// Reads an operation's own attributes from its message; as [`Op::read`] otherwise.
            pub fn read_proto(opcode: Opcode, reader: &mut ProtoReader<'_>) -> Result<Op> {
                match opcode {
                    $($(Opcode::$opcode)|+ => $variant::read_proto(opcode, reader).map(Op::$variant),)*
                    later => Err(Error::unimplemented(format!("operation {later} is not implemented yet"))),
                }
            }

            /// Writes the operation's own attributes into its message.
            pub fn write_proto(&self, writer: &mut ProtoWriter<'_>) -> Result<()> {
                match self { $(Op::$variant(op) => op.write_proto(writer),)* }
            }
        }

        impl Opcode {
            /// Whether this crate has the operation; text that uses another is refused by name.
            pub const fn is_implemented(self) -> bool {
                matches!(self, $($(Opcode::$opcode)|+)|*)
            }
        }
    };
}

for_operations!(dispatch);

impl Op {
    /// The opcode, as text spells it.
    pub fn opcode(&self) -> Opcode {
        self.rules().opcode()
    }

    /// Computations named by attributes, in the order of the text.
    pub fn called_computations(&self) -> Vec<CompId> {
        self.rules().called_computations()
    }

    /// Replaces computations named by attributes; tells whether one changed.
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
