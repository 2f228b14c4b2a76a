//! Tests that serialized modules of the program corpus equal their parsed text, if the corpus is checked out next to
//! the repository.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use xla_hlo::proto::{parse_module, serialize_module};
use xla_hlo::{Error, Module, Op, VerifiedModule, text};

/// Returns `shared/corpus` next to the repository or in a parent folder.
fn corpus() -> Option<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().map(|dir| dir.join("shared/corpus")).find(|dir| dir.is_dir())
}

fn folders(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("the corpus can be read");
    entries.filter_map(|e| e.ok().map(|e| e.path())).filter(|p| p.is_dir()).collect()
}

/// Returns the text of a module with instructions named by their position, in an order that depends on the graph alone,
/// without parts that protobuf does not represent.
fn normalized(module: &Module) -> String {
    let mut module = module.clone();
    let attributes = module.attributes_mut();
    (attributes.replica_count, attributes.num_partitions) = (0, 0);
    let ids: Vec<_> = module.ids().collect();
    for id in ids {
        let computation = module.computation_mut(id);
        let (mut order, mut seen) = (Vec::new(), HashSet::new());
        let mut stack = vec![computation.root()];
        while let Some(instruction) = stack.pop() {
            if seen.insert(instruction) {
                order.push(instruction);
                stack.extend(computation[instruction].operands());
            }
        }
        for (place, &instruction) in order.iter().enumerate() {
            let name = match computation[instruction].op() {
                Op::Parameter(parameter) => format!("parameter-{}", parameter.number),
                _ => format!("instruction-{place}"),
            };
            computation.rename(instruction, &name);
        }
    }
    let text = module.to_string();
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    // XLA serialized -0 of the text as +0; the default comparison type of floats is not kept.
    lines.join("\n").replace("-0.0", "0").replace(", type=FLOAT", "")
}

#[test]
fn serialised_modules_give_what_text_gives() {
    let Some(corpus) = corpus() else { return };
    let (mut same, mut later) = (0, 0);
    for case in folders(&corpus).iter().flat_map(|suite| folders(suite)) {
        let (Ok(text), Ok(bytes)) =
            (std::fs::read_to_string(case.join("module.hlo")), std::fs::read(case.join("module.hlo.pb")))
        else {
            continue;
        };
        let name = case.display();
        let written = match text::parse_module(&text) {
            Ok(module) => module,
            Err(Error::Unimplemented(_)) => {
                later += 1;
                continue;
            }
            Err(error) => panic!("{name}: {error}"),
        };
        let serialised = parse_module(&bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(normalized(&serialised), normalized(&written), "{name}");
        VerifiedModule::new(serialised).unwrap_or_else(|e| panic!("{name}: {e}"));
        let own = serialize_module(&written).unwrap_or_else(|e| panic!("{name}: {e}"));
        let again = parse_module(&own).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(normalized(&again), normalized(&written), "{name}");
        assert_eq!(serialize_module(&again).unwrap(), own, "{name}: serialising is no fixed point");
        same += 1;
    }
    assert!(same > later, "{same} modules are the same, {later} have operations that are not here");
}
