//! Programs of the manifest: files of the repository, and families of programs.

use std::collections::BTreeMap;
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// Folders of programs, relative to the root of the repository.
const FOLDERS: [&str; 11] = [
    "backend-cpu/tests/agrees_with_interpreter/programs",
    "backend-gpu-nvptx/tests/agrees",
    "backend-gpu-nvptx/tests/agrees/programs",
    "backend-gpu-nvptx/tests/ptx/programs",
    IDIOMS,
    "tests/conformance/programs",
    "tests/conformance/programs/kernels",
    "tests/regressions",
    "xla-llvm/tests/data/kinds",
    "xla-llvm/tests/data/manifest",
    "xla-llvm/tests/data/strategies",
];

/// Folder of the conformance kit's templates.
const IDIOMS: &str = "tests/conformance/idioms";

/// Folder of this crate's families.
const FAMILIES: &str = "xla-llvm/tests/data/families";

/// Maximum number of bytes of a program, so that the test stays fast.
const MOST_BYTES: usize = 8 << 10;

/// Rows and columns of an idiom that is listed by itself: several vectors and a part of one.
const SIZES: [usize; 2] = [37, 201];

/// Further rows and columns of idioms: one row, a multiple of all vectors, and the size of classifiers.
const MORE_SIZES: [[usize; 2]; 3] = [[1, 100], [64, 256], [3, 1000]];

/// Returns the programs whose kernels are listed one by one, by folder and name.
pub fn programs() -> BTreeMap<String, String> {
    let is_idiom = |name: &str| name.starts_with(IDIOMS);
    let text = |name: &str, text: String| if is_idiom(name) { filled_in(name, &text, SIZES) } else { text };
    let files = FOLDERS.iter().flat_map(|folder| files(folder));
    files.map(|(name, file)| (name.clone(), text(&name, file))).collect()
}

/// Returns the families: programs of one template that differ in types and sizes, by template and by these values.
pub fn families() -> BTreeMap<String, Vec<(String, String)>> {
    let idioms = files(IDIOMS).into_iter().map(|(name, text)| {
        let sizes = MORE_SIZES.iter().map(|&[rows, cols]| (format!("{rows} x {cols}"), [rows, cols]));
        let programs = sizes.map(|(values, sizes)| (values, filled_in(&name, &text, sizes))).collect();
        (name, programs)
    });
    idioms.chain(files(FAMILIES).into_iter().map(|(name, text)| (name, members(&text)))).collect()
}

/// Returns the programs of a folder with their names.
fn files(folder: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let entries = std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let programs = entries.filter(|path| path.extension().is_some_and(|extension| extension == "hlo"));
    let name = |path: &PathBuf| path.strip_prefix(&root).unwrap().with_extension("").display().to_string();
    let files = programs.map(|path| (name(&path), read_to_string(path).unwrap()));
    files.filter(|(_, text)| text.len() <= MOST_BYTES).collect()
}

/// Replaces the parameters of an idiom's template, as the conformance kit does.
fn filled_in(name: &str, text: &str, [rows, cols]: [usize; 2]) -> String {
    let ty = match Path::new(name).extension().and_then(|extension| extension.to_str()) {
        Some("narrow") => "bf16",
        Some("integer") => "s32",
        _ => "f32",
    };
    let sizes = [
        ("@rows", rows),
        ("@cols", cols),
        ("@last", cols - 1),
        ("@next", cols + 1),
        ("@after", cols + 2),
        ("@double", 2 * cols),
        ("@half", cols.div_ceil(2)),
    ];
    let text = text.replace("@type", ty);
    sizes.iter().fold(text, |text, (token, size)| text.replace(token, &size.to_string()))
}

/// Returns the programs of a template: one for each combination of the choices that its first lines list. Such a line
/// names tokens and their values: `// @type: f32 bf16` has two choices of one token, `// @m @n: 1 2; 3 4` two choices
/// of two. Values may contain tokens of earlier lines; `|` is a space, and `-` is nothing.
fn members(template: &str) -> Vec<(String, String)> {
    let header: Vec<&str> = template.lines().map_while(|line| line.strip_prefix("// ")).collect();
    let text: String = template.lines().skip(header.len()).flat_map(|line| [line, "\n"]).collect();
    let first = vec![(String::new(), text)];
    header.iter().rev().fold(first, |programs, line| {
        let (tokens, choices) = line.split_once(": ").expect("a header line names tokens and their values");
        let tokens: Vec<&str> = tokens.split_whitespace().collect();
        let separator = if tokens.len() == 1 { ' ' } else { ';' };
        let choose = |(values, text): &(String, String), choice: &str| {
            let text = tokens.iter().zip(choice.split_whitespace()).fold(text.clone(), |text, (token, value)| {
                let value = if value == "-" { String::new() } else { value.replace('|', " ") };
                text.replace(token, &value)
            });
            (format!(" {}{values}", choice.trim()), text)
        };
        let all =
            programs.iter().flat_map(|program| choices.split(separator).map(move |choice| choose(program, choice)));
        all.collect()
    })
}
