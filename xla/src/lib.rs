//! The facade of the compiler: the platforms that its Cargo features name, and the crates underneath under short names.
//!
//! ```
//! use xla::hlo::{ArrayShape, ElementType, Literal, Scalar, builder::ModuleBuilder};
//! use xla::{Client, CompileOptions};
//!
//! # fn main() -> xla::Result<()> {
//! let mut module = ModuleBuilder::new("double");
//! let mut b = module.computation("main");
//! let shape = ArrayShape::new(ElementType::F32, [4]);
//! let x = b.parameter(shape.clone().into())?;
//! let sum = b.add(x, x)?;
//! let main = b.finish(sum);
//! let module = module.finish(main)?;
//!
//! let registry = xla::registry();
//! let client = Client::new(&registry, "interpreter")?;
//! let program = client.compile(&module, &CompileOptions::default())?;
//! let x = Literal::from_fn(&shape, |i| Scalar::Float(i as f64))?;
//! let doubled = program.run(vec![x])?;
//! assert_eq!(doubled.get(3), Scalar::Float(6.0));
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs)]

pub use xla_hlo as hlo;
pub use xla_passes as passes;
pub use xla_service as service;

pub use hlo::{Error, Result};
pub use service::{Buffer, Client, CompileOptions, LoadedExecutable, PlatformRegistry};

/// The platforms of this build, the preferred one first; those that a Cargo feature would add are noted with that feature.
///
/// Cheap: no device is touched. A program that has platforms of its own registers them in the value it gets.
pub fn registry() -> PlatformRegistry {
    let mut registry = PlatformRegistry::new();
    #[cfg(not(feature = "cpu"))]
    registry.note_compiled_out("cpu", "build with the Cargo feature \"cpu\"");
    registry.register(service::interpreter::platform());
    registry
}
