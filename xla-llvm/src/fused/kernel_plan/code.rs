//! Code of a kernel that is emitted later; equal code is emitted once.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use xla_hlo::Result;

use crate::emitter::Emitter;
use crate::fused::kernel::Kernel;
use crate::fused::source::KernelSource;

/// Origin of a kernel's code: a phase of a [`KernelPlan`](super::KernelPlan), or a program of a backend.
pub trait KernelFunction<'m>: fmt::Debug + Send + Sync {
    /// Emits the function into the emitter's module.
    fn emit(&self, emitter: &Emitter<'_>, name: &str) -> Result<Kernel>;

    /// Returns the label for messages and profiles: the name of an instruction.
    fn label(&self) -> &str;

    /// Returns the source whose instructions the code depends on, if there is one.
    fn source(&self) -> Option<&KernelSource<'m>> {
        None
    }

    /// Returns the value that, with the source, identifies the code. `None` for code that is never shared.
    fn identity(&self) -> Option<&dyn Identity>;
}

/// Value that is compared with values of all types; values of different types differ.
pub trait Identity: Any {
    /// Whether the other value has the same type and is equal.
    fn is_same(&self, other: &dyn Identity) -> bool;
}

impl<T: PartialEq + 'static> Identity for T {
    fn is_same(&self, other: &dyn Identity) -> bool {
        (other as &dyn Any).downcast_ref::<T>() == Some(self)
    }
}

/// Code of a kernel.
#[derive(Clone, Debug)]
pub struct KernelCode<'m> {
    function: Arc<dyn KernelFunction<'m> + 'm>,
}

impl<'m> KernelCode<'m> {
    /// Creates the code of a function.
    pub fn new(function: impl KernelFunction<'m> + 'm) -> KernelCode<'m> {
        KernelCode { function: Arc::new(function) }
    }

    /// Emits the function into the emitter's module.
    pub fn emit(&self, emitter: &Emitter<'_>, name: &str) -> Result<Kernel> {
        self.function.emit(emitter, name)
    }

    /// Returns the label for messages and profiles: the name of an instruction.
    pub fn label(&self) -> &str {
        self.function.label()
    }

    /// Returns the source whose instructions the code depends on, if there is one.
    pub fn source(&self) -> Option<&KernelSource<'m>> {
        self.function.source()
    }

    /// Whether two kernels have the same code, given that their [sources](Self::source) are equal.
    pub fn is_same(&self, other: &KernelCode<'_>) -> bool {
        let identities = self.function.identity().zip(other.function.identity());
        identities.is_some_and(|(own, other)| own.is_same(other))
    }
}
