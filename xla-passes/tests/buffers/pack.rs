//! Tests of packing: offsets of items in one allocation, and items in memory that is not needed yet.

use xla_passes::internals::pack::{
    Item, Lender, MAX_IMPROVED, MAX_QUADRATIC, Packing, by_size, lend, lend_and_pack, most_at_once, pack, pack_by_time,
    pack_in_order,
};

fn items(list: &[(usize, u32, u32)]) -> Vec<Item> {
    list.iter().map(|&(size, first, last)| Item { size, used: size, first, last }).collect()
}

fn check(items: &[Item], packing: &Packing) {
    for (i, a) in items.iter().enumerate() {
        assert!(packing.offsets[i] + a.size <= packing.size);
        for (j, b) in items.iter().enumerate().skip(i + 1) {
            let in_time = a.first <= b.last && b.first <= a.last;
            let (x, y) = (packing.offsets[i], packing.offsets[j]);
            let in_space = x < y + b.size && y < x + a.size;
            assert!(!(in_time && in_space), "{a:?} at {x} and {b:?} at {y} overlap");
        }
    }
}

/// Returns a generator of pseudorandom numbers below its argument.
fn numbers(mut state: u64) -> impl FnMut(u64) -> u64 {
    move |n| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % n
    }
}

/// Generates items with random start steps, sizes in units of 64 bytes, and lifetimes below the given limits.
fn random_items(next: &mut impl FnMut(u64) -> u64, count: usize, [steps, units, lives]: [u64; 3]) -> Vec<Item> {
    let item = |_| {
        let (first, size) = (next(steps) as u32, 64 * next(units) as usize);
        Item { size, used: size, first, last: first + next(lives) as u32 }
    };
    (0..count).map(item).collect()
}

/// Draws one line per 64 bytes, the top first, with one column per step that shows the letter of the item.
fn drawing(items: &[Item], packing: &Packing) -> String {
    let letter = |unit: usize, step: u32| {
        let is_there = |&i: &usize| {
            (packing.offsets[i]..packing.offsets[i] + items[i].size).contains(&(unit * 64))
                && (items[i].first..=items[i].last).contains(&step)
        };
        (0..items.len()).find(is_there).map_or('.', |i| char::from(b'a' + i as u8))
    };
    let steps = items.iter().map(|item| item.last + 1).max().unwrap_or(0);
    let line = |unit| (0..steps).map(|step| letter(unit, step)).chain(['\n']).collect::<String>();
    (0..packing.size / 64).rev().map(line).collect()
}

#[test]
fn packings_look_like_this() {
    let mut next = numbers(7);
    let mut text = String::new();
    for number in 0..16 {
        let list = random_items(&mut next, 20, [24, 6, 9]);
        let lenders = [Lender { size: 320, busy: vec![(8, 12)] }, Lender { size: 192, busy: vec![(0, 3), (20, 40)] }];
        let (lent, rest) = lend_and_pack(&list, &lenders).unwrap();
        let lent: Vec<String> =
            lent.iter().map(|lent| lent.map_or("-".into(), |(l, at)| format!("{l}:{at}"))).collect();
        text += &format!("set {number}, by size:\n{}", drawing(&list, &pack_in_order(&list, &by_size(&list))));
        text += &format!("by time:\n{}", drawing(&list, &pack_by_time(&list)));
        text += &format!("the best:\n{}", drawing(&list, &pack(&list).unwrap()));
        text += &format!("lent: {}\nthe rest: {:?}\n\n", lent.join(" "), rest.offsets);
    }
    insta::with_settings!({ prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("packings", text);
    });
}

