//! Tests of damaged and hostile files: an error with its byte, in bounded time, stack and memory.

use std::time::Instant;

use xla_hlo::{Error, Result};
use xla_stablehlo::bytecode;
use xla_stablehlo::ir::Module;

use crate::files;
use crate::writer::{BUILTIN, File, VHLO, empty_module, list, module, program, region, varint};

/// Size of the stack that must suffice for any file.
const STACK: usize = 256 << 10;

/// Reads and drops a file with a small stack.
fn with_little_stack<T: Send + 'static>(bytes: Vec<u8>, then: impl FnOnce(Result<Module>) -> T + Send + 'static) -> T {
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(move || then(bytecode::read(&bytes)));
    thread.expect("a thread").join().expect("no overflow")
}

fn message(bytes: Vec<u8>) -> String {
    with_little_stack(bytes, |read| read.err().map_or_else(|| "read".to_string(), |error| error.to_string()))
}

#[test]
fn a_file_that_is_cut_anywhere_is_refused() {
    for name in ["while", "shard_map_psum", "sort"] {
        let (_, bytes) = files("").into_iter().find(|(file, _)| file == name).expect("the file");
        for length in 0..bytes.len() {
            match bytecode::read(&bytes[..length]) {
                Err(Error::InvalidArgument(detail)) => {
                    assert!(detail.to_string().starts_with("bytecode"), "{name}, {length} bytes: {detail}");
                }
                other => panic!("{name}, {length} bytes: {:?}", other.map(|module| module.to_string())),
            }
        }
    }
}

#[test]
fn a_bit_that_is_flipped_is_an_error_or_another_program() {
    for (name, bytes) in files("targets").into_iter().filter(|(name, _)| name == "0.9.0" || name == "1.17.0") {
        let began = Instant::now();
        let mut read = 0;
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            if let Ok(module) = bytecode::read(&damaged) {
                read += 1;
                // The program may be invalid; lowering must return an error or a module.
                let _ = xla_stablehlo::lower(&module).and_then(xla_hlo::VerifiedModule::new);
                assert!(module.to_string().len() < 100 * bytes.len(), "{name}, bit {bit}");
            }
        }
        assert!(read > 0, "{name}");
        assert!(began.elapsed().as_secs() < 60, "{name}: a second for each file is more than enough");
    }
}

#[test]
fn the_smallest_file() {
    let mut file = File::new();
    file.ir = empty_module(0, &[]);
    assert_eq!(bytecode::read(&file.write()).expect("a module").to_string(), "builtin.module\n{\n}\n");
    file.version = 7;
    let newer = "bytecode, byte 4: version 7 of MLIR bytecode is not supported, only versions 0 to 6";
    assert_eq!(message(file.write()), newer);
    assert!(message(b"HloModule m".to_vec()).contains("not MLIR bytecode"));
}

#[test]
fn what_contains_itself_is_refused() {
    let mut file = File::new();
    file.ir = module(0, &[]);
    // Arrays of one attribute: 1 of 2, 2 of 1.
    let array = |of: usize| [varint(0), varint(1), varint(of)].concat();
    file.attributes = [varint(15), array(2), array(1)].map(|payload| (BUILTIN, payload)).to_vec();
    assert_eq!(message(file.write()), "bytecode: attribute 1 contains itself");
    // A tuple of itself.
    file.attributes.truncate(1);
    file.types = vec![(BUILTIN, [varint(15), varint(1), varint(0)].concat())];
    assert_eq!(message(file.write()), "bytecode: type 0 contains itself");
}

#[test]
fn attributes_may_nest_as_deep_as_they_like() {
    let mut file = File::new();
    // Each array contains the next one twice, so that expanded they would be 2^100,000 attributes.
    const DEPTH: usize = 100_000;
    let array = |i: usize| [varint(0), varint(2), varint(i + 1), varint(i + 1)].concat();
    file.attributes.extend((1..DEPTH).map(|i| (BUILTIN, array(i))));
    file.attribute(BUILTIN, varint(7));
    // A dictionary of the array, under its name.
    let name = DEPTH + 1;
    file.attribute(BUILTIN, [varint(2), varint(2)].concat());
    file.attribute(BUILTIN, [varint(1), varint(1), varint(name), varint(1)].concat());
    file.ir = empty_module(0x01, &varint(name + 1));
    let text = with_little_stack(file.write(), |read| read.expect("a module").to_string());
    assert!(text.starts_with("builtin.module {module = [[[[") && text.len() < 2_000, "{text}");
}

