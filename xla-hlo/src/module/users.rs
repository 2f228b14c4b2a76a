//! Users of an instruction: a list, with an index if it is long.

use std::collections::HashMap;

use super::InstrId;

/// Maximum length of a list without an index.
const FEW: usize = 64;

/// Users of an instruction, each once. Insertion, removal and lookup take constant time, independent of their number.
#[derive(Clone, Debug, Default)]
pub(super) struct Users {
    list: Vec<InstrId>,
    /// Position of each user in a list that is longer than [`FEW`].
    #[expect(clippy::box_collection, reason = "the many instructions with few users pay one word for it")]
    places: Option<Box<HashMap<InstrId, usize>>>,
}

impl Users {
    /// Returns the users in the order of insertion. If there have been more than [`FEW`] at a time, a removal has moved
    /// the last user to the position of the removed one.
    pub fn as_slice(&self) -> &[InstrId] {
        &self.list
    }

    pub fn contains(&self, user: InstrId) -> bool {
        match &self.places {
            Some(places) => places.contains_key(&user),
            None => self.list.contains(&user),
        }
    }

    pub fn clear(&mut self) {
        *self = Users::default();
    }

    /// Adds a user; has no effect if it is present.
    pub fn insert(&mut self, user: InstrId) {
        if self.contains(user) {
            return;
        }
        let place = self.list.len();
        self.list.push(user);
        match &mut self.places {
            Some(places) => {
                places.insert(user, place);
            }
            None if self.list.len() > FEW => {
                let places = self.list.iter().enumerate().map(|(place, &user)| (user, place));
                self.places = Some(Box::new(places.collect()));
            }
            None => {}
        }
    }

    /// Removes a user; has no effect if it is absent.
    pub fn remove(&mut self, user: InstrId) {
        let Some(places) = &mut self.places else {
            self.list.retain(|&u| u != user);
            return;
        };
        let Some(place) = places.remove(&user) else { return };
        self.list.swap_remove(place);
        if let Some(&moved) = self.list.get(place) {
            places.insert(moved, place);
        }
        if self.list.len() <= FEW {
            self.places = None;
        }
    }
}
