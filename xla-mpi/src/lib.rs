//! MPI as a transport of collectives over several processes. It is loaded at run time; builds need no MPI.
//!
//! ```text
//! xla_service::collective::processes::Processes   engine: reductions, order, time-outs
//!   │ Transport: send, poll                │ Inbox: receive, lost
//! Mpi (transport)  ── endpoint ── operations ── calls ── library: MPI_Isend, MPI_Irecv, MPI_Test, ...
//!                                                         abi: constants and handles of MPICH, Open MPI, standard ABI
//! ```
//!
//! - The transport sends bytes between two processes, so it needs no types or reductions of MPI.
//! - Threads that wait for a message poll MPI themselves; a thread of the transport polls in the meantime. MPI is
//!   called by one thread at a time (`MPI_THREAD_SERIALIZED`).
//! - Short messages are one MPI message. Longer ones are announced, and received into their own memory.

#![warn(missing_docs)]

mod abi;
mod calls;
mod connector;
mod endpoint;
mod find;
mod library;
mod operations;
mod session;
mod transport;
mod wire;

pub use connector::MpiConnector;
pub use transport::Mpi;
