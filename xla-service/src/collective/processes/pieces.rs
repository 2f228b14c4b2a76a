//! Segments of operands as messages: concatenated, and cut into pieces.

use std::sync::Arc;

use xla_hlo::{Error, Result};

/// Largest number of bytes of a message with operands. Transports allocate a message as a whole.
const PIECE_BYTES: usize = 4 << 20;

/// Concatenates bytes into pieces.
#[derive(Debug, Default)]
pub(super) struct Packer {
    full: Vec<Arc<Vec<u8>>>,
    last: Vec<u8>,
}

impl Packer {
    pub fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at(bytes.len().min(PIECE_BYTES - self.last.len()));
            self.last.extend(piece);
            bytes = rest;
            if self.last.len() == PIECE_BYTES {
                self.full.push(Arc::new(std::mem::take(&mut self.last)));
            }
        }
    }

    /// Returns the bytes if they fit into one message of at most `limit` bytes, otherwise the pieces.
    pub fn finish(mut self, limit: usize) -> std::result::Result<Vec<u8>, Vec<Arc<Vec<u8>>>> {
        if self.full.is_empty() && self.last.len() <= limit {
            return Ok(self.last);
        }
        self.full.extend((!self.last.is_empty()).then(|| Arc::new(self.last)));
        Err(self.full)
    }
}

/// Reads concatenated bytes from pieces.
pub(super) struct Unpacker<F> {
    /// Receives the next piece.
    next: F,
    piece: Vec<u8>,
    at: usize,
}

impl<F: FnMut() -> Result<Vec<u8>>> Unpacker<F> {
    /// Reads from a first piece, and then from all that `next` receives.
    pub fn new(first: Vec<u8>, next: F) -> Unpacker<F> {
        Unpacker { next, piece: first, at: 0 }
    }

    /// Reads bytes into memory.
    pub fn read(&mut self, mut memory: &mut [u8]) -> Result<()> {
        while !memory.is_empty() {
            if self.at == self.piece.len() {
                (self.piece, self.at) = ((self.next)()?, 0);
                if self.piece.is_empty() {
                    return Err(Error::internal("a process sent an empty part of its operands"));
                }
            }
            let length = memory.len().min(self.piece.len() - self.at);
            let (start, rest) = memory.split_at_mut(length);
            start.copy_from_slice(&self.piece[self.at..self.at + length]);
            (memory, self.at) = (rest, self.at + length);
        }
        Ok(())
    }

    /// Checks that all bytes were read.
    pub fn finish(self) -> Result<()> {
        match self.piece.len() - self.at {
            0 => Ok(()),
            surplus => Err(Error::internal(format!("a process sent {surplus} surplus bytes of its operands"))),
        }
    }
}