#[test]
fn regions_may_nest_as_deep_as_they_like() {
    const DEPTH: usize = 100_000;
    let mut file = File::new();
    // Each module has one region of one block without values that contains the next one.
    let level = [&region()[..], &varint(1 << 1), &varint(0), &[0x10], &varint(0)].concat();
    let mut rest: Vec<u8> = level.repeat(DEPTH + 1);
    rest.extend([region(), varint(0)].concat());
    file.ir = module(0x10, &rest);
    let operations = with_little_stack(file.write(), |read| read.expect("a module").walk().count());
    assert_eq!(operations, DEPTH + 2);
}

#[test]
fn counts_beyond_the_file_are_refused_before_memory_is_taken() {
    let huge = varint(1 << 50);
    let mut file = File::new();
    file.ir = module(0x02, &huge);
    assert!(message(file.write()).contains("a count is 1125899906842624"));
    // A region that states a number of values, but has none.
    file.ir = module(0x10, &[varint(1 << 1), varint(1), varint(3), varint(0)].concat());
    assert!(message(file.write()).contains("a count is 3") || message(file.write()).contains("of its 3 values"));
    file.ir = module(0, &[]);
    file.attribute(BUILTIN, [varint(0), huge].concat());
    assert!(message(file.write()).contains("a count is 1125899906842624"));
}

#[test]
fn values_of_isolated_regions_and_values_to_come_are_out_of_sight() {
    let ty = varint(3);
    let mut file = File::new();
    file.types = vec![(BUILTIN, ty)];
    // A module with one result, which is also its operand.
    file.ir = module(0x02 | 0x04, &[varint(1), varint(0), varint(1), varint(0)].concat());
    assert!(message(file.write()).contains("value 0 is not defined yet"), "{}", message(file.write()));
}

/// Returns a branch with one operation, a return of a value, between an argument of the function and its result.
fn branch_that_returns(value: usize) -> String {
    let mut file = File::new();
    let element = file.ty(VHLO, varint(4));
    let tensor = file.ty(VHLO, [varint(20), list(&[]), varint(element)].concat());
    let end = [varint(2), vec![0x04], varint(0), list(&[value])].concat();
    let body = [&region()[..], &varint(1 << 1), &end].concat();
    program(&mut file, "case_v1", &[tensor], &[tensor], &[], &body);
    message(file.write())
}

#[test]
fn a_region_does_not_see_the_results_of_its_operation() {
    assert_eq!(branch_that_returns(0), "read");
    let error = branch_that_returns(1);
    assert!(error.contains("vhlo.return_v1 uses %1, which is not defined before this use"), "{error}");
}

#[test]
fn many_operations_that_share_a_large_dictionary_are_refused() {
    const ENTRIES: usize = 10_000;
    let mut file = File::new();
    let name = file.attribute(BUILTIN, [varint(2), varint(0)].concat());
    let entries = [name, 0].repeat(ENTRIES).into_iter().flat_map(varint);
    let dictionary = [varint(1), varint(ENTRIES)].concat().into_iter().chain(entries).collect();
    let dictionary = file.attribute(BUILTIN, dictionary);
    // Modules, each with the dictionary and an empty region.
    let inner = [&varint(0)[..], &[0x11], &varint(0), &varint(dictionary), &region(), &varint(0)].concat();
    let rest = [&region()[..], &varint(ENTRIES << 1), &inner.repeat(ENTRIES)].concat();
    file.ir = module(0x10, &rest);
    let error = message(file.write());
    assert!(error.contains("operations have more attributes than 8 for each byte of the file"), "{error}");
}
