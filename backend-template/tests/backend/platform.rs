//! Tests of the platform through its traits: transfers, whole programs, serialization, faults.

use std::sync::Arc;

use crate::support::{array, clients, module, results, values};
use backend_template::{DeviceOptions, NAME, platform, platform_with};
use xla_hlo::{ArrayShape, ElementType, Error, Literal, Scalar};
use xla_service::{Client, CompileOptions, Fault, PlatformRegistry, serialized};

/// Program with kernels, a constant, and an operation that the host evaluates.
const PROGRAM: &str = include_str!("programs/platform.hlo");

fn argument() -> Literal {
    let shape = ArrayShape::new(ElementType::F32, [6, 10]);
    Literal::from_fn(&shape, |i| Scalar::Float((i * 7 % 11) as f64 / 4.0)).expect("a small array")
}

#[test]
fn values_of_every_type_and_rank_go_there_and_back() {
    let (client, _) = clients(platform());
    for &ty in ElementType::ALL {
        for dims in [&[][..], &[1], &[33], &[0], &[5, 9], &[4, 8], &[3, 0], &[2, 3, 4, 10], &[1, 1, 1], &[0, 2, 2]] {
            let literal = array(&ArrayShape::new(ty, dims), &values(ty), 1);
            let buffer = client.buffer(&literal).expect("an upload");
            assert_eq!(buffer.to_literal().expect("a download"), literal, "{}", literal.shape());
        }
    }
    assert_eq!(client.memory_stats().bytes_in_use, 0);
}

#[test]
fn memory_has_an_address_that_the_host_cannot_read() {
    let (client, _) = clients(platform());
    let [one, other] = [1, 2].map(|_| client.buffer(&argument()).expect("an upload"));
    let [of_one, of_other] = [&one, &other].map(|buffer| buffer.hold().expect("memory"));
    assert!(of_one.host_bytes().is_none());
    assert_ne!(of_one.address().expect("an address"), of_other.address().expect("an address"));
    assert_eq!(one.hold().expect("the same memory").address(), of_one.address());
}

#[test]
fn several_devices_have_memories_of_their_own() {
    let mut registry = PlatformRegistry::new();
    registry.register(platform_with(DeviceOptions { devices: 2, memory_bytes: 4096, ..DeviceOptions::default() }));
    let client = |ordinal| Client::for_device(&registry, NAME, ordinal, Arc::default());
    let (first, second) = (client(0).expect("a device"), client(1).expect("a device"));
    let buffer = first.buffer(&argument()).expect("an upload");
    assert_eq!((first.memory_stats().bytes_in_use > 0, second.memory_stats().bytes_in_use), (true, 0));
    let large = Literal::zeros(&ArrayShape::new(ElementType::F32, [2048])).expect("a literal");
    let error = second.buffer(&large).expect_err("too large for the device");
    assert!(matches!(error, Error::ResourceExhausted(_)), "{error}");
    assert!(error.message().contains("no device memory for 8192 bytes: 4096 of 4096 are free"), "{error}");
    drop(buffer);
    let error = client(2).expect_err("there are two");
    assert_eq!(error.message(), format!("platform {NAME} has 2 devices, but no device 2"));
}

#[test]
fn programs_are_written_down_and_loaded() {
    let (client, evaluator) = clients(platform());
    let (module, options) = (module(PROGRAM), CompileOptions::default());
    let compiled = client.compile(&module, &options).expect("it compiles");
    let bytes = compiled.serialize().expect("it can be written down");
    let loaded = client.load(&bytes, &options).expect("it can be loaded");
    let expected = results(&evaluator.compile(&module, &options).expect("it compiles"), &[argument()]);
    for (found, expected) in results(&loaded, &[argument()]).iter().zip(&expected) {
        crate::support::assert_close(found, expected, "loaded");
    }
    let refused = |bytes: &[u8], why: &str| {
        let error = client.load(bytes, &options).expect_err("not these bytes");
        assert!(matches!(error, Error::InvalidArgument(_)) && error.message().contains(why), "{error}");
    };
    refused(&bytes[..bytes.len() / 2], "truncated");
    refused(b"something else", "not a serialised program");
    let mut garbled = bytes.clone();
    garbled[bytes.len() / 2] ^= 1;
    refused(&garbled, "corrupt");
    let other = serialized::write("abacus", &serialized::read(NAME, &bytes).expect("it is whole").module, &[]);
    refused(&other.expect("it can be written down"), "for platform abacus");
}

/// Each injected fault yields an error that names its location and leaks no memory; the next run succeeds.
#[test]
fn every_fault_names_its_place_leaks_nothing_and_is_over() {
    let platform = platform();
    let executor = platform.executor(0).expect("a device");
    let (client, evaluator) = clients(platform);
    let (module, options) = (module(PROGRAM), CompileOptions::default());
    let expected = results(&evaluator.compile(&module, &options).expect("it compiles"), &[argument()]);
    for fault in Fault::ALL {
        let mut struck = 0;
        for skip in 0..40 {
            client.cache().clear();
            let program = client.compile(&module, &options).expect("it compiles");
            let argument = client.buffer(&argument()).expect("an upload");
            argument.wait().expect("no fault yet");
            let before = client.memory_stats().bytes_in_use;
            executor.fault_injection().expect("a simulated device").inject(fault, skip).expect("this kind of fault");
            let outcome = program.execute(&[&argument]).and_then(|results| {
                results.iter().try_for_each(|result| result.wait())?;
                Ok(())
            });
            executor.fault_injection().expect("a simulated device").clear();
            if let Err(error) = outcome {
                struck += 1;
                let message = error.message();
                assert!(message.contains(&format!("platform {NAME}")), "{fault:?} {skip}: {message}");
                assert!(message.contains('%') || message.contains("constant"), "{fault:?} {skip}: {message}");
            }
            let again = program.execute(&[&argument]).expect("the fault is over");
            for (result, expected) in again.iter().zip(&expected) {
                crate::support::assert_close(
                    &result.to_literal().expect("the fault is over"),
                    expected,
                    "after a fault",
                );
            }
            drop((again, program));
            client.cache().clear();
            assert_eq!(client.memory_stats().bytes_in_use, before, "{fault:?} {skip} leaked");
        }
        assert!(struck > 0, "no {fault:?} struck");
    }
    client.cache().clear();
    assert_eq!(client.memory_stats().bytes_in_use, 0);
}
