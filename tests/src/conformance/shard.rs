//! One of several parts of the cases, for runs on several machines or in turn.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::str::FromStr;

/// One of `count` disjoint parts of the cases, of about equal size. A hash of its identifier decides which part has a
/// case, so that each part has some element types of each operation. Written as `1/2` for the first of two parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Index of the part, from 0.
    index: u64,
    count: u64,
}

impl Shard {
    /// Returns whether the part has a case.
    pub fn has(self, id: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        id.hash(&mut hasher);
        hasher.finish() % self.count == self.index
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let numbers = text.split_once('/').and_then(|(part, count)| Some((part.parse().ok()?, count.parse().ok()?)));
        match numbers {
            Some((part, count)) if (1..=count).contains(&part) => Ok(Shard { index: part - 1, count }),
            _ => Err("a part is written as K/N, with K from 1 to N, such as 1/2".to_string()),
        }
    }
}
