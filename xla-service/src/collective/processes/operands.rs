//! Operands that processes send each other.

use std::sync::Arc;

use xla_hlo::Result;

use super::exchange::{Exchange, INLINE_BYTES};
use super::pieces::{Packer, Unpacker};
use super::route::Process;
use super::segments::{are_equal_for_all, segments};
use crate::collective::in_process::{Access, Place};
use crate::collective::{CollectiveSpec, MemberArguments};

/// Operands of the local members that another process needs. Clones share the bytes.
#[derive(Clone, Debug)]
pub(super) enum Packed {
    /// They are sent in the header.
    Inline(Arc<Vec<u8>>),
    /// They are sent after the headers.
    Pieces(Vec<Arc<Vec<u8>>>),
}

impl Packed {
    /// Whether all processes need the same operands.
    pub fn are_equal_for_all(spec: &CollectiveSpec) -> bool {
        are_equal_for_all(spec.operation())
    }

    /// Packs the operands for the members of another process.
    pub fn new(exchange: &Exchange<'_>, access: Access<'_>, receivers: &[usize]) -> Result<Packed> {
        let mut packer = Packer::default();
        for (&rank, arguments) in exchange.route.local().iter().zip(exchange.arguments) {
            for segment in segments(exchange.spec, rank, arguments, receivers)? {
                let place = Place { rank, array: segment.array, at: segment.at };
                packer.add(access.operand(place, segment.bytes));
            }
        }
        Ok(match packer.finish(INLINE_BYTES) {
            Ok(bytes) => Packed::Inline(Arc::new(bytes)),
            Err(pieces) => Packed::Pieces(pieces),
        })
    }

    /// Returns the operands that the header contains.
    pub fn inline(&self) -> Option<&[u8]> {
        match self {
            Packed::Inline(bytes) => Some(bytes),
            Packed::Pieces(_) => None,
        }
    }

    /// Whether two headers have the same operands, without comparing bytes.
    pub fn is_same(&self, other: &Packed) -> bool {
        match (self, other) {
            (Packed::Inline(a), Packed::Inline(b)) => Arc::ptr_eq(a, b),
            (Packed::Pieces(_), Packed::Pieces(_)) => true,
            _ => false,
        }
    }

    /// Returns the messages that follow the header.
    pub fn into_pieces(self) -> Vec<Arc<Vec<u8>>> {
        match self {
            Packed::Inline(_) => vec![],
            Packed::Pieces(pieces) => pieces,
        }
    }
}

/// Operands of the members of other processes, by rank: whole arrays, of which only the parts that local members need
/// are set. The memory of other parts is zero, which the system does not allocate.
#[derive(Debug)]
pub(super) struct Operands(Vec<Vec<Vec<u8>>>);

impl Operands {
    pub fn new(members: usize) -> Operands {
        Operands(vec![vec![]; members])
    }

    /// Returns the operands of a member, each with offset zero.
    pub fn of(&self, rank: usize) -> impl Iterator<Item = (usize, &[u8])> {
        self.0[rank].iter().map(|bytes| (0, &bytes[..]))
    }

    /// Reads the operands of the members of a process from its messages: `first`, and all that `next` receives.
    pub fn read(
        &mut self,
        exchange: &Exchange<'_>,
        process: &Process,
        first: Vec<u8>,
        arguments: &[MemberArguments],
        next: impl FnMut() -> Result<Vec<u8>>,
    ) -> Result<()> {
        let mut unpacker = Unpacker::new(first, next);
        for &rank in &process.members {
            let operands = &mut self.0[rank];
            *operands = exchange.spec.operand_bytes().map(|bytes| vec![0; bytes]).collect();
            for segment in segments(exchange.spec, rank, &arguments[rank], exchange.route.local())? {
                unpacker.read(&mut operands[segment.array][segment.at..segment.at + segment.bytes])?;
            }
        }
        unpacker.finish()
    }
}
