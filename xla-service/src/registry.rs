//! Platform registry: a list of platforms as an ordinary value.

use std::sync::Arc;

use xla_hlo::ops::CustomCallRegistry;
use xla_hlo::{Error, Result};

use crate::platform::Platform;

/// Platforms by name, in registration order. A process may have several registries.
///
/// ```
/// use xla_service::{PlatformRegistry, interpreter};
///
/// let mut registry = PlatformRegistry::new();
/// registry.register(interpreter::platform());
/// assert_eq!(registry.get("interpreter").unwrap().name(), "interpreter");
/// let error = registry.get("abacus").unwrap_err();
/// assert!(error.message().contains("registered: interpreter"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct PlatformRegistry {
    platforms: Vec<Arc<dyn Platform>>,
    compiled_out: Vec<CompiledOut>,
    /// Pairs of old and new platform names.
    renamed: Vec<(String, String)>,
    custom_calls: CustomCallRegistry,
}

/// Platform that exists, but not in this build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledOut {
    /// Name of the platform.
    pub name: String,
    /// Remedy, such as `build with the Cargo feature "gpu"`.
    pub remedy: String,
}

/// Status of one platform, determined by [`PlatformRegistry::check`].
#[derive(Debug)]
pub struct PlatformStatus {
    /// Name of the platform.
    pub name: String,
    /// Whether this machine can run programs on the platform.
    pub availability: Availability,
}

/// Whether a platform can be used.
#[derive(Debug)]
pub enum Availability {
    /// The platform is usable.
    Usable {
        /// Number of devices, at least 1.
        devices: usize,
    },
    /// The platform is in this build, but this machine cannot run it. The error states the reason and the packages to
    /// install.
    Unusable(Error),
    /// The platform is not in this build; the text states how to get it.
    CompiledOut(String),
}

impl PlatformRegistry {
    /// Creates a registry without platforms.
    pub fn new() -> PlatformRegistry {
        PlatformRegistry::default()
    }

    /// Adds a platform. A platform of the same name is replaced at its position and returned.
    pub fn register(&mut self, platform: Arc<dyn Platform>) -> Option<Arc<dyn Platform>> {
        self.compiled_out.retain(|absent| absent.name != platform.name());
        if let Some(slot) = self.platforms.iter_mut().find(|p| p.name() == platform.name()) {
            return Some(std::mem::replace(slot, platform));
        }
        self.platforms.push(platform);
        None
    }

    /// Returns the handlers of custom calls for programs of every platform: built-in ones and those registered here.
    ///
    /// Clients and clones of this registry share the handlers: a handler registered later is visible to all of them.
    pub fn custom_calls(&self) -> &CustomCallRegistry {
        &self.custom_calls
    }

    /// Records a platform that is not in this build, so that [`PlatformRegistry::get`] fails with the remedy.
    pub fn note_compiled_out(&mut self, name: impl Into<String>, remedy: impl Into<String>) {
        let name = name.into();
        if self.platforms.iter().all(|p| p.name() != name) {
            self.compiled_out.push(CompiledOut { name, remedy: remedy.into() });
        }
    }

    /// Records that a platform was renamed, so that [`PlatformRegistry::get`] for the old name fails with the new one.
    pub fn note_renamed(&mut self, old: impl Into<String>, new: impl Into<String>) {
        self.renamed.push((old.into(), new.into()));
    }

    /// Returns the platform of this name. [`Error::NotFound`] lists the platforms that are registered and those
    /// compiled out.
    pub fn get(&self, name: &str) -> Result<Arc<dyn Platform>> {
        let found = self.platforms.iter().find(|p| p.name() == name);
        found.cloned().ok_or_else(|| self.unknown(name))
    }

    /// Returns the registered platforms in order.
    pub fn platforms(&self) -> &[Arc<dyn Platform>] {
        &self.platforms
    }

    /// Returns the platforms that are not in this build.
    pub fn compiled_out(&self) -> &[CompiledOut] {
        &self.compiled_out
    }

    /// Checks for every platform whether this machine can run it; platforms that are compiled out come last.
    pub fn check(&self) -> Vec<PlatformStatus> {
        let registered = self.platforms.iter().map(|p| PlatformStatus {
            name: p.name().to_string(),
            availability: match p.check() {
                Ok(()) => Availability::Usable { devices: p.device_count() },
                Err(why) => Availability::Unusable(why),
            },
        });
        let absent = self.compiled_out.iter().map(|absent| PlatformStatus {
            name: absent.name.clone(),
            availability: Availability::CompiledOut(absent.remedy.clone()),
        });
        registered.chain(absent).collect()
    }

