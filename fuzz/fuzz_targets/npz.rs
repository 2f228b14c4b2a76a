//! cargo-fuzz: see [`xla_fuzz::npz`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| xla_fuzz::npz(input));
