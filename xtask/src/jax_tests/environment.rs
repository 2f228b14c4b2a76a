//! Python environment of JAX's tests: variables, missing packages, devices.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::folder::TAG;
use super::options::{BASELINE, Options};
use crate::shell::{capture, root};

/// Folder of the Python files of this command.
const HELPERS: &str = "xtask/src/jax_tests";
/// The Python package that registers the plugin.
const PACKAGE: &str = "python/jax-xlars";

pub struct Environment {
    python: PathBuf,
    variables: Vec<(&'static str, String)>,
    /// JAX's name of the platform under test.
    platform: String,
    /// Library and versions under test; outcomes of other versions are discarded.
    pub subject: String,
}

impl Environment {
    /// Looks whether all is there, and copies the library, so that a build meanwhile does no harm.
    pub fn prepare(options: &Options) -> Result<Environment> {
        let helpers = root().join(HELPERS).display().to_string();
        let mut variables = vec![
            ("JAX_ENABLE_X64", u8::from(options.is_x64).to_string()),
            ("JAX_SKIP_SLOW_TESTS", "true".to_owned()),
            ("JAX_NUM_GENERATED_CASES", "10".to_owned()),
            ("TF_CPP_MIN_LOG_LEVEL", "1".to_owned()),
            ("HYPOTHESIS_STORAGE_DIRECTORY", options.output().join("hypothesis").display().to_string()),
            ("JAX_TESTS_TIMEOUT", options.timeout.as_secs().to_string()),
        ];
        let (jax_platforms, platform) = names(&options.platform);
        variables.push(("JAX_PLATFORMS", jax_platforms));
        let mut plugin = String::new();
        if options.is_baseline() {
            variables.push(("PYTHONPATH", helpers));
        } else {
            let (library, print) = copy_library(options)?;
            let path = env::join_paths([root().join(PACKAGE), root().join(HELPERS)])?;
            variables.extend([
                // The tests hold every platform to the expectations of the CPU, whatever its name.
                ("JAX_TEST_DUT", "cpu".to_owned()),
                ("XLARS_PLATFORM", "cpu".to_owned()),
                ("XLARS_LIBRARY", library.display().to_string()),
                ("PYTHONPATH", path.to_string_lossy().into_owned()),
            ]);
            plugin = format!("plugin {print:016x}, ");
        }
        let mut environment = Environment { python: options.python.clone(), variables, platform, subject: plugin };
        let versions = environment.probe()?;
        environment.subject += &versions;
        Ok(environment)
    }

