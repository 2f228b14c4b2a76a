//! Which values share memory: what must, what may, and which values live when.

mod value;

pub use value::ValueRef;