#[test]
fn many_items_are_packed_in_the_order_of_time_alone() {
    let mut next = numbers(3);
    let mut list = |count| random_items(&mut next, count, [3000, 40, 30]);
    let many = list(MAX_QUADRATIC + 1);
    assert_eq!(pack(&many).unwrap(), pack_by_time(&many));
    // With more than `MAX_IMPROVED` items, the better of the two packings is returned.
    let some = list(MAX_IMPROVED + 1);
    let (by_size, by_time) = (pack_in_order(&some, &by_size(&some)), pack_by_time(&some));
    assert_ne!(by_size.size, by_time.size);
    assert_eq!(pack(&some).unwrap(), if by_size.size < by_time.size { by_size } else { by_time });
}

#[test]
fn a_chain_needs_two_places() {
    let chain = items(&[(64, 0, 1), (64, 1, 2), (64, 2, 3), (64, 3, 4)]);
    let packing = pack(&chain).unwrap();
    check(&chain, &packing);
    assert_eq!(packing.size, 128);
}

#[test]
fn empty_items_take_nothing() {
    let list = items(&[(0, 0, 9), (64, 0, 9), (0, 3, 4)]);
    assert_eq!(pack(&list).unwrap().size, 64);
}

#[test]
fn gaps_are_used_best_fit() {
    // A long-lived item above a hole of two units; the two later items fit into the hole exactly.
    let list = items(&[(128, 0, 1), (64, 0, 9), (64, 2, 9), (64, 2, 9)]);
    let packing = pack(&list).unwrap();
    check(&list, &packing);
    assert_eq!(packing.size, 192);
}

#[test]
fn random_items_never_overlap_and_stay_near_the_bound() {
    let mut next = numbers(1);
    let mut optimal = 0;
    for round in 0..200 {
        let list = random_items(&mut next, 40, [50, 9, 10]);
        for packing in [pack_in_order(&list, &by_size(&list)), pack_by_time(&list), pack(&list).unwrap()] {
            check(&list, &packing);
        }
        let bound = (0..60)
            .map(|t| list.iter().filter(|i| i.first <= t && t <= i.last).map(|i| i.size).sum::<usize>())
            .max()
            .unwrap();
        assert_eq!(bound, most_at_once(&list));
        let size = pack(&list).unwrap().size;
        assert!(size >= bound && size <= bound + bound / 4, "round {round}: {size} for {bound}");
        optimal += usize::from(size == bound);
    }
    assert!(optimal > 100, "only {optimal} of 200 are as small as can be");
}

#[test]
fn what_is_not_needed_yet_is_lent() {
    let lenders = [Lender { size: 192, busy: vec![(5, 9)] }, Lender { size: 64, busy: vec![(0, 1), (8, 9)] }];
    let list = items(&[(128, 0, 4), (64, 1, 4), (64, 2, 7), (64, 4, 5), (256, 0, 1), (0, 0, 1)]);
    let expected = [Some((0, 0)), Some((0, 128)), Some((1, 0)), None, None, None];
    let early = |item: &Item| i64::from(item.first);
    assert_eq!(lend(&list, &lenders, early), expected);
    // The bytes that padding adds need not exist, but used bytes must.
    let odd = [Lender { size: 196, busy: vec![(5, 9)] }];
    let of = |used| lend(&[Item { size: 256, used, first: 0, last: 4 }], &odd, early);
    assert_eq!((of(196), of(197)), (vec![Some((0, 0))], vec![None]));
}

#[test]
fn of_a_chain_the_better_half_is_lent() {
    for length in 2..8 {
        let chain: Vec<(usize, u32, u32)> = (1..=length).map(|i| (64, i, i + 1)).collect();
        let result = [Lender { size: 64, busy: vec![(length + 1, length + 2)] }];
        let (lent, packing) = lend_and_pack(&items(&chain), &result).unwrap();
        assert_eq!((packing.size, lent.iter().flatten().count()), (64, length as usize / 2), "a chain of {length}");
    }
}

#[test]
fn sizes_that_overflow_are_refused() {
    let half = isize::MAX as usize & !63;
    assert!(pack(&items(&[(half, 0, 1), (half, 2, 3)])).is_err());
}
