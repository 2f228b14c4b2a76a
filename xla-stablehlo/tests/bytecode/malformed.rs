//! Tests of malformed text: errors have line, column, the source line with a caret, and the expected token; no text
//! panics.

use std::fs;
use std::path::Path;
use std::time::Instant;

use xla_stablehlo::text;

use crate::operations::programs;

#[test]
fn errors_say_where_and_what() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/text/errors");
    let mut paths: Vec<_> =
        fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("a file").path()).collect();
    paths.sort();
    let mut report = String::new();
    for path in &paths {
        let text = fs::read_to_string(path).expect("text");
        let name = path.file_stem().expect("a name").to_string_lossy();
        let error = match text::read(&text) {
            Ok(module) => panic!("{name} is read:\n{module}"),
            Err(error) => error.to_string(),
        };
        assert!(error.starts_with("error at ") && (error.contains('^') || text.is_empty()), "{name}: {error}");
        report += &format!("{name}\n{error}\n\n");
    }
    assert!(paths.len() > 40);
    insta::assert_snapshot!("malformed", report);
}

/// Returns texts of three operations with regions, numbers and attributes of many kinds.
fn texts() -> Vec<String> {
    let programs = programs();
    let names = ["while", "select_and_scatter", "custom_call"];
    let text = |name: &str| {
        let (_, content) = programs[name].iter().find(|(kind, _)| kind == "mlir").expect("the text");
        String::from_utf8(content.clone()).expect("text")
    };
    names.into_iter().map(text).collect()
}

#[test]
fn text_that_is_cut_anywhere_is_refused() {
    for text in texts() {
        let whole = text.trim_end().len();
        for length in 0..whole {
            let error = text::read(&text[..length]).expect_err("a part").to_string();
            assert!(error.starts_with("error at "), "{length} bytes: {error}");
        }
    }
}

#[test]
fn a_bit_of_text_that_is_flipped_is_an_error_or_another_program() {
    for text in texts() {
        let began = Instant::now();
        let (mut read, mut refused) = (0, 0);
        for bit in 0..8 * text.len() {
            let mut damaged = text.clone().into_bytes();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let Ok(damaged) = String::from_utf8(damaged) else { continue };
            match text::read(&damaged) {
                Ok(module) => {
                    read += 1;
                    let _ = xla_stablehlo::lower(&module).and_then(xla_hlo::VerifiedModule::new);
                }
                Err(error) => {
                    refused += 1;
                    assert!(error.to_string().starts_with("error at "), "bit {bit}: {error}");
                }
            }
        }
        assert!(read > 0 && refused > 0);
        assert!(began.elapsed().as_secs() < 60, "a second is more than enough");
    }
}

#[test]
fn nesting_is_refused_before_the_stack_ends() {
    let deep = [
        format!("#a = {}", "[".repeat(100_000)),
        format!("#a = {}", "{a = ".repeat(100_000)),
        format!("!a = {}", "tuple<".repeat(100_000)),
        format!("module {{ {} }}", "func.func @f() { ".repeat(100_000)),
        format!("module {{ {}", "\"a.b\"() ({ ".repeat(100_000)),
        format!(
            "module {{ {}",
            "sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={} () {".repeat(9_999)
        ),
        format!("#a = loc({}", "\"a\"(".repeat(100_000)),
        format!("#a = {}", "(".repeat(100_000)),
        format!("!a = {}", "!stablehlo.future<".repeat(100_000)),
    ];
    for text in deep {
        let thread = std::thread::Builder::new().stack_size(256 << 10);
        let thread = thread.spawn(move || text::read(&text).expect_err("too deep").to_string()).expect("a thread");
        assert!(!thread.join().expect("no overflow").is_empty());
    }
}
