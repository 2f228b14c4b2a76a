//! Tests of the persistent cache: another client finds compiled programs on disk, and broken entries are compiled
//! again.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use xla_hlo::text::parse_module;
use xla_hlo::{Literal, Scalar, VerifiedModule};
use xla_service::{Client, CompileOptions, PlatformRegistry};

/// Returns the result of a module of one f32 for 3, compiled by a new client.
fn of_three(operation: &str, options: &CompileOptions) -> Scalar {
    let text = format!("HloModule m\nENTRY e {{\n p = f32[] parameter(0)\n ROOT r = f32[] {operation}(p, p)\n}}");
    let module = VerifiedModule::new(parse_module(&text).unwrap()).unwrap();
    let mut registry = PlatformRegistry::new();
    registry.register(backend_cpu::platform());
    let client = Client::new(&registry, "cpu").unwrap();
    let program = client.compile(&module, options).unwrap();
    let three = client.buffer(&Literal::scalar(xla_hlo::ElementType::F32, Scalar::Float(3.0))).unwrap();
    program.execute(&[&three]).unwrap()[0].to_literal().unwrap().get(0)
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn programs_are_found_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let options = CompileOptions {
        cache_dir: Some(folder.path().to_path_buf()),
        cache_programs: true,
        ..CompileOptions::default()
    };
    let programs = folder.path().join("programs");
    assert_eq!(of_three("multiply", &options), Scalar::Float(9.0));
    let [multiply] = &files(&programs)[..] else { panic!("one program, one file") };
    assert_eq!(of_three("add", &options), Scalar::Float(6.0));
    let add = files(&programs).into_iter().find(|path| path != multiply).unwrap();

    // A used file is not rewritten; an invalid one is.
    let (whole, other) = (fs::read(multiply).unwrap(), fs::read(&add).unwrap());
    let number = || fs::metadata(multiply).unwrap().ino();
    let first = number();
    assert_eq!(of_three("multiply", &options), Scalar::Float(9.0));
    assert_eq!(number(), first, "it was found");
    for wrong in [&whole[..whole.len() / 2], &[], b"something else", &other] {
        fs::write(multiply, wrong).unwrap();
        assert_eq!(of_three("multiply", &options), Scalar::Float(9.0));
        assert_eq!(fs::read(multiply).unwrap(), whole, "it was written again");
    }

    // Other options identify another program; without `cache_programs` nothing is stored.
    let one_thread = CompileOptions { threads: std::num::NonZeroUsize::new(7), ..options.clone() };
    assert_eq!(of_three("multiply", &one_thread), Scalar::Float(9.0));
    assert_eq!(of_three("multiply", &CompileOptions { cache_programs: false, ..options }), Scalar::Float(9.0));
    assert_eq!(files(&programs).len(), 3);
}

/// Loops whose bodies have instructions of equal names. Names in a protobuf are unique, so a module that was read back
/// has other names.
const LOOPS: &str = include_str!("programs/loops.hlo");

/// A program that is read back uses the machine code that was stored with it.
#[test]
fn a_program_read_back_is_not_compiled_again() {
    let module = VerifiedModule::new(parse_module(LOOPS).unwrap()).unwrap();
    let platform = backend_cpu::platform();
    let (compiler, options) = (platform.compiler(), CompileOptions::default());
    let optimized = compiler.run_hlo_passes(module, &options).unwrap();
    let executable = compiler.run_backend(optimized, &options).unwrap();
    let bytes = executable.serializer().unwrap().serialize().unwrap();
    // Only generated code is dumped as text, and only if that was requested.
    let folder = tempfile::tempdir().unwrap();
    let watched = CompileOptions { dump_to: Some(folder.path().to_path_buf()), ..options };
    let loaded = compiler.loader().unwrap().load(&bytes, &watched).unwrap();
    let texts = |name: &(String, String)| name.0.ends_with(".ll");
    assert!(!loaded.dumps().iter().any(texts), "code was generated");
    // A stored program without code is compiled, and dumped.
    let module = xla_service::serialized::read("cpu", &bytes).unwrap().module;
    let bare = xla_service::serialized::write("cpu", &module, &[]).unwrap();
    let compiled = compiler.loader().unwrap().load(&bare, &watched).unwrap();
    assert!(compiled.dumps().iter().any(texts));
}
