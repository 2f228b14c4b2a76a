//! Sends and receives that own their memory.
#![expect(unsafe_code, reason = "MPI accesses the memory of operations until they are complete")]

use std::mem::{forget, take};
use std::sync::Arc;

use xla_hlo::{Error, Result};

use crate::abi::Handle;
use crate::library::MpiLibrary;

/// Largest number of bytes of an MPI message: counts are 32-bit integers.
const PART_BYTES: usize = 1 << 30;

/// A send. Its memory is not freed before it is complete.
#[derive(Debug)]
pub(crate) struct Send {
    /// Rank of the receiver.
    pub to: usize,
    bytes: Arc<Vec<u8>>,
    requests: Vec<Handle>,
}

/// A receive. Its memory is not freed before it is complete.
#[derive(Debug)]
pub(crate) struct Receive {
    bytes: Vec<u8>,
    requests: Vec<Handle>,
}

impl Send {
    /// Begins to send bytes, in several messages if they are many.
    pub fn begin(mpi: &MpiLibrary, comm: Handle, to: usize, tag: i32, bytes: Arc<Vec<u8>>) -> Result<Send> {
        let mut send = Send { to, bytes, requests: vec![] };
        for part in send.bytes.chunks(PART_BYTES) {
            // SAFETY: the operation owns the bytes, which nothing changes, until it is complete.
            send.requests.push(unsafe { mpi.begin_send(part, to, tag, comm) }?);
        }
        Ok(send)
    }

    /// Returns whether the send is complete.
    pub fn test(&mut self, mpi: &MpiLibrary) -> Result<bool> {
        test(mpi, &mut self.requests)
    }
}

impl Drop for Send {
    fn drop(&mut self) {
        if !self.requests.is_empty() {
            // MPI may still read the bytes.
            forget(self.bytes.clone());
        }
    }
}

impl Receive {
    /// Begins to receive this number of bytes, in messages of the sizes that [`Send::begin`] sends.
    pub fn begin(mpi: &MpiLibrary, comm: Handle, from: usize, tag: i32, size: usize) -> Result<Receive> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(size).map_err(|_| {
            Error::resource_exhausted(format!("no memory for a message of {size} bytes from process {from}"))
        })?;
        bytes.resize(size, 0);
        let mut receive = Receive { bytes, requests: vec![] };
        for part in receive.bytes.chunks_mut(PART_BYTES) {
            // SAFETY: the operation owns the bytes, which nothing accesses, until it is complete.
            receive.requests.push(unsafe { mpi.begin_receive(part, from, tag, comm) }?);
        }
        Ok(receive)
    }

    /// Returns the bytes if the receive is complete.
    pub fn test(&mut self, mpi: &MpiLibrary) -> Result<Option<Vec<u8>>> {
        Ok(test(mpi, &mut self.requests)?.then(|| take(&mut self.bytes)))
    }
}

impl Drop for Receive {
    fn drop(&mut self) {
        if !self.requests.is_empty() {
            // MPI may still write to the bytes.
            forget(take(&mut self.bytes));
        }
    }
}

/// Returns whether all requests are complete, and removes complete ones.
fn test(mpi: &MpiLibrary, requests: &mut Vec<Handle>) -> Result<bool> {
    while let Some(request) = requests.last_mut() {
        if !mpi.test(request)? {
            return Ok(false);
        }
        requests.pop();
    }
    Ok(true)
}
