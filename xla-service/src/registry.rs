//! The registry of platforms: an ordinary value, one list.

use std::sync::Arc;

use xla_hlo::{Error, Result};

use crate::platform::Platform;

/// Platforms by name, in the order of their registration. There may be several registries in one process.
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
}

/// A platform that exists, but not in this build.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledOut {
    /// The name it would have.
    pub name: String,
    /// What to do to have it: `build with the Cargo feature "gpu"`.
    pub remedy: String,
}

/// What [`PlatformRegistry::check`] found out about one platform.
#[derive(Debug)]
pub struct PlatformStatus {
    /// The platform's name.
    pub name: String,
    /// Whether this machine can run it.
    pub availability: Availability,
}

/// Whether a platform can be used.
#[derive(Debug)]
pub enum Availability {
    /// It runs here, on so many devices.
    Usable {
        /// At least 1.
        devices: usize,
    },
    /// It is in this build, but this machine cannot run it; the error says why and what to install.
    Unusable(Error),
    /// It is not in this build; the text says how to have it.
    CompiledOut(String),
}

impl PlatformRegistry {
    /// A registry without platforms.
    pub fn new() -> PlatformRegistry {
        PlatformRegistry::default()
    }

    /// Adds a platform. One of the same name is replaced in its place, and given back.
    pub fn register(&mut self, platform: Arc<dyn Platform>) -> Option<Arc<dyn Platform>> {
        self.compiled_out.retain(|absent| absent.name != platform.name());
        if let Some(slot) = self.platforms.iter_mut().find(|p| p.name() == platform.name()) {
            return Some(std::mem::replace(slot, platform));
        }
        self.platforms.push(platform);
        None
    }

    /// Notes that a platform exists but is not in this build, so that asking for it is answered with the remedy.
    pub fn note_compiled_out(&mut self, name: impl Into<String>, remedy: impl Into<String>) {
        let name = name.into();
        if self.platforms.iter().all(|p| p.name() != name) {
            self.compiled_out.push(CompiledOut { name, remedy: remedy.into() });
        }
    }

    /// The platform of that name. [`Error::NotFound`] lists what is registered and what is compiled out.
    pub fn get(&self, name: &str) -> Result<Arc<dyn Platform>> {
        let found = self.platforms.iter().find(|p| p.name() == name);
        found.cloned().ok_or_else(|| self.unknown(name))
    }

    /// Registered platforms in order.
    pub fn platforms(&self) -> &[Arc<dyn Platform>] {
        &self.platforms
    }

    /// Platforms that are not in this build.
    pub fn compiled_out(&self) -> &[CompiledOut] {
        &self.compiled_out
    }

    /// Asks every platform whether this machine can run it; those that are compiled out come last.
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
