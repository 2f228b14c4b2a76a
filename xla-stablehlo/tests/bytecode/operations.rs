//! Tests of every operation of StableHLO and every form of VHLO: text, generic text and artifacts are equal programs.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use xla_hlo::{Result, VerifiedModule};
use xla_stablehlo::ir::Module;
use xla_stablehlo::ir::forms::FORMS;
use xla_stablehlo::{bytecode, lower, text};

use crate::outline::outline;

/// Forms that jaxlib 0.10.2 does not write: newer ones, and ones of a dialect that its context lacks.
const WRITTEN_HERE: [&str; 5] = [
    "collective_broadcast_v2",
    "collective_reduce_v1",
    "custom_call_v2",
    "uniform_dequantize_v1",
    "uniform_quantize_v1",
];

/// Returns the programs of the archive of operations.
pub fn programs() -> BTreeMap<String, Vec<(String, Vec<u8>)>> {
    archived("operations.zip")
}

/// Returns the files of an archive by the name of the program: the rest of the file name, and the content.
pub fn archived(archive: &str) -> BTreeMap<String, Vec<(String, Vec<u8>)>> {
    let path = format!("{}/tests/data/{archive}", env!("CARGO_MANIFEST_DIR"));
    let mut archive = zip::ZipArchive::new(std::fs::File::open(path).expect("the archive")).expect("an archive");
    let mut programs: BTreeMap<String, Vec<_>> = BTreeMap::new();
    for index in 0..archive.len() {
        let mut file = archive.by_index(index).expect("a file");
        let mut content = Vec::new();
        file.read_to_end(&mut content).expect("content");
        let name = file.name().expect("a name").into_owned();
        let (name, kind) = name.split_once('.').expect("a name with an extension");
        programs.entry(name.to_string()).or_default().push((kind.to_string(), content));
    }
    programs
}

pub fn read(kind: &str, content: &[u8]) -> Result<Module> {
    if kind.ends_with("mlirbc") {
        bytecode::read(content)
    } else {
        text::read(std::str::from_utf8(content).expect("text"))
    }
}

/// Returns the HLO text without source locations, or the error without location and versions.
pub fn hlo(module: &Module) -> String {
    match lower(module).and_then(VerifiedModule::new) {
        Ok(module) => {
            let options = xla_hlo::text::PrintOptions { metadata: false, ..Default::default() };
            xla_hlo::text::print_module(&module, &options)
        }
        Err(error) => {
            let message = error.to_string().replace("vhlo.", "stablehlo.");
            let places = message.split(' ').filter(|word| !word.starts_with(|c: char| c.is_ascii_digit()));
            let words = places.map(|word| word.trim_end_matches([',', ':', '1', '2']).trim_end_matches("_v"));
            words.filter(|word| !matches!(*word, "byte" | "line" | "error")).collect::<Vec<_>>().join(" ")
        }
    }
}

#[test]
fn all_forms_of_a_program_are_the_same() {
    let programs = programs();
    assert!(programs.len() > 120);
    let (mut report, mut differences) = (String::new(), String::new());
    for (name, files) in &programs {
        let mut modules = Vec::new();
        for (kind, content) in files {
            match read(kind, content) {
                Ok(module) => modules.push((kind, module)),
                Err(error) => differences += &format!("{name}.{kind}: {error}\n"),
            }
        }
        let Some(((_, module), rest)) = modules.split_first() else { continue };
        let (first, lowered) = (outline(module).join("\n"), hlo(module));
        for (kind, module) in rest {
            for (found, wanted) in [(outline(module).join("\n"), &first), (hlo(module), &lowered)] {
                if found != *wanted {
                    differences += &format!("{name}.{kind}:\n{found}\ninstead of\n{wanted}\n");
                }
            }
        }
        if !lowered.starts_with("HloModule") {
            report += &format!("{name}: {lowered}\n");
        }
    }
    assert!(differences.is_empty(), "{differences}");
    insta::assert_snapshot!("refused_operations", report);
}

#[test]
fn every_form_is_in_a_file() {
    let mut found = BTreeSet::new();
    for (kind, content) in programs().values().flatten().filter(|(kind, _)| kind.ends_with("mlirbc")) {
        let module = read(kind, content).expect("a module");
        let own = |op| module.text(module.operations[op].name).strip_prefix("vhlo.").map(str::to_string);
        found.extend(module.walk().filter_map(own));
    }
    let missing: Vec<&str> = FORMS.iter().map(|form| form.name).filter(|&name| !found.contains(name)).collect();
    assert_eq!(missing, WRITTEN_HERE);
}
