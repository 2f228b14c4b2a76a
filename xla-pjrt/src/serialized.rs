//! Byte strings that are passed to C together with a deleter.

use crate::abi::kinds;
use crate::ffi::{Handle, Kind, List, Text};

impl Kind for kinds::Serialized {
    type Value = Vec<u8>;
    const NAME: &'static str = "PJRT_Serialized";
}

/// Returns the bytes as C sees them, and the object that owns them.
pub(crate) fn hand_out(bytes: Vec<u8>) -> (Text, Handle<kinds::Serialized>) {
    // The bytes are on the heap, so their address does not change when the vector is moved.
    let text = List::of(&bytes);
    (text, Handle::new(bytes))
}
