//! Typed 32-bit ids and the arena that assigns them.

use std::marker::PhantomData;

/// Typed index into an [`Arena`] or a [`SecondaryMap`].
pub trait EntityId: Copy + Eq + std::hash::Hash {
    /// Returns the id of slot `index`.
    fn from_index(index: usize) -> Self;
    /// Returns the slot of this id.
    fn index(self) -> usize;
}

/// Declares an id type that displays as a prefix and a number.
#[macro_export]
macro_rules! entity_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u32);

        impl $crate::entity::EntityId for $name {
            fn from_index(index: usize) -> Self {
                $name(u32::try_from(index).expect("an arena holds fewer than 2^32 entities"))
            }
            fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    };
}
pub(crate) use entity_id;

/// Owner of entities that are addressed by id. The ids of removed entities are never reused.
#[derive(Clone, Debug)]
pub struct Arena<I, T> {
    slots: Vec<Option<T>>,
    live: usize,
    marker: PhantomData<I>,
}

impl<I, T> Default for Arena<I, T> {
    fn default() -> Self {
        Arena { slots: Vec::new(), live: 0, marker: PhantomData }
    }
}

impl<I: EntityId, T> Arena<I, T> {
    /// Adds an entity at the end.
    pub fn push(&mut self, value: T) -> I {
        let id = I::from_index(self.slots.len());
        self.slots.push(Some(value));
        self.live += 1;
        id
    }

    /// Reserves memory for at least `more` further entities, to avoid repeated reallocation.
    pub fn reserve(&mut self, more: usize) {
        self.slots.reserve(more);
    }

    /// Removes and returns an entity; its id is not reused.
    pub fn remove(&mut self, id: I) -> Option<T> {
        let taken = self.slots.get_mut(id.index())?.take();
        self.live -= usize::from(taken.is_some());
        taken
    }

    /// Returns the entity, unless it was removed.
    pub fn get(&self, id: I) -> Option<&T> {
        self.slots.get(id.index())?.as_ref()
    }

    /// Returns the entity, unless it was removed.
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.slots.get_mut(id.index())?.as_mut()
    }

    /// Iterates over live entities in the order of their ids.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (I, &T)> {
        self.slots.iter().enumerate().filter_map(|(i, slot)| Some((I::from_index(i), slot.as_ref()?)))
    }

    /// Iterates over the ids of live entities in ascending order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + '_ {
        self.iter().map(|(id, _)| id)
    }

    /// Returns the number of live entities.
    pub fn len(&self) -> usize {
        self.live
    }

    /// Whether no entity is live.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Returns one more than the greatest id assigned so far: the required size of a side table.
    pub fn capacity(&self) -> usize {
        self.slots.len()
    }
}

impl<I: EntityId, T> std::ops::Index<I> for Arena<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        self.get(id).expect("the id belongs to a live entity of this arena")
    }
}

impl<I: EntityId, T> std::ops::IndexMut<I> for Arena<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        self.get_mut(id).expect("the id belongs to a live entity of this arena")
    }
}

/// Side table: maps each id to a value, and ids without a value to a default.
#[derive(Clone, Debug)]
pub struct SecondaryMap<I, T> {
    values: Vec<T>,
    default: T,
    marker: PhantomData<I>,
}

impl<I: EntityId, T: Clone> SecondaryMap<I, T> {
    /// Creates an empty table that maps every id to `default`.
    pub fn new(default: T) -> Self {
        SecondaryMap { values: Vec::new(), default, marker: PhantomData }
    }
}

impl<I: EntityId, T: Clone + Default> Default for SecondaryMap<I, T> {
    fn default() -> Self {
        SecondaryMap::new(T::default())
    }
}

impl<I: EntityId, T> std::ops::Index<I> for SecondaryMap<I, T> {
    type Output = T;
    fn index(&self, id: I) -> &T {
        self.values.get(id.index()).unwrap_or(&self.default)
    }
}

impl<I: EntityId, T: Clone> std::ops::IndexMut<I> for SecondaryMap<I, T> {
    fn index_mut(&mut self, id: I) -> &mut T {
        if id.index() >= self.values.len() {
            self.values.resize(id.index() + 1, self.default.clone());
        }
        &mut self.values[id.index()]
    }
}
