//! Laws of the axis algebra, compared with positions on axes by brute force.

use xla_hlo::sdy::{Mesh, MeshAxis, MeshPart, ResolvedSharding, TensorSharding, push_part, tiles};

const SIZES: [usize; 6] = [2, 4, 6, 8, 12, 16];

/// Parts of an axis of `size` devices that have at least two.
fn parts(size: usize) -> Vec<MeshPart> {
    let part = |before, size| MeshPart { axis: 0, before, size };
    let divisors = |n: usize| (1..=n).filter(move |d| n.is_multiple_of(*d));
    divisors(size)
        .flat_map(|before| divisors(size / before).filter(|&size| size > 1).map(move |size| part(before, size)))
        .collect()
}

fn pairs(size: usize) -> impl Iterator<Item = (MeshPart, MeshPart)> {
    parts(size).into_iter().flat_map(move |a| parts(size).into_iter().map(move |b| (a, b)))
}

/// Position along a part of the device at position `at` of an axis of `size` devices.
fn position(part: MeshPart, size: usize, at: usize) -> usize {
    at / (size / part.end()) % part.size
}

fn mesh(size: usize) -> Mesh {
    Mesh { axes: vec![("x".to_string(), size)], device_ids: Vec::new() }
}

/// Whether the position along `a` determines the position along `b`.
fn determines(a: MeshPart, b: MeshPart, size: usize) -> bool {
    (0..size).all(|at| {
        (0..size).all(|other| {
            position(a, size, at) != position(a, size, other) || position(b, size, at) == position(b, size, other)
        })
    })
}

/// Number of different pairs of positions along both parts.
fn combinations(a: MeshPart, b: MeshPart, size: usize) -> usize {
    let pairs: std::collections::BTreeSet<_> =
        (0..size).map(|at| (position(a, size, at), position(b, size, at))).collect();
    pairs.len()
}

#[test]
fn containment_is_determination_of_positions() {
    for size in SIZES {
        for (a, b) in pairs(size) {
            assert_eq!(a.contains(b), determines(a, b, size), "{a:?} and {b:?} of {size}");
            assert_eq!(a.is_prefix_of(b), b.contains(a) && a.before == b.before, "{a:?} and {b:?} of {size}");
            assert_eq!(a.is_suffix_of(b), b.contains(a) && a.end() == b.end(), "{a:?} and {b:?} of {size}");
        }
    }
}

#[test]
fn coexisting_parts_are_independent_unless_they_overlap() {
    for size in SIZES {
        for (a, b) in pairs(size) {
            if a.can_coexist(b) {
                let is_independent = combinations(a, b, size) == a.size * b.size;
                assert_eq!(!a.overlaps(b), is_independent, "{a:?} and {b:?} of {size}");
            }
            // Tiles list the devices of a split by both parts, which exist only for independent parts of one division.
            let axis = |part| mesh(size).axis(part).to_string();
            let text = format!("<@mesh, [{{{}}}, {{{}}}]>", axis(a), axis(b));
            let sharding = TensorSharding::parse(&text).expect("a sharding");
            let has_tiles = tiles(&sharding, &mesh(size)).is_ok();
            assert_eq!(a.can_coexist(b) && !a.overlaps(b), has_tiles, "{text} of {size}");
            assert_eq!(ResolvedSharding::new(&sharding, &mesh(size)).is_ok(), has_tiles, "{text} of {size}");
        }
    }
}

#[test]
fn overlap_is_the_largest_common_part() {
    for size in SIZES {
        for (a, b) in pairs(size) {
            let common = parts(size).into_iter().filter(|&part| a.contains(part) && b.contains(part));
            let largest = common.max_by_key(|part| part.size).filter(|_| a.can_coexist(b));
            assert_eq!(a.overlap(b), largest, "{a:?} and {b:?} of {size}");
            assert_eq!(a.overlap(b), b.overlap(a), "{a:?} and {b:?} of {size}");
        }
    }
}

#[test]
fn prefix_without_another_part_is_the_longest_one() {
    for size in SIZES {
        for (a, b) in pairs(size).filter(|(a, b)| a.can_coexist(*b)) {
            let free = parts(size).into_iter().filter(|part| {
                part.is_prefix_of(a) && combinations(*part, b, size) == part.size * b.size && part.can_coexist(b)
            });
            assert_eq!(a.prefix_without(b), free.max_by_key(|part| part.size), "{a:?} and {b:?} of {size}");
        }
        for (a, b) in pairs(size).filter(|(a, b)| !a.can_coexist(*b)) {
            assert_eq!(a.prefix_without(b), None, "{a:?} and {b:?} of {size}");
        }
    }
}

#[test]
fn splits_merge_again() {
    let mut count = 0;
    for size in SIZES {
        for part in parts(size) {
            for outer in 0..=size {
                let Some((first, rest)) = part.split(outer) else { continue };
                count += 1;
                assert_eq!(first.size, outer);
                assert_eq!(first.merge(rest), Some(part));
                assert!(rest.merge(first).is_none() && !first.overlaps(rest) && first.can_coexist(rest));
                for at in 0..size {
                    let inside = position(first, size, at) * rest.size + position(rest, size, at);
                    assert_eq!(inside, position(part, size, at));
                }
                let mut list = Vec::new();
                [first, rest].into_iter().for_each(|part| push_part(&mut list, part));
                assert_eq!(list, [part]);
            }
            assert!(part.split(1).is_none() && part.split(part.size).is_none());
        }
    }
    assert!(count > 20, "only {count} splits");
}

#[test]
fn references_resolve_and_print_exactly() {
    for size in SIZES {
        for part in parts(size) {
            let axis = mesh(size).axis(part);
            assert_eq!(axis.part.is_none(), part.size == size);
            assert_eq!(mesh(size).part(&axis).expect("a part"), part);
        }
    }
    let wrong = MeshAxis { name: "x".to_string(), part: Some((2, 4)) };
    let error = mesh(12).part(&wrong).expect_err("no such part").to_string();
    assert!(error.contains("axis 'x' of size 12 has no part (2)4"), "{error}");
}

#[test]
fn shardings_resolve_and_print_exactly() {
    let mesh = Mesh::parse(r#"<["x"=4, "y"=2, "z"=8]>"#).expect("a mesh");
    for text in [
        r#"<@m, [{"x", ?}p1, {"z":(2)2}, {}], replicated={"y"}, unreduced=max{"z":(1)2}>"#,
        r#"<@m, [{?}, {"y", "x":(1)2}], unreduced={"x":(2)2}>"#,
        r#"<@m, []>"#,
    ] {
        let sharding = TensorSharding::parse(text).expect(text);
        let resolved = ResolvedSharding::new(&sharding, &mesh).expect(text);
        assert_eq!(resolved.named(&mesh, sharding.mesh.clone()), sharding);
    }
    let twice = TensorSharding::parse(r#"<@m, [{"x"}], replicated={"x":(2)2}>"#).expect("a sharding");
    let error = ResolvedSharding::new(&twice, &mesh).expect_err("used twice").to_string();
    assert!(error.contains(r#"uses axis x twice, as "x" and as "x":(2)2"#), "{error}");
}
