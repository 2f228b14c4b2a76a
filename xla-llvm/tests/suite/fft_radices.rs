//! Tests of the radices of the passes of Fourier transforms.

use xla_llvm::internals::{Along, MAX_PRIME, Radices, Vectors, is_smooth};

const ALL: [Vectors; 3] = [
    Vectors { width: 16, registers: 32, along: Along::Rows },
    Vectors { width: 8, registers: 16, along: Along::Columns },
    Vectors { width: 1, registers: 16, along: Along::Rows },
];

#[test]
fn products_are_the_length() {
    for vectors in ALL {
        for n in (1..700).chain([1000, 1024, 4096, 59049, 65536]).filter(|&n| is_smooth(n)) {
            let Radices { radices, cost } = Radices::new(n, vectors);
            assert_eq!(radices.iter().product::<usize>(), n, "{radices:?}");
            assert!(radices.iter().all(|&r| r <= MAX_PRIME) && cost.is_finite(), "{radices:?}");
        }
    }
}

#[test]
fn lengths_with_large_prime_factors_have_no_passes() {
    assert!([1, 2, 31, 60, 961, 4096].into_iter().all(is_smooth));
    assert!(![37, 74, 4093, 41 * 64].into_iter().any(is_smooth));
}

#[test]
fn convolutions_have_room_for_all_elements() {
    for vectors in ALL {
        for n in [1, 73, 100, 129, 8185, 131_071] {
            let (length, radices) = Radices::of_convolution(n, vectors);
            assert!(length >= n && length.is_multiple_of(16) && length <= 2 * n.max(16), "{length} for {n}");
            assert_eq!(radices.radices.iter().product::<usize>(), length);
        }
    }
}
