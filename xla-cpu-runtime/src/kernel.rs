//! Signatures of kernels and of library functions.

/// Kernel: buffer pointers, first work item, one past the last.
///
/// # Safety
/// The pointers must be the kernel's operands and results, with the sizes that the kernel was generated for. The range
/// must be inside the kernel's work items. During the call, no other code may write memory that the kernel reads, or
/// access memory that it writes. Different work items of a kernel write disjoint memory.
pub type KernelFn = unsafe extern "C" fn(*const *mut u8, i64, i64);

/// Library function: pointers of operands and results, kernels that the function calls, the numbers that describe the
/// call, their count, and the number of threads.
///
/// # Safety
/// The numbers must be the descriptor of a [`LibraryCall`](crate::LibraryCall) of this function, and the kernels must
/// belong to the same call. The pointers must be the arrays that the descriptor was made for, operands first (after the
/// run's context if the function [takes](crate::LibraryFunction::takes_context) one), row-major or in the layout of the
/// shape. During the call, no other code may write memory that the function reads, or access memory that it writes.
pub type LibraryFn = unsafe extern "C" fn(*const *mut u8, *const KernelFn, *const i64, i64, i64);
