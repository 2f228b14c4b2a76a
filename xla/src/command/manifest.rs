//! `manifest.json` next to a program: the generators of its inputs.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use xla::hlo::{ArrayShape, ElementType, Error, Result, ResultExt};

use super::generate::Generator;
use super::signature;

/// Name of the manifest, in the directory of the program.
const FILE: &str = "manifest.json";
/// Value of the field `generator` that identifies a manifest.
const GENERATOR: &str = "splitmix64-v1";
/// Limit on the size of a manifest in bytes.
const LIMIT: u64 = 64 << 20;

/// Entry of a program in a manifest.
#[derive(Debug, Deserialize)]
pub struct Program {
    file: String,
    #[serde(default)]
    mlirbc: Option<String>,
    params: Vec<Parameter>,
}

#[derive(Debug, Deserialize)]
struct Parameter {
    name: String,
    shape: Vec<usize>,
    dtype: String,
    #[serde(rename = "gen")]
    generator: Generator,
}

impl Program {
    /// Returns the entry of the program in that file. `None` if there is no manifest next to it, or the manifest does
    /// not list it.
    ///
    /// A `manifest.json` for another purpose is ignored; a malformed one for programs is an error.
    pub fn beside(program: &Path) -> Result<Option<Program>> {
        let path = program.with_file_name(FILE);
        let Ok(file) = File::open(&path) else { return Ok(None) };
        let mut text = Vec::new();
        // A file that cannot be read or is not a JSON object is not a manifest.
        let read = file.take(LIMIT).read_to_end(&mut text).is_ok();
        let Some(mut manifest) = serde_json::from_slice::<Value>(&text).ok().filter(|_| read) else { return Ok(None) };
        if manifest["generator"] != GENERATOR {
            return Ok(None);
        }
        let programs = serde_json::from_value::<Vec<Program>>(manifest["programs"].take())
            .map_err(|e| Error::invalid_argument(format!("{}: {e}", path.display())).with_source(e))?;
        Ok(programs.into_iter().find(|entry| entry.is_of(program)))
    }

    fn is_of(&self, program: &Path) -> bool {
        let file = program.file_name().and_then(|name| name.to_str());
        let is_listed = |name: &str| name == self.file || Some(name) == self.mlirbc.as_deref();
        file.is_some_and(|name| is_listed(name.strip_suffix(".pb").unwrap_or(name)))
    }

    /// Returns the generators of the program's arguments, which must have the shapes in the manifest.
    pub fn generators(&self, arguments: &[&ArrayShape]) -> Result<Vec<Generator>> {
        if self.params.len() != arguments.len() {
            let (listed, taken) = (self.params.len(), arguments.len());
            return Err(Error::invalid_argument(format!("{FILE} lists {listed} inputs, but the module takes {taken}")));
        }
        let pairs = self.params.iter().zip(arguments).enumerate();
        pairs.map(|(i, (parameter, shape))| parameter.generator(shape).context(|| format!("argument {i}"))).collect()
    }
}

impl Parameter {
    fn generator(&self, shape: &ArrayShape) -> Result<Generator> {
        let ty = ElementType::from_name(&self.dtype);
        if ty != Some(shape.element_type()) || self.shape != shape.dims() {
            let dims: Vec<String> = self.shape.iter().map(usize::to_string).collect();
            return Err(Error::invalid_argument(format!(
                "{FILE} declares {} as {}[{}], but the module takes {}",
                self.name,
                self.dtype,
                dims.join(","),
                signature::plain(shape)
            )));
        }
        Ok(self.generator.clone())
    }
}
