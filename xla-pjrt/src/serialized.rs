//! Bytes that C is handed together with the function that frees them.

use crate::abi::kinds;
use crate::border::{Handle, Kind, List, Text};

impl Kind for kinds::Serialized {
    type Value = Vec<u8>;
    const NAME: &'static str = "PJRT_Serialized";
}

/// The bytes as C sees them, and the object that holds them.
pub(crate) fn hand_out(bytes: Vec<u8>) -> (Text, Handle<kinds::Serialized>) {
    // The bytes stay where they are when the vector moves.
    let text = List::of(&bytes);
    (text, Handle::new(bytes))
}
