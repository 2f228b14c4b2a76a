//! Typed 32-bit ids and the arena that hands them out.

use std::marker::PhantomData;

/// A typed index into an [`Arena`] or a [`SecondaryMap`].
pub trait EntityId: Copy + Eq + std::hash::Hash {
    /// The id of slot `index`.
    fn from_index(index: usize) -> Self;
    /// The slot of this id.
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

/// Owns entities, addressed by id. Ids of removed entities are never given out again.
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

    /// Takes memory for as many more entities, so that it need not be taken bit by bit.
    pub fn reserve(&mut self, more: usize) {
        self.slots.reserve(more);
    }

    /// Takes an entity out; its id stays unused.
    pub fn remove(&mut self, id: I) -> Option<T> {
        let taken = self.slots.get_mut(id.index())?.take();
        self.live -= usize::from(taken.is_some());
        taken
    }

    /// The entity, unless it was removed.
    pub fn get(&self, id: I) -> Option<&T> {
        self.slots.get(id.index())?.as_ref()
    }

    /// The entity, unless it was removed.
    pub fn get_mut(&mut self, id: I) -> Option<&mut T> {
        self.slots.get_mut(id.index())?.as_mut()
    }

    /// Live entities in the order of their ids.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (I, &T)> {
        self.slots.iter().enumerate().filter_map(|(i, slot)| Some((I::from_index(i), slot.as_ref()?)))
    }

    /// Ids of live entities, ascending.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = I> + '_ {
        self.iter().map(|(id, _)| id)
    }

    /// Number of live entities.
    pub fn len(&self) -> usize {
        self.live
    }

    /// Whether no entity is live.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// One more than the greatest id ever given out: the size of a side table.
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

/// A side table: a value for each id, a default where none was set.
#[derive(Clone, Debug)]
pub struct SecondaryMap<I, T> {
    values: Vec<T>,
    default: T,
    marker: PhantomData<I>,
}

impl<I: EntityId, T: Clone> SecondaryMap<I, T> {
    /// An empty table whose every id maps to `default`.
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
