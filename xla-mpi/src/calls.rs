//! Calls of MPI on one communicator.
#![expect(unsafe_code, reason = "calls functions of a C library")]

use std::ffi::c_int;
use std::ptr::null_mut;
use std::sync::atomic::AtomicUsize;

use xla_hlo::{Error, Result};

use crate::abi::{Handle, Status};
use crate::library::MpiLibrary;

/// A message that can be received.
pub(crate) struct Probed {
    /// Rank of the sender.
    pub source: usize,
    /// Number of bytes.
    pub bytes: usize,
}

impl MpiLibrary {
    /// `MPI_Initialized` and `MPI_Finalized`.
    pub fn phase(&self) -> Result<(bool, bool)> {
        let [mut initialized, mut finalized] = [0; 2];
        // SAFETY: stores a flag. May be called at any time.
        self.check("MPI_Initialized", unsafe { (self.functions.initialized)(&mut initialized) })?;
        // SAFETY: as above.
        self.check("MPI_Finalized", unsafe { (self.functions.finalized)(&mut finalized) })?;
        Ok((initialized != 0, finalized != 0))
    }

    /// `MPI_Init_thread`: initialises MPI for calls by one thread at a time. Returns the level.
    pub fn init(&self) -> Result<c_int> {
        let mut level = 0;
        // SAFETY: null is permitted for the arguments of the program. The session calls it once.
        let code =
            unsafe { (self.functions.init_thread)(null_mut(), null_mut(), self.constants.serialized, &mut level) };
        self.check("MPI_Init_thread", code)?;
        Ok(level)
    }

    /// `MPI_Query_thread`: returns the level of an initialised MPI.
    pub fn thread_level(&self) -> Result<c_int> {
        let mut level = 0;
        // SAFETY: stores a number.
        self.check("MPI_Query_thread", unsafe { (self.functions.query_thread)(&mut level) })?;
        Ok(level)
    }

    /// `MPI_Finalize`.
    pub fn finalize(&self) -> Result<()> {
        // SAFETY: the thread that has initialised MPI calls it once, and no other thread calls MPI afterwards.
        self.check("MPI_Finalize", unsafe { (self.functions.finalize)() })
    }

    /// `MPI_Comm_set_errhandler`: errors become error codes, instead of ending the process.
    pub fn return_errors(&self, comm: Handle) -> Result<()> {
        // SAFETY: both handles are valid.
        let code = unsafe { (self.functions.comm_set_errhandler)(comm, self.constants.errors_return) };
        self.check("MPI_Comm_set_errhandler", code)
    }

    /// `MPI_Comm_rank` and `MPI_Comm_size`.
    pub fn rank_and_size(&self, comm: Handle) -> Result<(usize, usize)> {
        let [mut rank, mut size] = [0; 2];
        // SAFETY: the handle is valid.
        self.check("MPI_Comm_rank", unsafe { (self.functions.comm_rank)(comm, &mut rank) })?;
        // SAFETY: as above.
        self.check("MPI_Comm_size", unsafe { (self.functions.comm_size)(comm, &mut size) })?;
        match (usize::try_from(rank), usize::try_from(size)) {
            (Ok(rank), Ok(size)) => Ok((rank, size)),
            _ => Err(Error::internal(format!("MPI returned the rank {rank} of {size}"))),
        }
    }

    /// `MPI_Comm_idup`: begins to duplicate the world. `comm` is set when the request is complete.
    pub fn begin_duplicate(&self, comm: &'static AtomicUsize) -> Result<Handle> {
        let mut request = 0;
        let world = self.constants.world;
        // SAFETY: the world is valid after initialisation, and `comm` for ever. It is read after the request's end.
        let code = unsafe { (self.functions.comm_idup)(world, comm.as_ptr(), &mut request) };
        self.check("MPI_Comm_idup", code)?;
        Ok(request)
    }

    /// `MPI_Test`: returns whether a request is complete. Then it is null.
    pub fn test(&self, request: &mut Handle) -> Result<bool> {
        let (mut flag, mut status) = (0, Status::default());
        // SAFETY: the request is one that MPI has returned and that was not completed before.
        self.check("MPI_Test", unsafe { (self.functions.test)(request, &mut flag, &mut status) })?;
        Ok(flag != 0)
    }

    /// `MPI_Iprobe`: returns a message of any process that can be received.
    pub fn probe(&self, comm: Handle, tag: c_int) -> Result<Option<Probed>> {
        let (mut flag, mut status, mut count) = (0, Status::default(), 0);
        let any = self.constants.any_source;
        // SAFETY: the communicator is valid, and the status has room.
        let code = unsafe { (self.functions.iprobe)(any, tag, comm, &mut flag, &mut status) };
        self.check("MPI_Iprobe", code)?;
        if flag == 0 {
            return Ok(None);
        }
        // SAFETY: the probe has set the status.
        let code = unsafe { (self.functions.get_count)(&status, self.constants.byte, &mut count) };
        self.check("MPI_Get_count", code)?;
        match (usize::try_from(status.0[self.constants.source_index]), usize::try_from(count)) {
            (Ok(source), Ok(bytes)) => Ok(Some(Probed { source, bytes })),
            _ => Err(Error::internal(format!("MPI returned the status {status:?} of a message"))),
        }
    }

    /// `MPI_Isend`: begins to send bytes.
    ///
    /// # Safety
    ///
    /// The bytes stay allocated and unchanged until the request is complete.
    pub unsafe fn begin_send(&self, bytes: &[u8], to: usize, tag: c_int, comm: Handle) -> Result<Handle> {
        let (count, to, mut request) = (count(bytes.len())?, rank(to)?, 0);
        let (send, byte) = (self.functions.isend, self.constants.byte);
        // SAFETY: the handles are valid, and the caller keeps the bytes.
        let code = unsafe { send(bytes.as_ptr().cast(), count, byte, to, tag, comm, &mut request) };
        self.check("MPI_Isend", code)?;
        Ok(request)
    }

    /// `MPI_Irecv`: begins to receive bytes.
    ///
    /// # Safety
    ///
    /// The bytes stay allocated, and nothing accesses them, until the request is complete.
    pub unsafe fn begin_receive(&self, bytes: &mut [u8], from: usize, tag: c_int, comm: Handle) -> Result<Handle> {
        let (count, from, mut request) = (count(bytes.len())?, rank(from)?, 0);
        let (receive, byte) = (self.functions.irecv, self.constants.byte);
        // SAFETY: the handles are valid, and the caller keeps the bytes.
        let code = unsafe { receive(bytes.as_mut_ptr().cast(), count, byte, from, tag, comm, &mut request) };
        self.check("MPI_Irecv", code)?;
        Ok(request)
    }
}

fn count(bytes: usize) -> Result<c_int> {
    c_int::try_from(bytes).map_err(|_| Error::internal(format!("a message of {bytes} bytes was not cut")))
}

fn rank(rank: usize) -> Result<c_int> {
    c_int::try_from(rank).map_err(|_| Error::internal(format!("there is no process {rank}")))
}
