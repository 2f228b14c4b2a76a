//! Tests of bytecode of the dialects themselves, in all versions of the container: it is equal to the program's text.

use std::time::Instant;

use xla_hlo::VerifiedModule;
use xla_stablehlo::{bytecode, lower};

use crate::operations::{archived, hlo, read};
use crate::outline::outline;
use crate::writer::{BUILTIN, File, TEXT, VHLO, empty_module, module, varint};

/// Programs that the text reader may not support.
const BYTECODE_ALONE: [&str; 4] = ["arith", "attributes", "chlo_scan", "mesh_groups_inline"];

#[test]
fn bytecode_of_stablehlo_is_the_program_of_its_text() {
    let programs = archived("dialects.zip");
    assert!(programs.len() > 250);
    let mut differences = String::new();
    for (name, files) in &programs {
        let mut wanted = None;
        let is_text = |(kind, _): &&(String, Vec<u8>)| kind == "mlir";
        for (kind, content) in files.iter().filter(is_text).chain(files.iter().filter(|file| !is_text(file))) {
            match read(kind, content) {
                Ok(module) => {
                    let found = (outline(&module).join("\n"), hlo(&module));
                    let wanted = wanted.get_or_insert_with(|| found.clone());
                    if found != *wanted {
                        differences += &format!("{name}.{kind}: {found:#?}\ninstead of {wanted:#?}\n");
                    }
                }
                Err(_) if kind == "mlir" && BYTECODE_ALONE.contains(&&**name) => {}
                Err(error) => differences += &format!("{name}.{kind}: {error}\n"),
            }
        }
    }
    assert!(differences.is_empty(), "{differences}");
}

#[test]
fn a_bit_of_a_dialect_that_is_flipped_is_an_error_or_another_program() {
    let programs = archived("dialects.zip");
    let began = Instant::now();
    let mut modules = 0;
    for name in
        ["attributes", "convolution", "chlo_scan", "dot_general_algorithm", "locations", "mesh_groups", "sdy_manual"]
    {
        let files =
            programs[name].iter().filter(|(kind, _)| kind == "0.mlirbc" || kind == "5.mlirbc" || kind == "6.mlirbc");
        for (_, bytes) in files {
            for bit in 0..8 * bytes.len() {
                let mut damaged = bytes.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                if let Ok(module) = bytecode::read(&damaged) {
                    modules += 1;
                    let _ = lower(&module).and_then(VerifiedModule::new);
                }
            }
            for length in 0..bytes.len() {
                assert!(bytecode::read(&bytes[..length]).is_err(), "{name}, {length} bytes");
            }
        }
    }
    assert!(modules > 0);
    assert!(began.elapsed().as_secs() < 60);
}

/// Returns a module with one more attribute, and one more type, in text form; the attribute is one of the module's.
fn with_text(attribute: &str, ty: &str) -> String {
    let mut file = File::new();
    file.attribute(BUILTIN + TEXT, [attribute.as_bytes(), b"\0"].concat());
    file.ty(BUILTIN + TEXT, [ty.as_bytes(), b"\0"].concat());
    let tensor = file.ty(VHLO, [varint(20), varint(1), varint(4 << 1), varint(0)].concat());
    let tensor = file.attribute(BUILTIN, [varint(6), varint(tensor)].concat());
    let name = file.string("name");
    let name = file.attribute(BUILTIN, [varint(2), varint(name)].concat());
    let other = file.string("type");
    let other = file.attribute(BUILTIN, [varint(2), varint(other)].concat());
    let entries = [varint(1), varint(2), varint(name), varint(1), varint(other), varint(tensor)].concat();
    let dictionary = file.attribute(BUILTIN, entries);
    file.ir = empty_module(0x01, &varint(dictionary));
    let read = std::thread::Builder::new().stack_size(512 << 10).spawn(move || bytecode::read(&file.write()));
    match read.expect("a thread").join().expect("no overflow") {
        Ok(module) => module.to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn entries_that_are_text_are_read_as_text() {
    let deep = format!("{}1 : i32{}", "[".repeat(99), "]".repeat(99));
    let deeper = format!("{}1 : i32{}", "[".repeat(101), "]".repeat(101));
    let report: Vec<String> = [
        ("[1 : i32, #stablehlo<precision HIGH>, dense<1.0> : tensor<2xf8E5M2>]", "f8E4M3FN"),
        ("affine_map<(d0) -> (d0)>", "f4E2M1FN"),
        ("unit", "!quant.uniform<i8:f32, 2.0:3>"),
        ("unit", "!newer.type"),
        ("unit", "tensor<"),
        ("[1 : i32", "f32"),
        ("#undefined", "f32"),
        ("1 : i32 2", "f32"),
        (&deeper, "f32"),
    ]
    .map(|(attribute, ty)| format!("{attribute} and {ty}:\n{}", with_text(attribute, ty)))
    .to_vec();
    insta::assert_snapshot!(report.join("\n"));
    assert!(with_text(&deep, "f32").contains("[[[["));
    let mut file = File::new();
    file.attribute(BUILTIN + TEXT, b"unit".to_vec());
    file.ir = module(0, &[]);
    let error = bytecode::read(&file.write()).expect_err("no NUL").to_string();
    assert!(error.contains("not UTF-8 that ends with NUL"), "{error}");
}
