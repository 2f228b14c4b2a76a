//! An ML compiler: HLO programs in, compiled and run on a platform chosen by name.
//!
//! This crate is the front door: it registers the platforms that were built in (Cargo features name them) and
//! re-exports the items that a user of the compiler needs. The layers below are there as [`hlo`] (the IR), [`passes`]
//! and [`service`] (the backend interface).
//!
//! ```
//! use xla::hlo::builder::ModuleBuilder;
//! use xla::{ArrayShape, Client, CompileOptions, ElementType, Literal, Scalar, Shape};
//!
//! # fn main() -> xla::Result<()> {
//! // x -> x * x
//! let mut module = ModuleBuilder::new("square");
//! let mut b = module.computation("main");
//! let x = b.parameter(Shape::array(ElementType::F32, [4]))?;
//! let square = b.multiply(x, x)?;
//! let main = b.finish(square);
//! let module = module.finish(main)?;
//!
//! let client = Client::new(&xla::registry(), "interpreter")?;
//! let program = client.compile(&module, &CompileOptions::default())?;
//!
//! let shape = ArrayShape::new(ElementType::F32, [4]);
//! let input = client.buffer(&Literal::from_fn(&shape, |i| Scalar::Float(i as f64))?)?;
//! let results = program.execute(&[&input])?;
//! assert_eq!(results[0].to_literal()?.get(3), Scalar::Float(9.0));
//! # Ok(())
//! # }
//! ```

#![warn(missing_docs)]

// The command names this library as everybody does.
extern crate self as xla;

#[doc(hidden)]
pub mod command;
pub mod compare;
mod module_source;
pub mod npz;

#[cfg(feature = "cpu")]
pub use backend_cpu as cpu;
#[cfg(feature = "gpu-run")]
pub use backend_gpu_nvptx as gpu;
pub use module_source::ModuleSource;
pub use xla_hlo as hlo;
pub use xla_hlo::{
    ArrayShape, ElementType, Error, Layout, Literal, Module, Result, ResultExt, Scalar, Shape, VerifiedModule,
};
pub use xla_passes as passes;
pub use xla_service as service;
pub use xla_service::{
    Availability, Buffer, Client, CompilationCache, CompileOptions, Dispatch, ExecuteOptions, FallbackPolicy,
    LoadedExecutable, OptLevel, Platform, PlatformRegistry,
};
pub use xla_stablehlo as stablehlo;

/// Registers backends, each behind the Cargo feature of its name; `cargo xtask new-backend` adds a line where this is
/// called.
macro_rules! backends {
    ($registry:ident: $($feature:tt => $backend:ident;)*) => {$(
        #[cfg(feature = $feature)]
        $registry.register($backend::platform());
        #[cfg(not(feature = $feature))]
        $registry.note_compiled_out($feature, concat!("build with the Cargo feature \"", $feature, "\""));
    )*};
}

/// The platforms of this build: those that Cargo features name, and always the `interpreter`, in that order; the others
/// are noted with the feature that would add them. Cheap: no device is touched.
///
/// A value of the caller's own: register more, or replace some.
///
/// ```
/// let registry = xla::registry();
/// assert!(registry.get("interpreter").is_ok());
/// assert!(registry.get("abacus").unwrap_err().message().contains("registered: "));
/// ```
pub fn registry() -> PlatformRegistry {
    let mut registry = PlatformRegistry::new();
    backends! { registry:
        "cpu" => backend_cpu;
        "template" => backend_template;
    }
    // Without `gpu`, the feature `gpu-run` is for what was compiled elsewhere.
    #[cfg(feature = "gpu-run")]
    registry.register(backend_gpu_nvptx::platform());
    #[cfg(not(feature = "gpu-run"))]
    registry.note_compiled_out("gpu", "build with the Cargo feature \"gpu\", or \"gpu-run\" to run executables alone");
    // The kernels of GPUs, emulated on the host.
    #[cfg(feature = "gpu")]
    registry.register(backend_gpu_nvptx::emulated_platform());
    registry.note_renamed("gpu-host", "gpu-emulated");
    registry.register(service::interpreter::platform());
    registry
}
