//! Checks of C arguments that all libraries share.
#![expect(unsafe_code, reason = "a C library is what this is for")]

/// Writes a result to an address of the program.
///
/// # Safety
/// `into` is null or writable.
pub(crate) unsafe fn put<T>(into: *mut T, value: T) -> Result<(), String> {
    if into.is_null() {
        return Err("a result is wanted at address zero".to_owned());
    }
    // SAFETY: `into` is not null, so the caller guarantees that it is writable.
    unsafe { into.write_unaligned(value) };
    Ok(())
}

/// Whether two ranges overlap; each is an address and a number of bytes.
pub(crate) fn overlaps(one: (u64, u64), two: (u64, u64)) -> bool {
    one.1 > 0 && two.1 > 0 && one.0 < two.0.saturating_add(two.1) && two.0 < one.0.saturating_add(one.1)
}
