//! Programs of `programs/*.hlo`, one file for each kind of collective, with the results of each device.
//!
//! A file holds several modules. Element `i` of argument `k` is `100 k + 10 d + i` on device `d`, as the element type
//! holds it; for complex types the imaginary part is the device.

use std::fs;
use std::path::PathBuf;

use crate::modules::modules;
use crate::support::{argument, run, value};

#[test]
fn results_of_programs() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/eval_grid/programs");
    let entries = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == "hlo")).collect();
    files.sort();
    assert!(files.len() > 5, "{} files in {}", files.len(), folder.display());
    for file in files {
        let mut report = String::new();
        for text in modules(&fs::read_to_string(&file).unwrap()) {
            let name = text.lines().next().unwrap_or_default().trim_start_matches("HloModule ");
            report += &format!("{name}\n");
            match run(&text, argument) {
                Ok(results) => results
                    .iter()
                    .enumerate()
                    .for_each(|(device, result)| report += &format!("  device {device}: {}\n", value(result))),
                Err(error) => report += &format!("  error: {}\n", error.to_string().replace('\n', "\n    ")),
            }
        }
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        insta::with_settings!({prepend_module_to_snapshot => false, omit_expression => true}, {
            insta::assert_snapshot!(name, report);
        });
    }
}
