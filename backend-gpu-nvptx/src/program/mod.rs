//! Compiled programs: the output of code generation, without LLVM.
//!
//! ```text
//! image              kernels and the code objects that contain them; kernel_map: their TMA descriptors
//! commands           the command sequence of each thunk: launches, copies, library calls
//! library_call       calls of NVIDIA's libraries as plain data
//! recorded_lowering  results of the lowering, replayed when the program is loaded
//! serialized         all of these as bytes           compiled_for   the GPUs that run the code
//! loading            bytes to an executable          costs          thunks onto streams
//! launcher           a thunk's commands on a device  caches         state shared by the programs of a process
//! launches           facts about the launches of each kernel
//! ```

#[cfg(feature = "compile")]
pub(crate) mod ahead_of_time;
pub(crate) mod caches;
pub(crate) mod collective;
pub(crate) mod commands;
pub(crate) mod compiled_for;
pub(crate) mod costs;
pub(crate) mod image;
pub(crate) mod kernel_map;
pub(crate) mod launcher;
#[cfg(feature = "compile")]
pub(crate) mod launches;
pub(crate) mod library_call;
pub(crate) mod loading;
pub(crate) mod recorded_lowering;
pub(crate) mod serialized;
