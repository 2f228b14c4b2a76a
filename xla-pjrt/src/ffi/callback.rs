//! Callbacks: functions of the caller that this crate calls.
//!
//! No lock of this crate may be held during a callback, because the callback may call the C API again.
#![expect(unsafe_code, reason = "calls functions of the caller")]

use super::field::Field;
use super::pointer::Address;

macro_rules! callback {
    ($($(#[$doc:meta])* $name:ident($($argument:ty),*);)*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy)]
        pub(crate) struct $name(Option<unsafe extern "C" fn($($argument),*)>);

        impl Field for $name {
            const NULL: $name = $name(None);
        }
    )*};
}

callback! {
    /// Callback for each payload of an error: key and length, value and length, argument.
    Visitor(*const u8, usize, *const u8, usize, Address);
    /// Callback for memory that is no longer used: the memory, and the callback's argument.
    Release(Address, Address);
    /// Callback with one pointer.
    Receiver(Address);
}

impl Visitor {
    /// Calls the function.
    pub fn call(self, key: &str, value: &[u8], argument: Address) {
        if let Some(function) = self.0 {
            // SAFETY: the caller promises that the function may be called with this argument, and the strings live
            // during the call.
            unsafe { function(key.as_ptr(), key.len(), value.as_ptr(), value.len(), argument) };
        }
    }
}

impl Release {
    /// Calls the function.
    pub fn call(self, memory: Address, argument: Address) {
        if let Some(function) = self.0 {
            // SAFETY: the caller promises that the function may be called once with these arguments, from any thread.
            unsafe { function(memory, argument) };
        }
    }
}

impl Receiver {
    /// Calls the function.
    pub fn call(self, argument: Address) {
        if let Some(function) = self.0 {
            // SAFETY: the caller promises that the function may be called once with this argument, from any thread.
            unsafe { function(argument) };
        }
    }
}
