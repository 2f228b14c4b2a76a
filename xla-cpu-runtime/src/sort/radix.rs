//! Stable radix sort by unsigned integer keys.

/// Number of bits that one pass sorts by.
const DIGIT_BITS: u32 = 8;
const DIGITS: usize = 1 << DIGIT_BITS;
/// Minimum number of items of a radix sort; a comparison sort of fewer is faster.
const FEW: usize = 256;

/// Sorts items stably by keys of `bits` bits. `scratch` is as long as `items`; its contents are lost.
///
/// Passes proceed from the lowest digit to the highest; each is stable. A pass is skipped if all items have the same
/// digit, so that small integers in wide types cost no more.
pub(super) fn sort_by_key<T: Copy>(items: &mut [T], scratch: &mut [T], bits: u32, key: impl Fn(T) -> u64 + Copy) {
    if items.len() < FEW {
        items.sort_by_key(|&item| key(item));
        return;
    }
    let passes = bits.div_ceil(DIGIT_BITS) as usize;
    let mut counts = vec![[0usize; DIGITS]; passes];
    for &item in &*items {
        let key = key(item);
        for (pass, counts) in counts.iter_mut().enumerate() {
            counts[digit(key, pass)] += 1;
        }
    }
    let (mut from, mut to) = (&mut *items, &mut *scratch);
    let mut swapped = false;
    for (pass, places) in counts.iter_mut().enumerate() {
        if places.contains(&from.len()) {
            continue;
        }
        let mut next = 0;
        for place in places.iter_mut() {
            next += std::mem::replace(place, next);
        }
        for &item in &*from {
            let place = &mut places[digit(key(item), pass)];
            to[*place] = item;
            *place += 1;
        }
        std::mem::swap(&mut from, &mut to);
        swapped = !swapped;
    }
    if swapped {
        items.copy_from_slice(scratch);
    }
}

fn digit(key: u64, pass: usize) -> usize {
    (key >> (pass as u32 * DIGIT_BITS)) as usize % DIGITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorts_stably_at_every_length_and_width() {
        for length in [0, 1, 2, FEW - 1, FEW, 1000, 5000] {
            for bits in [1, 7, 8, 9, 20, 33, 64] {
                let random = |i: usize| (i as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (i as u64) << 17;
                let mut items: Vec<(u64, usize)> = (0..length).map(|i| (random(i) >> (64 - bits), i)).collect();
                let mut expected = items.clone();
                expected.sort();
                sort_by_key(&mut items, &mut vec![(0, 0); length], bits, |item| item.0);
                assert_eq!(items, expected, "{length} items of {bits} bits");
            }
        }
    }
}
