//! Shardings of whole programs, compared with jaxlib's after its propagation.

use std::fs;
use std::path::{Path, PathBuf};

use xla_hlo::sdy::{Meshes, TensorSharding, meshes, tiles};
use xla_hlo::text::parse_module;
use xla_hlo::{CompId, InstrId, LeafSharding, Module, Sharding, ShardingKind, VerifiedModule};
use xla_spmd::{Shardings, propagate};

/// Sharding as a comparable value: tiles of devices; `None` if all devices have the whole array.
type Tiles = Option<(Vec<i64>, Vec<i64>)>;

fn comparable(leaf: &LeafSharding) -> Tiles {
    match &leaf.kind {
        ShardingKind::Tiled(tiled) => {
            let mut devices = tiled.listed_devices().expect("devices");
            if tiled.replicate_last {
                let copies = *tiled.tile_dims.last().expect("a dimension") as usize;
                devices.chunks_mut(copies).for_each(<[i64]>::sort_unstable);
            }
            Some((tiled.tile_dims.clone(), devices))
        }
        // Values of a manual region are the parts themselves.
        ShardingKind::Replicated | ShardingKind::Manual => None,
        other => panic!("{other:?}"),
    }
}

/// Reads the text of a sharding, or of a tuple's; `-` is none.
fn expected(text: &str) -> Vec<Tiles> {
    if text == "-" {
        return Vec::new();
    }
    let module = format!("HloModule m\nENTRY e {{ ROOT p = f32[] parameter(0), sharding={text} }}");
    let module = parse_module(&module).unwrap_or_else(|error| panic!("{text}: {error}"));
    let entry = module.entry();
    match &entry[entry.root()].annotations().and_then(|annotations| annotations.sharding.as_ref()) {
        Some(Sharding::Leaf(leaf)) => vec![comparable(leaf)],
        Some(Sharding::Tuple(leaves)) => leaves.iter().map(comparable).collect(),
        None => panic!("{text}"),
    }
}

fn found(sharding: Option<&TensorSharding>, meshes: &Meshes) -> Tiles {
    let sharding = sharding?;
    let mesh = meshes.get(&sharding.mesh).expect("a mesh");
    comparable(&tiles(sharding, mesh).expect("tiles"))
}

struct Program {
    name: String,
    module: Module,
    lines: Vec<(String, String)>,
}

fn programs() -> Vec<Program> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/propagation/oracle");
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("a file").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "hlo"));
    files.sort();
    files.iter().map(|file| program(file)).collect()
}

fn program(file: &Path) -> Program {
    let name = file.file_stem().expect("a name").to_string_lossy().into_owned();
    let text = fs::read_to_string(file).expect("a text");
    let (module, lines): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| !line.starts_with("// "));
    let module = parse_module(&module.join("\n")).unwrap_or_else(|error| panic!("{name}: {error}"));
    let module = VerifiedModule::new(module).unwrap_or_else(|error| panic!("{name}: {error}")).into_inner();
    let line = |line: &str| {
        let (value, sharding) = line[3..].split_once(' ').unwrap_or_else(|| panic!("{name}: {line}"));
        (value.to_string(), sharding.to_string())
    };
    Program { lines: lines.into_iter().map(line).collect(), name, module }
}

/// Finds the instruction whose metadata has this name.
fn find(module: &Module, name: &str) -> Option<(CompId, InstrId)> {
    let has_name = |computation: CompId, id: InstrId| {
        module[computation][id].annotations().is_some_and(|a| a.metadata.op_name == name)
    };
    module.ids().find_map(|c| module[c].ids().find(|&id| has_name(c, id)).map(|id| (c, id)))
}

/// Returns the shardings of the arrays of a value of the program.
fn shardings_of(program: &Program, shardings: &Shardings, value: &str) -> Vec<Tiles> {
    let module = &program.module;
    let meshes = meshes(module).expect("meshes");
    let list = if value == "root" {
        shardings.results()
    } else if let Some(number) = value.strip_prefix("param") {
        let arguments = shardings.arguments(module);
        vec![arguments[number.parse::<usize>().expect("a number")].clone()]
    } else {
        let (computation, id) = find(module, value).unwrap_or_else(|| panic!("{}: no {value}", program.name));
        shardings.of(computation, id)
    };
    list.iter().map(|sharding| found(sharding.as_ref(), &meshes)).collect()
}

#[test]
fn shardings_are_jaxlibs() {
    let (mut count, mut wrong) = (0, Vec::new());
    for program in programs() {
        let shardings = propagate(&program.module).unwrap_or_else(|error| panic!("{}: {error}", program.name));
        for (value, text) in &program.lines {
            let (expected, found) = (expected(text), shardings_of(&program, &shardings, value));
            let is_equal = match expected.is_empty() {
                true => found.iter().all(Option::is_none),
                false => expected == found,
            };
            count += 1;
            if !is_equal {
                wrong.push(format!("{}: {value} is {found:?}, jaxlib has {text}", program.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {count} differ:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count > 1500, "only {count} values");
}
