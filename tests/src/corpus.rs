//! Reader of the corpus archives in `tests/corpus/suites`: programs with their inputs and expected outputs.
//!
//! ```
//! let cases = xla_tests::corpus::suite("dot").unwrap();
//! let case = cases.iter().find(|case| case.name == "matmul_f64").unwrap();
//! assert!(case.module.starts_with("HloModule"));
//! ```

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::PathBuf;

use serde::Deserialize;
use xla::compare::Tolerance;
use xla::npz;
use xla::{ArrayShape, ElementType, Literal};

use crate::data;
use crate::generate::epsilon;

/// Roundings by which a result may differ from an expected one that was computed in a wider type.
const ROUNDINGS: f64 = 8.0;

/// Program of the corpus, fully in memory.
pub struct Case {
    /// Suite of the case, such as `dot`.
    pub suite: String,
    /// Name, unique in the suite.
    pub name: String,
    /// HLO text.
    pub module: String,
    /// `.npz` archive with `arg0`, `arg1`, ... (`arg0.dev0`, ... for several devices).
    pub inputs: Vec<u8>,
    /// `.npz` archive with `out0`, `out1`, ... (`out0.dev0`, ... for several devices): the flattened result.
    pub expected: Vec<u8>,
    /// Content of `case.json`.
    pub info: Info,
}

/// Properties of a case; see `tests/corpus/README.md` for the rules of comparison.
#[derive(Clone, Debug, Deserialize)]
pub struct Info {
    /// Element types that occur in the module, such as `f32`.
    pub dtypes: Vec<String>,
    /// HLO opcodes that occur in the module, such as `dot`.
    pub opcodes: Vec<String>,
    /// Parameters of the entry computation in order (on one device).
    pub params: Vec<Array>,
    /// Flattened outputs in order (on one device).
    pub outputs: Vec<Array>,
    /// Relative tolerance of floating-point and complex outputs; integers and `pred` are compared exactly.
    pub rtol: f64,
    /// Absolute tolerance of floating-point and complex outputs.
    pub atol: f64,
    /// Whether the sign of a zero is compared.
    #[serde(default)]
    pub signed_zero: bool,
    /// Kind of a multi-device case: `replicas` or `partitions` (each device's own program), otherwise the notation of
    /// the shardings of global values. Empty for one device.
    #[serde(default)]
    pub form: String,
    /// Number of replicas.
    #[serde(default = "one")]
    pub num_replicas: u32,
    /// Number of partitions.
    #[serde(default = "one")]
    pub num_partitions: u32,
}

/// Shape of a parameter or an output.
#[derive(Clone, Debug, Deserialize)]
pub struct Array {
    /// Shape in HLO's notation without a layout: `f32[8,16]`.
    pub shape: String,
}

fn one() -> u32 {
    1
}

impl Case {
    /// Returns the first opcode of this case that `tests/corpus/not-yet.txt` lists, if any; such a case may fail.
    pub fn waits_for(&self) -> Option<&str> {
        self.info.opcodes.iter().map(String::as_str).find(|opcode| not_yet().any(|listed| listed == *opcode))
    }
}

/// Returns the opcodes that the compiler does not support yet, from `tests/corpus/not-yet.txt`.
pub fn not_yet() -> impl Iterator<Item = &'static str> {
    let lines = include_str!("../corpus/not-yet.txt").lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Returns the names of all suites, sorted. Benchmark programs are not a suite: see [`bench_program`].
