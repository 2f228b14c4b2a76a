//! Orders of elements as plain data: integers that come in the order of the elements, and comparators that say no more
//! than such integers. Knows no LLVM.

mod comparator;
mod key;

pub use comparator::{compared, key_of_comparator};

pub use key::Key;
pub use key::{Form, SpecialValues};
