//! Interval map: values by byte ranges.

use std::collections::BTreeMap;
use std::ops::Range;

/// Map from bytes to values, with [`Default`] for bytes that were never set. Bytes that were set together share one
/// entry, so the number of entries grows with the number of borders, not of bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct IntervalMap<T> {
    /// Entries by first byte: end and value. Disjoint and not empty.
    entries: BTreeMap<usize, (usize, T)>,
}

impl<T: Clone + Default> IntervalMap<T> {
    /// Calls `f` for each entry that overlaps `range`, clipped to it, in order.
    pub fn for_each(&self, range: Range<usize>, mut f: impl FnMut(Range<usize>, &T)) {
        if range.is_empty() {
            return;
        }
        let before = self.entries.range(..=range.start).next_back();
        let first = before.filter(|(_, (end, _))| *end > range.start).map_or(range.start, |(&start, _)| start);
        for (&start, (end, value)) in self.entries.range(first..range.end) {
            f(start.max(range.start)..(*end).min(range.end), value);
        }
    }

    /// Calls `f` for every entry.
    pub fn for_all(&self, mut f: impl FnMut(Range<usize>, &T)) {
        self.entries.iter().for_each(|(&start, (end, value))| f(start..*end, value));
    }

    /// Changes the values of all bytes in `range`, entry by entry.
    pub fn update(&mut self, range: Range<usize>, mut f: impl FnMut(&mut T)) {
        if range.is_empty() {
            return;
        }
        self.split(range.start);
        self.split(range.end);
        let mut gaps = Vec::new();
        let mut covered = range.start;
        for (&start, (end, value)) in self.entries.range_mut(range.clone()) {
            if covered < start {
                gaps.push(covered..start);
            }
            covered = *end;
            f(value);
        }
        if covered < range.end {
            gaps.push(covered..range.end);
        }
        for gap in gaps {
            let mut value = T::default();
            f(&mut value);
            self.entries.insert(gap.start, (gap.end, value));
        }
    }

    /// Replaces the values of all bytes in `range` by `value`.
    pub fn replace(&mut self, range: Range<usize>, value: T) {
        if range.is_empty() {
            return;
        }
        self.split(range.start);
        self.split(range.end);
        while let Some((&start, _)) = self.entries.range(range.clone()).next() {
            self.entries.remove(&start);
        }
        self.entries.insert(range.start, (range.end, value));
    }

    /// Splits the entry that contains byte `at`, so that an entry starts there.
    fn split(&mut self, at: usize) {
        let Some((_, (end, value))) = self.entries.range_mut(..at).next_back() else { return };
        if *end > at {
            let rest = (std::mem::replace(end, at), value.clone());
            self.entries.insert(at, rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_value_for_each_byte() {
        let mut random = 7u64;
        let mut next = |below: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % below
        };
        for _ in 0..200 {
            let (mut map, mut bytes) = (IntervalMap::<Vec<usize>>::default(), vec![Vec::new(); 40]);
            for step in 0..30 {
                let start = next(40);
                let range = start..start + next(41 - start);
                if next(2) == 0 {
                    map.update(range.clone(), |value| value.push(step));
                    bytes[range].iter_mut().for_each(|value| value.push(step));
                } else {
                    map.replace(range.clone(), vec![step]);
                    bytes[range].iter_mut().for_each(|value| *value = vec![step]);
                }
                let (from, mut seen) = (next(40), vec![Vec::new(); 40]);
                map.for_each(from..40, |range, value| seen[range].fill(value.clone()));
                assert_eq!(seen[from..], bytes[from..]);
            }
        }
    }

    #[test]
    fn what_is_replaced_at_once_is_one_entry() {
        let mut map = IntervalMap::<u8>::default();
        (0..10).for_each(|i| map.update(i..i + 1, |value| *value = 1));
        map.replace(0..10, 2);
        let mut entries = Vec::new();
        map.for_all(|range, value| entries.push((range, *value)));
        assert_eq!(entries, [(0..10, 2)]);
        map.replace(3..3, 9);
        map.update(4..4, |value| *value = 9);
        map.for_each(5..5, |_, _| panic!("nothing is in an empty range"));
    }
}
