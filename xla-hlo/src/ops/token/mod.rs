//! Tokens, which order side effects, and transfers to and from the host and other devices.

mod attributes;
mod eval;
mod proto;
mod shape;
mod sharding;

use super::{OpRules, Opcode, ReadAttributes, ShapeContext};
use crate::eval::Evaluator;
use crate::text::{AttributeReader, AttributeWriter};
use crate::{Error, Literal, Result, Shape};

/// `after-all`: a token ordered after all operand tokens; without operands, a new token.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AfterAll;

impl ReadAttributes for AfterAll {
    fn read(_: Opcode, _: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(AfterAll)
    }
}

impl OpRules for AfterAll {
    fn opcode(&self) -> Opcode {
        Opcode::AfterAll
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::after_all(cx)
    }

    fn write_attributes(&self, _: &mut AttributeWriter<'_>) {}

    fn evaluate(&self, _: &mut Evaluator<'_>, _: Vec<Literal>, _: &Shape) -> Result<Literal> {
        Ok(Literal::token())
    }
}

/// `add-dependency`: returns operand 0, of any shape, ordered after the token that is operand 1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AddDependency;

impl ReadAttributes for AddDependency {
    fn read(_: Opcode, _: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(AddDependency)
    }
}

impl OpRules for AddDependency {
    fn opcode(&self) -> Opcode {
        Opcode::AddDependency
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::add_dependency(cx)
    }

    fn write_attributes(&self, _: &mut AttributeWriter<'_>) {}

    fn evaluate(&self, _: &mut Evaluator<'_>, operands: Vec<Literal>, _: &Shape) -> Result<Literal> {
        operands.into_iter().next().ok_or_else(super::checks::missing_operand)
    }
}

/// Data transfer from or to the host or another device. All transfers are side effects.
///
/// No platform of this workspace has queues to a host or links between devices yet: compilers and the evaluator reject
/// these operations by name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Transfer {
    /// Takes the next value that the host has put into the device's queue. The operand is a token. Returns
    /// `(data, token)`.
    Infeed {
        /// Backend-specific text.
        config: String,
    },
    /// Puts operand 0 into the queue that the host reads, ordered after the token that is operand 1. Returns a token.
    Outfeed {
        /// Shape that the host receives, with its layout; `None` for the shape of operand 0.
        shape: Option<Shape>,
        /// Backend-specific text.
        config: String,
    },
    /// Starts to send operand 0, ordered after the token that is operand 1. Returns `(data, u32[], token)`.
    Send(Channel),
    /// Waits until a `send` is done. Returns a token.
    SendDone(Channel),
    /// Starts to receive, ordered after the token that is operand 0. Returns `(data, u32[], token)`.
    Recv(Channel),
    /// Waits until a `recv` is done. Returns `(data, token)`.
    RecvDone(Channel),
}

/// Channel of a transfer, which connects the sender and the receiver.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Channel {
    /// Number of the channel, not negative; `None` if the backend chooses it.
    pub id: Option<i64>,
    /// Whether the other end is the host.
    pub is_host_transfer: bool,
}

impl ReadAttributes for Transfer {
    fn read(opcode: Opcode, r: &mut AttributeReader<'_>) -> Result<Self> {
        Ok(match opcode {
            Opcode::Infeed => Transfer::Infeed { config: r.optional("infeed_config")?.unwrap_or_default() },
            Opcode::Outfeed => Transfer::Outfeed {
                shape: r.optional("outfeed_shape")?,
                config: r.optional("outfeed_config")?.unwrap_or_default(),
            },
            Opcode::Send => Transfer::Send(Channel::read(r)?),
            Opcode::SendDone => Transfer::SendDone(Channel::read(r)?),
            Opcode::Recv => Transfer::Recv(Channel::read(r)?),
            Opcode::RecvDone => Transfer::RecvDone(Channel::read(r)?),
            other => return Err(Error::internal(format!("{other} is not a transfer"))),
        })
    }
}

impl OpRules for Transfer {
    fn opcode(&self) -> Opcode {
        match self {
            Transfer::Infeed { .. } => Opcode::Infeed,
            Transfer::Outfeed { .. } => Opcode::Outfeed,
            Transfer::Send(_) => Opcode::Send,
            Transfer::SendDone(_) => Opcode::SendDone,
            Transfer::Recv(_) => Opcode::Recv,
            Transfer::RecvDone(_) => Opcode::RecvDone,
        }
    }

    fn infer_shape(&self, cx: &ShapeContext<'_>) -> Result<Shape> {
        shape::transfer(self, cx)
    }

    fn write_attributes(&self, w: &mut AttributeWriter<'_>) {
        attributes::write(self, w);
    }

    fn evaluate(&self, _: &mut Evaluator<'_>, _: Vec<Literal>, _: &Shape) -> Result<Literal> {
        eval::transfer(self)
    }
}
