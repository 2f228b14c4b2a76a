//! cargo-fuzz: see [`xla_fuzz::proto`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| xla_fuzz::proto(input));