    fn unknown(&self, name: &str) -> Error {
        if let Some((old, new)) = self.renamed.iter().find(|(old, _)| old == name) {
            return Error::not_found(format!("platform {old} was renamed to {new}"));
        }
        if let Some(absent) = self.compiled_out.iter().find(|absent| absent.name == name) {
            return Error::not_found(format!("platform {name} is not in this build: {}", absent.remedy));
        }
        let names: Vec<&str> = self.platforms.iter().map(|p| p.name()).collect();
        let registered = if names.is_empty() { "none".to_string() } else { names.join(", ") };
        let absent: Vec<String> = self.compiled_out.iter().map(|a| format!("{} ({})", a.name, a.remedy)).collect();
        let absent =
            if absent.is_empty() { String::new() } else { format!("; not in this build: {}", absent.join(", ")) };
        Error::not_found(format!("no platform is called {name:?}; registered: {registered}{absent}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compiler::Compiler;
    use crate::executor::StreamExecutor;
    use crate::interpreter;
    use crate::transfer::TransferManager;

    /// Platform that this machine cannot run.
    #[derive(Debug)]
    struct Absent;

    impl Platform for Absent {
        fn name(&self) -> &str {
            "gizmo"
        }
        fn check(&self) -> Result<()> {
            Err(Error::failed_precondition("libgizmo.so is missing; install the package gizmo-driver"))
        }
        fn device_count(&self) -> usize {
            0
        }
        fn executor(&self, _: usize) -> Result<Arc<dyn StreamExecutor>> {
            Err(self.check().unwrap_err())
        }
        fn compiler(&self) -> Arc<dyn Compiler> {
            interpreter::platform().compiler()
        }
        fn transfer_manager(&self) -> Arc<dyn TransferManager> {
            interpreter::platform().transfer_manager()
        }
    }

    fn registry() -> PlatformRegistry {
        let mut registry = PlatformRegistry::new();
        registry.register(interpreter::platform());
        registry.register(Arc::new(Absent));
        registry.note_compiled_out("gpu", "build with the Cargo feature \"gpu\"");
        registry
    }

    #[test]
    fn unknown_names_are_answered_with_those_there_are() {
        let registry = registry();
        let error = registry.get("tpu").unwrap_err();
        assert!(matches!(error, Error::NotFound(_)));
        assert_eq!(
            error.message(),
            "no platform is called \"tpu\"; registered: interpreter, gizmo; \
             not in this build: gpu (build with the Cargo feature \"gpu\")"
        );
        let error = registry.get("gpu").unwrap_err();
        assert_eq!(error.message(), "platform gpu is not in this build: build with the Cargo feature \"gpu\"");
        let error = PlatformRegistry::new().get("cpu").unwrap_err();
        assert_eq!(error.message(), "no platform is called \"cpu\"; registered: none");
    }

    #[test]
    fn check_tells_usable_unusable_and_compiled_out_apart() {
        let statuses = registry().check();
        let names: Vec<&str> = statuses.iter().map(|s| s.name.as_str()).collect();
        assert_eq!(names, ["interpreter", "gizmo", "gpu"]);
        assert!(matches!(statuses[0].availability, Availability::Usable { devices: 1 }));
        let Availability::Unusable(why) = &statuses[1].availability else { panic!("{:?}", statuses[1]) };
        assert!(why.message().contains("gizmo-driver"));
        assert!(matches!(&statuses[2].availability, Availability::CompiledOut(remedy) if remedy.contains("gpu")));
    }

    #[test]
    fn an_old_name_is_answered_with_the_new_one() {
        let mut registry = registry();
        registry.note_renamed("abacus", "slide-rule");
        assert_eq!(registry.get("abacus").unwrap_err().message(), "platform abacus was renamed to slide-rule");
    }

    #[test]
    fn the_same_name_replaces_and_registering_beats_compiled_out() {
        let mut registry = registry();
        assert!(registry.register(interpreter::platform()).is_some());
        assert_eq!(registry.platforms().len(), 2);
        registry.note_compiled_out("interpreter", "nothing");
        assert_eq!(registry.compiled_out().len(), 1);
        let error = registry.get("interpreter").unwrap().executor(3).unwrap_err();
        assert_eq!(error.message(), "platform interpreter has 1 device, but no device 3");
    }
}
