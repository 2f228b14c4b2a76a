//! Compiled programs are found on disk by another client; broken entries are compiled anew.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use xla_hlo::text::parse_module;
use xla_hlo::{Literal, Scalar, VerifiedModule};
use xla_service::{Client, CompileOptions, PlatformRegistry};

/// Result of a module of one f32 on 3, compiled by a client of its own.
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

    // A file that is used stays the file that it is; one that is not is written again.
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

    // Other options are another program; without a wish for it nothing is kept.
    let one_thread = CompileOptions { threads: std::num::NonZeroUsize::new(7), ..options.clone() };
    assert_eq!(of_three("multiply", &one_thread), Scalar::Float(9.0));
    assert_eq!(of_three("multiply", &CompileOptions { cache_programs: false, ..options }), Scalar::Float(9.0));
    assert_eq!(files(&programs).len(), 3);
}
