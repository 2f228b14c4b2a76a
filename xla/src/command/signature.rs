//! Signatures of modules that are not compiled yet, with shapes without layouts.

use xla::hlo::{ArrayShape, Module, Result};
use xla::service::Signature;

/// Returns the shape without its layout.
pub fn plain(shape: &ArrayShape) -> ArrayShape {
    shape.clone().with_layout(None)
}

/// Returns the signature of a module, without layouts.
pub fn of_module(module: &Module) -> Result<Signature> {
    Signature::new(module, |shape| Ok(plain(shape)))
}
