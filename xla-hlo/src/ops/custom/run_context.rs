//! Values passed to a run, for the handlers of its custom calls.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

/// Values by their types, and the id of the run. Cheap to create for every run, and to share between runs.
///
/// ```
/// use xla_hlo::ops::RunContext;
///
/// struct Table(Vec<f32>);
///
/// let context = RunContext::new(7).with(Table(vec![0.5]));
/// assert_eq!((context.run_id(), context.get::<Table>().unwrap().0[0]), (7, 0.5));
/// assert!(context.get::<String>().is_none());
/// ```
#[derive(Clone, Default)]
pub struct RunContext {
    run_id: i64,
    values: Vec<(TypeId, Arc<dyn Any + Send + Sync>)>,
}

impl RunContext {
    /// Creates a context without values. The runs of one program on several devices share an id.
    pub fn new(run_id: i64) -> RunContext {
        RunContext { run_id, values: Vec::new() }
    }

    /// Returns the default context, for runs without a context.
    pub fn nothing() -> &'static RunContext {
        static NOTHING: RunContext = RunContext { run_id: 0, values: Vec::new() };
        &NOTHING
    }

    /// Adds a value, which replaces an existing value of its type.
    #[must_use]
    pub fn with<T: Any + Send + Sync>(mut self, value: T) -> RunContext {
        self.values.retain(|(ty, _)| *ty != TypeId::of::<T>());
        self.values.push((TypeId::of::<T>(), Arc::new(value)));
        self
    }

    /// Returns the id of the run.
    pub fn run_id(&self) -> i64 {
        self.run_id
    }

    /// Returns the value of type `T`.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        let (_, value) = self.values.iter().find(|(ty, _)| *ty == TypeId::of::<T>())?;
        value.downcast_ref()
    }
}

impl fmt::Debug for RunContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunContext(run {}, {} values)", self.run_id, self.values.len())
    }
}
