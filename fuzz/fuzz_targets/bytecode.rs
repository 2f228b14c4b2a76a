//! cargo-fuzz: see [`xla_fuzz::bytecode`]. Three of four mutations are structured changes of a container.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let changed = if seed % 4 == 0 { None } else { xla_fuzz::container::mutate(&data[..size], seed) };
    match changed {
        Some(bytes) if bytes.len() <= max_size => {
            data[..bytes.len()].copy_from_slice(&bytes);
            bytes.len()
        }
        _ => fuzzer_mutate(data, size, max_size),
    }
});

fuzz_target!(|input: &[u8]| xla_fuzz::bytecode(input));
