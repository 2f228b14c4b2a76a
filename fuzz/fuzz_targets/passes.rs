//! cargo-fuzz: see [`xla_fuzz::passes`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| xla_fuzz::passes(input));
