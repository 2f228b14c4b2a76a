//! Running other programs from the root of the repository, each echoed before it runs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The root of the repository: of the checkout that cargo runs, or, for the program by itself, of the one around the
/// current folder.
pub fn root() -> PathBuf {
    let parent = |manifest: &OsStr| Path::new(manifest).parent().map(Path::to_path_buf).unwrap_or_default();
    if let Some(manifest) = std::env::var_os("CARGO_MANIFEST_DIR") {
        return parent(&manifest);
    }
    let current = std::env::current_dir().unwrap_or_default();
    let around = current.ancestors().find(|folder| folder.join("xtask/Cargo.toml").is_file());
    around.map_or_else(|| parent(env!("CARGO_MANIFEST_DIR").as_ref()), Path::to_path_buf)
}

/// A program with arguments that will run in the root of the repository.
pub fn program<S: AsRef<OsStr>>(name: impl AsRef<OsStr>, args: &[S]) -> Command {
    let mut command = Command::new(name);
    command.args(args).current_dir(root());
    command
}

/// Cargo, the same one that runs this program.
pub fn cargo(args: &[&str]) -> Command {
    program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), args)
}

/// Echoes a command, runs it with the terminal's input and output, and fails when it fails.
pub fn run(mut command: Command) -> Result<()> {
    let line = line(&command);
    println!("\n$ {line}");
    let status = command.status().with_context(|| format!("cannot run `{line}`"))?;
    if !status.success() {
        bail!("`{line}` failed ({status})");
    }
    Ok(())
}

/// Standard output of a command; `None` when it cannot run or fails.
pub fn output(mut command: Command) -> Option<String> {
    let done = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    done.status.success().then(|| String::from_utf8_lossy(&done.stdout).trim().to_owned())
}

/// Standard output of a command; when it fails, the first line of its standard error.
pub fn capture(mut command: Command) -> Result<String> {
    let done = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run `{}`", line(&command)))?;
    if !done.status.success() {
        let said = String::from_utf8_lossy(&done.stderr);
        bail!("{}", said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it failed and said nothing"));
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// Whether a program of that name answers to `--version`.
pub fn has(name: &str) -> bool {
    output(program(name, &["--version"])).is_some()
}

/// `cargo metadata` of the workspace.
pub fn metadata() -> Result<Value> {
    let text = output(cargo(&["metadata", "--no-deps", "--format-version", "1"])).context("`cargo metadata` failed")?;
    Ok(serde_json::from_str(&text)?)
}

/// A command as a person would type it from the root of the repository.
pub fn line(command: &Command) -> String {
    let root = format!("{}/", root().display());
    let mut words = vec![Path::new(command.get_program()).display().to_string().replace(&root, "")];
    for arg in command.get_args() {
        let word = arg.to_string_lossy().replace(&root, "");
        words.push(if word.is_empty() || word.contains([' ', '{', '\'']) { format!("'{word}'") } else { word });
    }
    if let Some(name) = Path::new(&words[0]).file_name().filter(|name| *name == "cargo") {
        words[0] = name.to_string_lossy().into_owned();
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_echoed_as_typed() {
        let command = program(root().join("target/release/xla"), &["bench", "a b", "--json"]);
        assert_eq!(line(&command), "target/release/xla bench 'a b' --json");
        assert_eq!(line(&program("/somewhere/bin/cargo", &["fmt"])), "cargo fmt");
    }

    #[test]
    fn a_failing_program_is_named() {
        let error = run(program("false", &["x y"])).unwrap_err().to_string();
        assert!(error.starts_with("`false 'x y'` failed"), "{error}");
        assert!(!has("no-such-program-anywhere"));
    }
}
