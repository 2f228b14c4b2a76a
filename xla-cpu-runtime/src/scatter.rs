//! Scatter: copies the inputs unless they are updated in place, and distributes its kernel over threads.
#![expect(unsafe_code, reason = "works on raw buffers of generated code, by a kernel of generated code")]

use crate::kernel::KernelFn;
use crate::pool::parallel_for;

/// Minimum number of bytes that a thread copies.
const COPY_CHUNK: usize = 1 << 20;

/// Scatters updates. The `length` numbers at `descriptor` are the work items of the kernel, then the bytes of each of N
/// inputs; `buffers` are N inputs, the indices, N updates and N results, which may share memory with the inputs. The
/// first of `kernels` combines the updates into the results.
pub(super) unsafe extern "C" fn xla_cpu_scatter(
    buffers: *const *mut u8,
    kernels: *const KernelFn,
    descriptor: *const i64,
    length: i64,
    threads: i64,
) {
    struct Call(KernelFn, *const *mut u8);
    // SAFETY: the pointers are only read, and no two work items of the kernel write the same element.
    unsafe impl Sync for Call {}
    // SAFETY: the generated caller passes a constant of `length` numbers.
    let numbers = unsafe { std::slice::from_raw_parts(descriptor, length as usize) };
    let [units, bytes @ ..] = numbers else { return };
    let (units, threads) = (*units as usize, threads as usize);
    // SAFETY: the caller passes pointers to the inputs, the indices, the updates and the results.
    let pointers = unsafe { std::slice::from_raw_parts(buffers, 3 * bytes.len() + 1) };
    let results = &pointers[2 * bytes.len() + 1..];
    for ((&input, &result), &bytes) in pointers.iter().zip(results).zip(bytes) {
        if input != result {
            // SAFETY: both have that many bytes, and do not overlap: the input is live when the result is first
            // written.
            unsafe { copy(input, result, bytes as usize, threads) };
        }
    }
    // SAFETY: a scatter has a kernel.
    let call = &Call(unsafe { *kernels }, buffers);
    let parts = units.min(threads.max(1));
    parallel_for(parts, parts, &|part| {
        let Call(kernel, buffers) = call;
        let each = units.div_ceil(parts);
        let [begin, end] = [part, part + 1].map(|part| (each * part).min(units) as i64);
        // SAFETY: the kernel takes these pointers and any range of its work items, and writes only to the buffers:
        // windows that do not fit are dropped.
        unsafe { kernel(*buffers, begin, end) };
    });
}

/// Copies bytes, with several threads if there are many.
///
/// # Safety
/// `from` and `to` must have that many bytes and must not overlap. No other code may access the bytes at `to` during
/// the call.
unsafe fn copy(from: *const u8, to: *mut u8, bytes: usize, threads: usize) {
    struct Places(*const u8, *mut u8);
    // SAFETY: each thread copies a separate chunk.
    unsafe impl Sync for Places {}
    let places = &Places(from, to);
    let chunks = (bytes / COPY_CHUNK).clamp(1, threads.max(1));
    parallel_for(threads, chunks, &|chunk| {
        let Places(from, to) = places;
        let (start, end) =
            (bytes / chunks * chunk, if chunk + 1 == chunks { bytes } else { bytes / chunks * (chunk + 1) });
        // SAFETY: the chunk is inside the range that the caller guaranteed.
        unsafe { from.add(start).copy_to_nonoverlapping(to.add(start), end - start) };
    });
}
