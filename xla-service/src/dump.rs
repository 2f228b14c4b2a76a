//! Writes what a compilation does into a directory, for people.

use std::fs;
use std::path::PathBuf;

use xla_hlo::{Error, Module, Result};

use crate::executable::Executable;
use crate::options::CompileOptions;

/// Writes files named after the module, or nothing if no directory was asked for.
pub(crate) struct Dump {
    target: Option<(PathBuf, String)>,
}

impl Dump {
    /// Dumps of one compilation, as its options say.
    pub fn new(options: &CompileOptions, module: &Module) -> Dump {
        let stem = module.name().replace(|c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c), "_");
        Dump { target: options.dump_to.clone().map(|directory| (directory, stem)) }
    }

    /// Writes what the executable has to show.
    pub fn executable(&self, executable: &dyn Executable) -> Result<()> {
        if self.target.is_none() {
            return Ok(());
        }
        executable.dumps().into_iter().try_for_each(|(name, text)| self.write(&name, || text))
    }

    fn write(&self, name: &str, text: impl FnOnce() -> String) -> Result<()> {
        let Some((directory, stem)) = &self.target else { return Ok(()) };
        let path = directory.join(format!("{stem}.{name}"));
        fs::create_dir_all(directory).and_then(|()| fs::write(&path, text())).map_err(|e| {
            Error::failed_precondition(format!("cannot write the dump {}: {e}", path.display())).with_source(e)
        })
    }
}
