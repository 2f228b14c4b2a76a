//! Programs as machine code: kernels, the entry that calls them, the addresses that it takes, and files of both.

pub(crate) mod arguments;
pub(crate) mod codegen;
mod copy;
pub(crate) mod entry;
pub(crate) mod external;
pub(crate) mod machine_code;
mod random;
pub(crate) mod refused;
pub(crate) mod sequence;
pub(crate) mod spread;