pub fn suites() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder())? {
        let path = entry?.path();
        if let (Some(name), true) = (path.file_stem(), path.extension().is_some_and(|e| e == "zip"))
            && !name.to_string_lossy().starts_with("bench")
        {
            names.push(name.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Reads all cases of a suite, sorted by name.
pub fn suite(name: &str) -> Result<Vec<Case>> {
    let mut folders: BTreeMap<String, BTreeMap<String, Vec<u8>>> = BTreeMap::new();
    for (path, data) in members(name)? {
        let (case, file) = path.split_once('/').ok_or_else(|| broken(name, &path, "is not CASE/FILE"))?;
        folders.entry(case.to_owned()).or_default().insert(file.to_owned(), data);
    }
    folders.into_iter().map(|(case, files)| read_case(name, case, files)).collect()
}

/// Returns the names of a suite's cases, sorted.
pub fn names(suite: &str) -> Result<Vec<String>> {
    let archive = archive(suite)?;
    let mut names = std::collections::BTreeSet::new();
    for path in archive.file_names() {
        let path = path.map_err(Error::other)?;
        let (case, _) = path.split_once('/').ok_or_else(|| broken(suite, &path, "is not CASE/FILE"))?;
        names.insert(case.to_owned());
    }
    Ok(names.into_iter().collect())
}

/// Reads one case of a suite.
pub fn case(suite: &str, name: &str) -> Result<Case> {
    let mut archive = archive(suite)?;
    let mut files = BTreeMap::new();
    for file in ["module.hlo", "case.json", "inputs.npz", "expected.npz"] {
        let mut member = archive.by_name(&format!("{name}/{file}")).map_err(Error::other)?;
        let mut data = Vec::new();
        member.read_to_end(&mut data)?;
        files.insert(file.to_owned(), data);
    }
    read_case(suite, name.to_owned(), files)
}

/// Returns the HLO text of a benchmark program, such as `encoder_block`.
pub fn bench_program(name: &str) -> Result<String> {
    let wanted = format!("{name}.hlo");
    let mut found = members("bench")?.into_iter().filter(|(path, _)| *path == wanted);
    let (path, data) = found.next().ok_or_else(|| broken("bench", &wanted, "is missing"))?;
    text("bench", &path, data)
}

/// Reads an expected result, and the tolerance of its comparison.
///
/// Expected values may be stored in a wider type than the result's, such as `f64`; they are rounded then. The tolerance
/// of such a case is that of `f64`, so a few roundings of the result's own type are allowed in addition.
pub(crate) fn stored(
    archive: &mut npz::Archive,
    name: &str,
    shape: &ArrayShape,
    tolerance: Tolerance,
) -> xla::Result<(Literal, Tolerance)> {
    let own = archive.read(name, shape);
    let ty = shape.element_type();
    if own.is_ok() || !ty.is_float() || ty == ElementType::F64 {
        return Ok((own?, tolerance));
    }
    let Ok(wide) = archive.read(name, &ArrayShape::new(ElementType::F64, shape.dims())) else {
        return Ok((own?, tolerance));
    };
    let rounded = Literal::from_fn(&shape.clone().with_layout(None), |i| wide.get(i))?;
    let roundings = ROUNDINGS * epsilon(ty);
    let (rtol, atol) = (tolerance.rtol.max(roundings), tolerance.atol.max(roundings));
    Ok((rounded, Tolerance { rtol, atol, ..tolerance }))
}

fn read_case(suite: &str, name: String, mut files: BTreeMap<String, Vec<u8>>) -> Result<Case> {
    let mut take = |file: &str| {
        let path = format!("{name}/{file}");
        files.remove(file).map(|data| (path.clone(), data)).ok_or_else(|| broken(suite, &path, "is missing"))
    };
    let (path, module) = take("module.hlo")?;
    let module = text(suite, &path, module)?;
    let (path, json) = take("case.json")?;
    let info = serde_json::from_slice(&json).map_err(|error| broken(suite, &path, &error.to_string()))?;
    let (inputs, expected) = (take("inputs.npz")?.1, take("expected.npz")?.1);
    Ok(Case { suite: suite.to_owned(), name, module, inputs, expected, info })
}

type Archive = zip::ZipArchive<std::io::BufReader<std::fs::File>>;

fn archive(name: &str) -> Result<Archive> {
    let path = folder().join(format!("{name}.zip"));
    let file = std::fs::File::open(&path);
    let file = file.map_err(|error| Error::new(error.kind(), format!("{}: {error}", path.display())))?;
    zip::ZipArchive::new(std::io::BufReader::new(file)).map_err(Error::other)
}

/// Reads the files of an archive, decompressed.
fn members(name: &str) -> Result<Vec<(String, Vec<u8>)>> {
    let mut archive = archive(name)?;
    let mut files = Vec::with_capacity(archive.len());
    for index in 0..archive.len() {
        let mut member = archive.by_index(index).map_err(Error::other)?;
        let path = member.name().map_err(Error::other)?.into_owned();
        let mut data = Vec::new();
        member.read_to_end(&mut data)?;
        files.push((path, data));
    }
    Ok(files)
}

fn text(suite: &str, path: &str, data: Vec<u8>) -> Result<String> {
    String::from_utf8(data).map_err(|error| broken(suite, path, &error.to_string()))
}

fn broken(suite: &str, path: &str, what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, format!("tests/corpus/suites/{suite}.zip: {path}: {what}"))
}

fn folder() -> PathBuf {
    data::folder().join("corpus/suites")
}
