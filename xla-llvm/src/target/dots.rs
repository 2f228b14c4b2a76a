//! Instructions that multiply groups of narrow elements and add the products to a 32-bit lane.

use std::collections::BTreeSet;

/// Dot-product instructions for vectors of the width that code uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DotAbilities {
    /// Whether pairs of bf16 are added to f32 (`vdpbf16ps`). Subnormal operands and sums are flushed to zero.
    pub bf16: bool,
    /// Whether four products of an unsigned and a signed 8-bit integer are added to a 32-bit integer (`vpdpbusd`).
    pub bytes: bool,
}

impl DotAbilities {
    /// Returns the instructions of an x86 processor with these features, whose code uses vectors of `vector_bits` bits.
    pub(super) fn of_x86(features: &BTreeSet<&str>, vector_bits: u32) -> DotAbilities {
        // AVX-512VL has the forms for 128 and 256 bits; AVX-VNNI has only these.
        let with = |feature: &str| features.contains(feature) && features.contains("avx512vl");
        let bytes = with("avx512vnni") || features.contains("avxvnni") && vector_bits <= 256;
        DotAbilities { bf16: with("avx512bf16"), bytes }
    }
}
