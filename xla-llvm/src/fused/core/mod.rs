//! Computation of one element of an instruction at an index, by family of operations.

pub(crate) mod address;
pub(crate) mod addressing;
pub(crate) mod combine;
pub(crate) mod concatenate;
pub(crate) mod convolution;
mod coordinate;
pub(crate) mod element;
pub(crate) mod element_key;
mod gather;
pub(crate) mod guard;
pub(crate) mod movement;
pub(crate) mod reduce;
pub(crate) mod scalar_call;
pub(crate) mod window;
