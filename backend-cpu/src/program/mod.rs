//! Programs as machine code: kernels, entry function, address table, and serialisation.

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
