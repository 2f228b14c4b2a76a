//! Binary interfaces of MPI: the standard one of MPI 5.0, and the ones of MPICH and of Open MPI.

use std::ffi::c_int;

/// Handle of an MPI object: a pointer, or the 32 bits of an MPICH handle.
pub(crate) type Handle = usize;

/// Memory of an `MPI_Status`, which has 20 to 32 bytes. Open MPI's contains a `size_t`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, align(8))]
pub(crate) struct Status(pub [c_int; 8]);

/// Family of implementations that share a binary interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// Standard ABI of MPI 5.0: `libmpi_abi.so`.
    Standard,
    /// MPICH and its relatives: Intel MPI, MVAPICH, Cray MPICH.
    Mpich,
    /// Open MPI, whose handles are addresses of exported objects.
    OpenMpi,
}

/// Constants of a binary interface.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Constants {
    /// `MPI_COMM_WORLD`.
    pub world: Handle,
    /// `MPI_BYTE`.
    pub byte: Handle,
    /// `MPI_ERRORS_RETURN`.
    pub errors_return: Handle,
    /// `MPI_ANY_SOURCE`.
    pub any_source: c_int,
    /// `MPI_THREAD_SERIALIZED`.
    pub serialized: c_int,
    /// `MPI_THREAD_MULTIPLE`.
    pub multiple: c_int,
    /// Index of `MPI_SOURCE` in the status.
    pub source_index: usize,
}

/// Names of the exported objects of Open MPI: world, byte, errors return.
pub(crate) const OPEN_MPI_OBJECTS: [&str; 3] = ["ompi_mpi_comm_world", "ompi_mpi_byte", "ompi_mpi_errors_return"];

impl Family {
    /// Returns the constants. `objects` holds the addresses of [`OPEN_MPI_OBJECTS`], for Open MPI.
    pub fn constants(self, objects: [Handle; 3]) -> Constants {
        match self {
            Family::Standard => Constants {
                world: 0x101,
                byte: 0x247,
                errors_return: 0x143,
                any_source: -1,
                serialized: 2048,
                multiple: 4096,
                source_index: 0,
            },
            Family::Mpich => Constants {
                world: 0x4400_0000,
                byte: 0x4c00_010d,
                errors_return: 0x5400_0001,
                any_source: -2,
                serialized: 2,
                multiple: 3,
                source_index: 2,
            },
            Family::OpenMpi => {
                let [world, byte, errors_return] = objects;
                Constants { world, byte, errors_return, any_source: -1, serialized: 2, multiple: 3, source_index: 0 }
            }
        }
    }
}
