//! Types of data that handlers exchange through the runtime: ids by name, and deleters of objects.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use xla_hlo::{Error, Result};

/// Address of a C function that frees an object; 0 for types without one.
pub(crate) type DeleterAddress = usize;

/// All types by name.
static TYPES: Mutex<BTreeMap<String, (i64, DeleterAddress)>> = Mutex::new(BTreeMap::new());

/// Registers a type and returns its id. A `wanted` of 0 lets the runtime choose the id.
///
/// Several libraries that share a type may register it; the ids must agree.
pub(crate) fn register(name: &str, wanted: i64, deleter: DeleterAddress) -> Result<i64> {
    let mut types = TYPES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((id, known)) = types.get_mut(name) {
        if wanted != 0 && wanted != *id {
            return Err(Error::invalid_argument(format!("type {name} has id {id}, not {wanted}")));
        }
        if *known == 0 {
            *known = deleter;
        }
        return Ok(*id);
    }
    let next = types.values().map(|(id, _)| *id).max().unwrap_or(0).max(0) + 1;
    let id = if wanted == 0 { next } else { wanted };
    if let Some((other, _)) = types.iter().find(|(_, (known, _))| *known == id) {
        return Err(Error::invalid_argument(format!("id {id} of type {name} is already that of {other}")));
    }
    types.insert(name.to_string(), (id, deleter));
    Ok(id)
}

/// Returns the deleter of a type.
pub(crate) fn deleter(id: i64) -> DeleterAddress {
    let types = TYPES.lock().unwrap_or_else(PoisonError::into_inner);
    types.values().find(|(known, _)| *known == id).map_or(0, |(_, deleter)| *deleter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number() {
        let first = register("tests.first", 0, 0).unwrap();
        assert_eq!(register("tests.first", 0, 7).unwrap(), first);
        assert_eq!(deleter(first), 7);
        assert_eq!(register("tests.first", first, 0).unwrap(), first);
        assert!(register("tests.first", first + 1, 0).is_err());
        assert!(register("tests.second", first, 0).is_err());
        assert_ne!(register("tests.second", 0, 0).unwrap(), first);
        assert_eq!(deleter(-5), 0);
    }
}
