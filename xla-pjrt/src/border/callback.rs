//! Functions of the caller that this crate calls.
//!
//! No lock of this crate may be held while one of the caller's runs: it may call the C API again.
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
    /// Called for each payload of an error.
    Visitor(*const u8, usize, *const u8, usize, Address);
    /// Called when memory is no longer used: with the memory, and an argument of its own.
    Release(Address, Address);
    /// Called for one pointer.
    Receiver(Address);
}

impl Visitor {
    /// Calls it.
    pub fn call(self, key: &str, value: &[u8], argument: Address) {
        if let Some(function) = self.0 {
            // SAFETY: the caller promises that it may be called with this argument, and strings live during the call.
            unsafe { function(key.as_ptr(), key.len(), value.as_ptr(), value.len(), argument) };
        }
    }
}

impl Release {
    /// Calls it.
    pub fn call(self, memory: Address, argument: Address) {
        if let Some(function) = self.0 {
            // SAFETY: the caller promises that it may be called once with these arguments, from any thread.
            unsafe { function(memory, argument) };
        }
    }
}

impl Receiver {
    /// Calls it.
    pub fn call(self, argument: Address) {
        if let Some(function) = self.0 {
            // SAFETY: the caller promises that it may be called once with this argument, from any thread.
            unsafe { function(argument) };
        }
    }
}
