//! Handlers that libraries register, by name and platform, and the client registries that receive them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use xla_hlo::Result;
use xla_hlo::ops::{CustomCallRegistry, OnMemory};

use crate::abi::Bundle;
use crate::api::set_registrar;
use crate::handler::FfiHandler;

/// All handlers and client registries.
struct Registered {
    /// Handlers by name and platform.
    handlers: BTreeMap<(String, String), FfiHandler>,
    /// Registries of clients with their platforms, by the id of their subscription.
    clients: BTreeMap<u64, (String, CustomCallRegistry)>,
    next: u64,
}

static REGISTERED: Mutex<Registered> =
    Mutex::new(Registered { handlers: BTreeMap::new(), clients: BTreeMap::new(), next: 0 });

fn registered() -> MutexGuard<'static, Registered> {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Registers a handler after a check of its version; replaces a handler of the same name and platform.
fn register(name: &str, platform: &str, bundle: Bundle) -> Result<()> {
    add(name, platform, FfiHandler::new(bundle)?);
    Ok(())
}

/// Adds a handler; replaces a handler of the same name and platform. Existing clients receive it too, for programs that
/// they load from now on.
pub fn add(name: &str, platform: &str, handler: FfiHandler) {
    set_registrar(register);
    let platform = platform.to_ascii_lowercase();
    let mut registered = registered();
    for (of, registry) in registered.clients.values() {
        if is_for(&platform, of) {
            registry.register(name, Arc::new(OnMemory(handler)));
        }
    }
    registered.handlers.insert((name.to_string(), platform), handler);
}

/// Subscription of a client's registry to handlers; ends when dropped.
#[derive(Debug)]
pub struct Subscription(u64);

impl Drop for Subscription {
    fn drop(&mut self) {
        let gone = registered().clients.remove(&self.0);
        drop(gone);
    }
}

/// Adds the handlers of a platform to a registry of custom calls, including handlers that are registered later.
/// Handlers for the host have the platform `host` or `cpu`.
#[must_use]
pub fn subscribe(registry: &CustomCallRegistry, platform: &str) -> Subscription {
    set_registrar(register);
    let platform = platform.to_ascii_lowercase();
    let mut registered = registered();
    for ((name, of), handler) in &registered.handlers {
        if is_for(of, &platform) {
            registry.register(name.clone(), Arc::new(OnMemory(*handler)));
        }
    }
    registered.next += 1;
    let number = registered.next;
    registered.clients.insert(number, (platform, registry.clone()));
    Subscription(number)
}

/// Whether handlers of one platform are for clients of another one.
fn is_for(handlers: &str, clients: &str) -> bool {
    let is_host = |name: &str| name == "host" || name == "cpu";
    handlers == clients || is_host(handlers) && is_host(clients)
}
