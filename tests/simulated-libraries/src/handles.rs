//! Handles of a library's objects, never reused.

use std::collections::BTreeMap;

/// Objects that were created and not destroyed yet, by their handles.
#[derive(Debug)]
pub(crate) struct Handles<T> {
    /// Name of the kind in messages, such as `a matrix layout`.
    what: &'static str,
    /// Number of the kind, which is part of its handles.
    kind: u64,
    made: u64,
    alive: BTreeMap<u64, T>,
}

/// Position of the kind in a handle.
const KIND_SHIFT: u32 = 40;
/// Distance of handles, so that they look like aligned addresses.
const STEP: u64 = 64;

impl<T> Handles<T> {
    /// Creates an empty table; `kind` is unique for each table, and not 0.
    pub const fn new(what: &'static str, kind: u64) -> Handles<T> {
        Handles { what, kind, made: 0, alive: BTreeMap::new() }
    }

    /// Adds an object and returns its handle.
    pub fn add(&mut self, value: T) -> u64 {
        self.made += 1;
        let handle = self.kind << KIND_SHIFT | (self.made * STEP);
        self.alive.insert(handle, value);
        handle
    }

    /// Returns the object of a handle, or an error message.
    pub fn get(&self, handle: u64) -> Result<&T, String> {
        self.alive.get(&handle).ok_or_else(|| self.wrong(handle))
    }

    /// Returns the object of a handle mutably, or an error message.
    pub fn get_mut(&mut self, handle: u64) -> Result<&mut T, String> {
        let wrong = self.wrong(handle);
        self.alive.get_mut(&handle).ok_or(wrong)
    }

    /// Iterates over the objects.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.alive.values()
    }

    /// Removes the object of a handle.
    pub fn remove(&mut self, handle: u64) -> Result<T, String> {
        let wrong = self.wrong(handle);
        self.alive.remove(&handle).ok_or(wrong)
    }

    fn wrong(&self, handle: u64) -> String {
        let Handles { what, kind, made, .. } = self;
        match handle.checked_sub(kind << KIND_SHIFT) {
            _ if handle == 0 => format!("{what} is null"),
            Some(number) if number % STEP == 0 && (1..=*made).contains(&(number / STEP)) => {
                format!("{what} is used that was destroyed")
            }
            _ => format!("{handle:#x} is no handle of {what}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_told_apart() {
        let (mut cats, mut dogs) = (Handles::new("a cat", 1), Handles::new("a dog", 2));
        let (cat, dog) = (cats.add(7), dogs.add(8));
        assert_eq!(cats.get(cat), Ok(&7));
        *cats.get_mut(cat).unwrap() = 9;
        assert_eq!(cats.get(0), Err("a cat is null".to_owned()));
        assert_eq!(cats.get(dog), Err(format!("{dog:#x} is no handle of a cat")));
        assert_eq!(cats.remove(cat), Ok(9));
        assert_eq!(cats.remove(cat), Err("a cat is used that was destroyed".to_owned()));
        assert_ne!(cats.add(1), cat);
    }
}