    /// A command of this Python in this environment.
    pub fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.python);
        command.current_dir(folder);
        // Variables that the user has set for JAX must not influence the outcomes.
        for (name, _) in env::vars().filter(|(name, _)| name.starts_with("JAX_") || name == "XLA_FLAGS") {
            command.env_remove(name);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The versions of all that takes part, once JAX has started with the devices that are asked for.
    fn probe(&self) -> Result<String> {
        let mut command = self.command(&root());
        command.arg(root().join(HELPERS).join("jax_tests_environment.py"));
        let python = self.python.display();
        let printed = capture(command).with_context(|| {
            format!("{python} cannot say what it has: name a Python of version 3.11 or later with --python")
        })?;
        let last = printed.lines().last().unwrap_or_default();
        let found: Value = serde_json::from_str(last).with_context(|| format!("{python} printed '{last}'"))?;
        verdict(&found, &python.to_string(), &self.platform)
    }
}

/// Value of `JAX_PLATFORMS` for a platform of the plugin, and its client's name. `cpu` replaces XLA:CPU, others are
/// added to it.
fn names(platform: &str) -> (String, String) {
    match platform {
        BASELINE => ("cpu".to_owned(), "cpu".to_owned()),
        "cpu" => ("xlars".to_owned(), "cpu".to_owned()),
        other => (format!("xlars_{other},cpu"), format!("xlars_{other}")),
    }
}

/// Parses the versions that `jax_tests_environment.py` prints; an error if the environment is incomplete.
fn verdict(found: &Value, python: &str, platform: &str) -> Result<String> {
    let missing: Vec<&str> = found["missing"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if !missing.is_empty() {
        bail!("{python} lacks packages; this brings them: {python} -m pip install {}", missing.join(" "));
    }
    if let Some(failure) = found["failure"].as_str() {
        bail!("JAX does not start: {failure}");
    }
    let versions = found["versions"].as_object().context("jax_tests_environment.py printed no versions")?;
    let jax = versions.get("jax").and_then(Value::as_str).unwrap_or_default();
    if !TAG.contains(&format!("v{jax} ")) {
        bail!(
            "{python} has JAX {jax}, and the tests belong to {TAG}: {python} -m pip install jax==0.10.2 jaxlib==0.10.2"
        );
    }
    if found["under_test"] != "cpu" {
        bail!("the tests would run for the device {}; they are meant to run for cpu", found["under_test"]);
    }
    if found["platform"] != platform {
        bail!("the tests would run on the platform {}, not on {platform}", found["platform"]);
    }
    let text = |(name, version): (&String, &Value)| format!("{name} {}", version.as_str().unwrap_or_default());
    Ok(versions.iter().map(text).collect::<Vec<_>>().join(", "))
}

/// A copy of the library in the output folder, and a number that changes with it and with the Python package.
fn copy_library(options: &Options) -> Result<(PathBuf, u64)> {
    let library = &options.library;
    let Ok(bytes) = fs::read(library) else {
        bail!(
            "there is no plugin library {}: build it with `cargo build --release -p xla-pjrt-plugin`, or name one \
             with --library",
            library.display()
        );
    };
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    let package = root().join(PACKAGE).join("jax_plugins/xlars");
    let mut sources: Vec<PathBuf> =
        fs::read_dir(package)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "py"));
    sources.sort();
    for source in sources {
        fs::read(source)?.hash(&mut hasher);
    }
    let print = hasher.finish();
    let copy = options.output().join(format!("plugin-{print:016x}.so"));
    if !copy.exists() {
        fs::write(&copy, bytes).with_context(|| copy.display().to_string())?;
    }
    Ok((copy, print))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn other_platforms_stand_beside_the_cpu() {
        let of = |platform: &str| {
            let (platforms, name) = names(platform);
            format!("{platforms} {name}")
        };
        assert_eq!([of(BASELINE), of("cpu")], ["cpu cpu", "xlars cpu"]);
        assert_eq!(of("template"), "xlars_template,cpu xlars_template");
    }

    #[test]
    fn what_is_missing_is_said_with_its_remedy() {
        let error = |found: Value| verdict(&found, "python3", "cpu").unwrap_err().to_string();
        let missing = error(json!({"missing": ["'pytest<9'", "scipy"]}));
        assert_eq!(missing, "python3 lacks packages; this brings them: python3 -m pip install 'pytest<9' scipy");
        let versions = json!({"jax": "0.10.2", "python": "3.11"});
        let failure = error(json!({"versions": versions, "failure": "RuntimeError: no xlars"}));
        assert_eq!(failure, "JAX does not start: RuntimeError: no xlars");
        assert!(error(json!({"versions": {"jax": "0.10.1"}, "under_test": "cpu"})).contains("has JAX 0.10.1"));
        assert!(error(json!({"versions": versions, "under_test": "gpu"})).contains("\"gpu\""));
        let found = json!({"versions": versions, "under_test": "cpu", "platform": "cpu"});
        assert_eq!(verdict(&found, "python3", "cpu").unwrap(), "jax 0.10.2, python 3.11");
        let other = verdict(&found, "python3", "xlars_template").unwrap_err().to_string();
        assert!(other.ends_with("\"cpu\", not on xlars_template"), "{other}");
    }
}
