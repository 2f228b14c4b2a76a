//! Round trips over the program corpus, where it is checked out beside the repository.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use xla_hlo::text::parse_module;
use xla_hlo::{Error, Module};

/// `shared/corpus` beside the repository or further up.
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

/// Text without what says nothing: blank lines, and blanks at the ends of lines.
fn essence(text: &str) -> Vec<&str> {
    text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect()
}

/// What a module's text goes through: printed, read again and printed again it is the same.
fn check(module: &Module, name: &str) {
    let printed = module.to_string();
    let again =
        parse_module(&printed).unwrap_or_else(|e| panic!("{name}: printed text does not parse: {e}\n{printed}"));
    assert_eq!(printed, again.to_string(), "{name}: printing is no fixed point");
    assert_eq!(module.instruction_count(), again.instruction_count(), "{name}");
}

#[test]
fn printing_is_a_fixed_point() {
    let Some(corpus) = corpus() else {
        eprintln!("skipped: there is no shared/corpus beside the repository");
        return;
    };
    let (mut parsed, mut exact) = (0, 0);
    let mut later = BTreeMap::<String, usize>::new();
    let mut differing = Vec::new();
    for path in modules(&corpus) {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(&path).expect("the module can be read");
        match parse_module(&text) {
            Ok(module) => {
                check(&module, &name);
                parsed += 1;
                if essence(&module.to_string()) == essence(&text) { exact += 1 } else { differing.push(name) }
            }
            Err(Error::Unimplemented(why)) => {
                let message = why.to_string();
                let line = message.lines().next().unwrap_or_default();
                let operation = line.split_once("operation ").map_or(line, |(_, rest)| rest);
                *later.entry(operation.to_string()).or_default() += 1;
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }
    eprintln!("{parsed} modules parsed, {exact} of them printed exactly as XLA printed them");
    eprintln!("not implemented: {later:#?}");
    eprintln!("differing: {differing:#?}");
    assert!(parsed > 0);
}
