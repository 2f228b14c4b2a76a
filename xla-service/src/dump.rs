//! Dumps of the compilation steps to a directory.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use xla_hlo::{Error, Module, Result};
use xla_passes::{PassEvent, PassObserver};

use crate::executable::Executable;
use crate::file_name::file_name;
use crate::options::CompileOptions;
use crate::output_file::OutputFile;

/// Writer of files named after the module ([`file_name`]) in [`CompileOptions::dump_to`]. It writes nothing if no
/// directory is set.
///
/// As a [`PassObserver`], it writes the module after each pass that changed it, as `NAME.012.stage.pass.hlo`.
#[derive(Debug)]
pub struct Dump {
    target: Option<(PathBuf, String)>,
}

impl Dump {
    /// Creates the dump of one compilation, as configured by its options.
    pub fn new(options: &CompileOptions, module: &Module) -> Dump {
        Dump { target: options.dump_to.clone().map(|directory| (directory, file_name(module.name()))) }
    }

    /// Writes the text of a module.
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

    /// Writes a text to `MODULE.name`, shortening a long name. [`Error::FailedPrecondition`] names a file that cannot
    /// be written.
    pub fn write(&self, name: &str, text: impl FnOnce() -> String) -> Result<()> {
        let Some((directory, stem)) = &self.target else { return Ok(()) };
        let name = match name.rsplit_once('.') {
            Some((name, extension)) => format!("{}.{extension}", file_name(name)),
            None => file_name(name),
        };
        let path = directory.join(format!("{stem}.{name}"));
        fs::create_dir_all(directory).map_err(|error| {
            let message = format!("cannot write {}: {error}", path.display());
            Error::failed_precondition(message).with_source(error)
        })?;
        let mut file = OutputFile::create(&path)?;
        file.write_all(text().as_bytes()).map_err(|error| file.error(error))?;
        // Not synced to disk: a compilation dumps hundreds of files, and syncing would take longer than the
        // compilation.
        file.finish_without_sync()
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
        // A directory that cannot be created is an error that names it.
        let options = CompileOptions { dump_to: Some("/dev/null/no".into()), ..CompileOptions::default() };
        let error = client.compile(&module, &options).unwrap_err();
        assert!(error.message().contains("cannot write /dev/null/no"), "{error}");
    }

    #[test]
    fn long_names_of_modules_are_shortened_and_stay_different() {
        let folder = tempfile::tempdir().unwrap();
        let options = CompileOptions { dump_to: Some(folder.path().to_path_buf()), ..CompileOptions::default() };
        for end in ["1", "2"] {
            let mut module = ModuleBuilder::new("long_".repeat(100) + end);
            let mut b = module.computation("main");
            let x = b.parameter(Shape::scalar(ElementType::F32)).unwrap();
            let main = b.finish(x);
            let module = module.finish(main).unwrap();
            let dump = Dump::new(&options, &module);
            dump.module("before-passes", &module).unwrap();
            dump.write(&("kernel_".repeat(100) + ".ll"), String::new).unwrap();
        }
        let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let names: Vec<_> = names.collect();
        assert_eq!(names.len(), 4, "{names:?}");
        for (extension, count) in [(".before-passes.hlo", 2), (".ll", 2)] {
            assert_eq!(names.iter().filter(|name| name.ends_with(extension)).count(), count, "{names:?}");
        }
    }
}
