//! Signatures of kernels and of library functions.

/// A kernel: buffer pointers, first work item, one past the last.
///
/// # Safety
/// The pointers are those of the kernel's operands and results, of the sizes that it was generated for; the work items
/// are some of its own; and nobody else writes meanwhile what it reads, or uses what it writes. Different work items of
/// a kernel write to disjoint places.
pub type KernelFn = unsafe extern "C" fn(*const *mut u8, i64, i64);

/// A library function: the pointers of operands and results, the kernels that the call hands along, the numbers that
/// describe the call and how many they are, and how many threads it may use.
///
/// # Safety
/// The numbers are the descriptor of a [`LibraryCall`](crate::LibraryCall) of this function; the pointers are those of
/// the arrays that it was made for, operands first (behind the run's context where the function
/// [takes](crate::LibraryFunction::takes_context) one), row major or in the layout of the shape; and the kernels are
/// those of the call. Nobody else writes meanwhile what it reads, or uses what it writes.
pub type LibraryFn = unsafe extern "C" fn(*const *mut u8, *const KernelFn, *const i64, i64, i64);
