//! Element orders as plain data: sort keys, and comparators that are equivalent to a comparison of keys. Independent of
//! LLVM.

mod comparator;
mod key;

pub use comparator::{compared, key_of_comparator};

pub use key::Key;
pub use key::{Form, SpecialValues};
