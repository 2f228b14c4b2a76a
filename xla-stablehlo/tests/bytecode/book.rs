//! Test that the book's page about StableHLO has the current operations and errors.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use xla_hlo::{Module, Result, VerifiedModule};
use xla_stablehlo::ir::forms::{FORMS, Form};
use xla_stablehlo::{ArgumentShapes, bytecode, refine, text};

use crate::newer::{collective_reduce_artifact, later_versions};
use crate::operations::{programs, read};

/// Malformed texts whose errors the page shows.
const MALFORMED: [&str; 4] = ["comma_missing", "element_types_differ", "dense_ragged", "operands_too_few"];

#[test]
fn the_book_has_the_page_as_it_is() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/src/internals/stablehlo.md");
    let page = fs::read_to_string(&path).expect("the page");
    let written = replaced(&replaced(&page, "errors", &errors()), "operations", &operations());
    if std::env::var("INSTA_UPDATE").as_deref() == Ok("always") {
        fs::write(&path, written).expect("the page is written");
    } else {
        assert!(
            written == page,
            "stablehlo.md is out of date: run `INSTA_UPDATE=always cargo test -p xla-stablehlo book`"
        );
    }
}

/// Returns the page with the content between the marks of a part replaced.
fn replaced(page: &str, part: &str, content: &str) -> String {
    let begin = format!("<!-- {part}: written by the test `book` of xla-stablehlo -->\n");
    let (before, rest) = page.split_once(&begin).expect("the mark of the part");
    let (_, after) = rest.split_once("<!-- end -->").expect("the end of the part");
    format!("{before}{begin}{content}<!-- end -->{after}")
}

fn errors() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/text/errors");
    let of_text = MALFORMED.iter().map(|name| {
        let source = fs::read_to_string(folder.join(format!("{name}.mlir"))).expect("the text");
        text::read(&source).expect_err("malformed").to_string()
    });
    let messages: Vec<String> = of_text.chain(later_versions()).collect();
    format!("\n```text\n{}\n```\n\n", messages.join("\n\n"))
}

fn operations() -> String {
    let programs = programs();
    let mut forms: BTreeMap<&str, Vec<&Form>> = BTreeMap::new();
    for form in FORMS {
        forms.entry(form.stem()).or_default().push(form);
    }
    let mut table = String::from("\n| operation | forms | in HLO |\n| --- | --- | --- |\n");
    for (stem, forms) in forms {
        let version = |form: &&Form| {
            let number = form.name.rsplit_once('_').map_or("", |(_, version)| version);
            let until = form.until.map_or(String::new(), |until| until.to_string());
            format!("{number}: {}..{until}", form.since)
        };
        let versions: Vec<String> = forms.iter().map(version).collect();
        let counterpart = match stem {
            "func" | "return" => "a computation, its root".to_string(),
            _ => counterpart(&programs, stem),
        };
        table += &format!("| `{stem}` | {} | {counterpart} |\n", versions.join(", "));
    }
    table + "\n"
}

/// Returns the instructions to which the program of an operation is lowered.
fn counterpart(programs: &BTreeMap<String, Vec<(String, Vec<u8>)>>, stem: &str) -> String {
    // The program of an asynchronous operation also contains its end.
    let name = if stem == "async_done" { "async_start" } else { stem };
    let program = match programs.get(name).map(|files| &files[0]) {
        Some((kind, content)) => read(kind, content),
        None if name == "collective_reduce" => bytecode::read(&collective_reduce_artifact()),
        None => return "refused: quantized values".to_string(),
    };
    // Extents of dynamic dimensions.
    let mut shapes = ArgumentShapes::default();
    shapes.set_extents(0, &[4]);
    let lowered: Result<Module> = program
        .and_then(|module| refine(&module, &shapes))
        .and_then(|module| VerifiedModule::new(module).map(VerifiedModule::into_inner));
    match lowered {
        Ok(module) => {
            let entry = module.entry();
            let is_own = |name: &str| name == stem.replace('_', "-");
            let wrapping = ["parameter", "tuple", "get-tuple-element", "constant"];
            let opcodes: BTreeSet<&str> =
                entry.iter().map(|(_, instruction)| instruction.op().opcode().name()).collect();
            let shown = |name: &&str| is_own(name) || !wrapping.contains(name);
            let names: Vec<String> = opcodes.into_iter().filter(shown).map(|name| format!("`{name}`")).collect();
            names.join(", ")
        }
        Err(error) => {
            let message = error.to_string();
            let reason = message.rsplit_once(": ").map_or(&*message, |(_, reason)| reason);
            format!("refused: {}", reason.replace('<', "&lt;"))
        }
    }
}
