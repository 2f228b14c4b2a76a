//! Instructions that multiply groups of narrow elements and add the products to a 32-bit lane.

use std::collections::BTreeSet;

/// Dot-product instructions for vectors of the width that code uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DotAbilities {
    /// Whether pairs of bf16 are added to f32 (`vdpbf16ps`). Subnormal operands and sums are flushed to zero.
    pub bf16: bool,
    /// Instructions that add four products of 8-bit integers to a 32-bit integer.
    pub bytes: ByteDots,
}

/// Signedness of the 8-bit integers that dot-product instructions multiply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByteDots {
    /// Whether unsigned integers are multiplied by signed ones (`vpdpbusd`, `usdot`).
    pub mixed: bool,
    /// Whether both are signed, or both are unsigned (`vpdpbssd` and `vpdpbuud`, `sdot` and `udot`).
    pub equal: bool,
}

impl DotAbilities {
    /// Hardware without such instructions.
    pub const NONE: DotAbilities = DotAbilities { bf16: false, bytes: ByteDots { mixed: false, equal: false } };

    /// Returns the instructions of an x86 processor with these features, whose code uses vectors of `vector_bits` bits.
    pub(super) fn of_x86(features: &BTreeSet<&str>, vector_bits: u32) -> DotAbilities {
        // AVX-512VL and AVX10.2 have the forms for 128 and 256 bits; AVX-VNNI has only these.
        let with = |feature: &str| features.contains(feature) && features.contains("avx512vl");
        let narrow = |feature: &str| features.contains(feature) && vector_bits <= 256;
        let mixed = with("avx512vnni") || narrow("avxvnni");
        let equal = with("avx10.2") || narrow("avxvnniint8");
        DotAbilities { bf16: with("avx512bf16"), bytes: ByteDots { mixed, equal } }
    }
}
