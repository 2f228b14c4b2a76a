//! Dumps the steps of a compilation into a directory.

use std::fs;
use std::path::PathBuf;

use xla_hlo::{Error, Module, Result};
use xla_passes::{PassEvent, PassObserver};

use crate::executable::Executable;
use crate::options::CompileOptions;

/// Writes files named after the module into [`CompileOptions::dump_to`], or nothing if no directory was asked for.
///
/// As a [`PassObserver`] it writes the module after each pass that changed it, as `NAME.012.stage.pass.hlo`.
#[derive(Debug)]
pub struct Dump {
    target: Option<(PathBuf, String)>,
}

impl Dump {
    /// Dumps of one compilation, as its options say.
    pub fn new(options: &CompileOptions, module: &Module) -> Dump {
        let stem = module.name().replace(|c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c), "_");
        Dump { target: options.dump_to.clone().map(|directory| (directory, stem)) }
    }

    /// Writes the module's text.
    pub fn module(&self, stage: &str, module: &Module) -> Result<()> {
        self.write(&format!("{stage}.hlo"), || module.to_string())
    }

    /// Writes the dumps of the executable.
    pub fn executable(&self, executable: &dyn Executable) -> Result<()> {
        if self.target.is_none() {
            return Ok(());
        }
        executable.dumps().into_iter().try_for_each(|(name, text)| self.write(&name, || text))
    }

    /// Writes a text as `MODULE.name`. [`Error::FailedPrecondition`] names the file that cannot be written.
    pub fn write(&self, name: &str, text: impl FnOnce() -> String) -> Result<()> {
        let Some((directory, stem)) = &self.target else { return Ok(()) };
        let path = directory.join(format!("{stem}.{name}"));
        fs::create_dir_all(directory).and_then(|()| fs::write(&path, text())).map_err(|e| {
            Error::failed_precondition(format!("cannot write the dump {}: {e}", path.display())).with_source(e)
        })
    }
}

impl PassObserver for Dump {
    fn after(&self, event: &PassEvent<'_>) -> Result<()> {
        if event.changed {
            self.module(&format!("{:03}.{}", event.index, event.path), event.module)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use xla_hlo::builder::ModuleBuilder;
    use xla_hlo::{ElementType, Shape};

    use super::*;
    use crate::interpreter;
    use crate::{Client, PlatformRegistry};

    #[test]
    fn modules_are_dumped_before_and_after_passes() {
        let directory = std::env::temp_dir().join(format!("xla-service-dump-{}", std::process::id()));
        let mut module = ModuleBuilder::new("a/b");
        let mut b = module.computation("main");
        let x = b.parameter(Shape::scalar(ElementType::F32)).unwrap();
        let main = b.finish(x);
        let module = module.finish(main).unwrap();
        let mut registry = PlatformRegistry::new();
        registry.register(interpreter::platform());
        let client = Client::new(&registry, "interpreter").unwrap();
        let options = CompileOptions { dump_to: Some(directory.clone()), ..CompileOptions::default() };
        client.compile(&module, &options).unwrap();
        for stage in ["before-passes", "after-passes"] {
            let dumped = fs::read_to_string(directory.join(format!("a_b.{stage}.hlo"))).unwrap();
            assert_eq!(dumped, module.to_string());
        }
        fs::remove_dir_all(&directory).unwrap();
        // A directory that cannot be made is an error that names it.
        let options = CompileOptions { dump_to: Some("/dev/null/no".into()), ..CompileOptions::default() };
        let error = client.compile(&module, &options).unwrap_err();
        assert!(error.message().contains("cannot write the dump /dev/null/no"), "{error}");
    }
}
