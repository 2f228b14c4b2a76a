//! Retargetable ML compiler: compiles HLO programs and runs them on a platform selected by name.
//!
//! This crate is the public interface of the compiler. It registers the platforms that were built in (selected by Cargo
//! features) and re-exports the items that users need. The layers below are available as [`hlo`] (the IR), [`passes`]
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

// The command refers to this library by its public name.
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

/// Registers the backends that are enabled by Cargo features of the same names. `cargo xtask new-backend` adds a line
/// where this macro is used.
macro_rules! backends {
    ($registry:ident: $($feature:tt => $backend:ident;)*) => {$(
        #[cfg(feature = $feature)]
        $registry.register($backend::platform());
        #[cfg(not(feature = $feature))]
        $registry.note_compiled_out($feature, concat!("build with the Cargo feature \"", $feature, "\""));
    )*};
}

/// Creates a registry of the platforms of this build: those that Cargo features enable, followed by `interpreter`,
/// which is always present. Platforms that were not built in are noted with the feature that adds them. This is cheap,
/// because it accesses no device.
///
/// The caller owns the registry and can register further platforms or replace some.
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
    // Without `gpu`, the feature `gpu-run` loads programs that were compiled elsewhere.
    #[cfg(feature = "gpu-run")]
    registry.register(backend_gpu_nvptx::platform());
    #[cfg(not(feature = "gpu-run"))]
    registry.note_compiled_out("gpu", "build with the Cargo feature \"gpu\", or \"gpu-run\" to run executables alone");
    // Kernels of GPUs, emulated on the host.
    #[cfg(feature = "gpu")]
    registry.register(backend_gpu_nvptx::emulated_platform());
    registry.note_renamed("gpu-host", "gpu-emulated");
    registry.register(service::interpreter::platform());
    registry
}
