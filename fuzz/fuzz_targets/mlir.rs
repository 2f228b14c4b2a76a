//! cargo-fuzz: see [`xla_fuzz::mlir`].
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| xla_fuzz::mlir(input));
