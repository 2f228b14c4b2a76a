//! cargo-fuzz: see [`xla_fuzz::text`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| xla_fuzz::text(input));
