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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entity::EntityId;

    fn ids(range: std::ops::Range<usize>) -> Vec<InstrId> {
        range.map(InstrId::from_index).collect()
    }

    #[test]
    fn few_users_keep_their_order() {
        let mut users = Users::default();
        ids(0..5).into_iter().chain(ids(2..7)).for_each(|id| users.insert(id));
        users.remove(InstrId::from_index(3));
        users.remove(InstrId::from_index(99));
        assert_eq!(users.as_slice(), [ids(0..3), ids(4..7)].concat());
    }

    #[test]
    fn many_users_are_each_there_once() {
        let mut users = Users::default();
        ids(0..1000).into_iter().chain(ids(500..1000)).for_each(|id| users.insert(id));
        assert_eq!(users.as_slice(), ids(0..1000));
        for id in ids(0..1000).into_iter().filter(|id| id.index() % 17 != 0) {
            assert!(users.contains(id));
            users.remove(id);
            assert!(!users.contains(id));
        }
        let mut left = users.as_slice().to_vec();
        left.sort_unstable();
        assert_eq!(left, ids(0..1000).into_iter().filter(|id| id.index() % 17 == 0).collect::<Vec<_>>());
        assert!(left.iter().all(|&id| users.contains(id)));
    }

    #[test]
    fn removing_a_million_users_takes_no_time() {
        let mut users = Users::default();
        let many = ids(0..1_000_000);
        many.iter().for_each(|&id| users.insert(id));
        many.iter().for_each(|&id| users.remove(id));
        assert!(users.as_slice().is_empty());
    }
}
