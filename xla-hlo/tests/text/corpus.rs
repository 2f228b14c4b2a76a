//! Tests of round trips over the program corpus, if it is checked out next to the repository.

use std::path::{Path, PathBuf};

use xla_hlo::Error;
use xla_hlo::text::parse_module;

/// Returns `shared/corpus` next to the repository or in a parent folder.
fn corpus() -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().map(|dir| dir.join("shared/corpus")).find(|dir| dir.is_dir())
}

fn modules(corpus: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let folders = |dir: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(dir).expect("the corpus can be read");
        entries.filter_map(|e| e.ok().map(|e| e.path())).filter(|p| p.is_dir()).collect()
    };
    for suite in folders(corpus) {
        found.extend(folders(&suite).into_iter().map(|case| case.join("module.hlo")).filter(|m| m.is_file()));
    }
    found.sort();
    found
}

/// Returns the text without insignificant white space, with negative zeros in this printer's notation.
fn essence(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim_end).filter(|line| !line.is_empty());
    lines.map(|line| line.replace("-0,", "-0.0,").replace("-0}", "-0.0}")).collect()
}

/// Whether XLA's printer wrote a text.
fn is_printed(text: &str) -> bool {
    text.contains("entry_computation_layout={") && text.contains("ENTRY %")
}

/// Without the corpus the test does nothing.
#[test]
fn modules_round_trip() {
    let Some(corpus) = corpus() else { return };
    let (mut parsed, mut later) = (0, 0);
    for path in modules(&corpus) {
        let name = path.display();
        let text = std::fs::read_to_string(&path).expect("the module can be read");
        let module = match parse_module(&text) {
            Ok(module) => module,
            Err(Error::Unimplemented(_)) => {
                later += 1;
                continue;
            }
            Err(error) => panic!("{name}: {error}"),
        };
        parsed += 1;
        let printed = module.to_string();
        let again = parse_module(&printed).unwrap_or_else(|e| panic!("{name}: printed text does not parse: {e}"));
        assert_eq!(printed, again.to_string(), "{name}: printing is no fixed point");
        assert_eq!(module.instruction_count(), again.instruction_count(), "{name}");
        if is_printed(&text) {
            assert_eq!(essence(&printed), essence(&text), "{name}: XLA printed it otherwise");
        }
    }
    assert!(parsed > later, "{parsed} modules were parsed, {later} have operations that are not here");
}
