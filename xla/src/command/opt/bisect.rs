//! `xla opt --bisect`: finds the pass, and the rewrite in it, after which a command fails.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use xla::hlo::{Error, Module, Result};
use xla::passes::PassOptions;
use xla::passes::bisect::{Bisected, Culprit, Verdict, bisect};
use xla::service::HloPasses;

use super::super::failure::{Failure, Outcome};
use super::super::progress::Progress;
use super::{Args, diff};

/// Placeholder for the module's file in the command.
const MODULE: &str = "{module}";

/// Exit code of a command that cannot judge the module, as for `git bisect run`.
const CANNOT_TELL: i32 = 125;

/// Bisects, and returns a report of the culprit.
pub fn run(
    command: &str,
    args: &Args,
    platform: &str,
    module: &Module,
    passes: &HloPasses,
    options: &PassOptions,
) -> Outcome<String> {
    if !command.contains(MODULE) {
        return Err(Failure::usage(format!(
            "the command {command:?} has no {MODULE}, so that it cannot see the module"
        )));
    }
    let folder = tempfile::tempdir().map_err(|e| {
        Error::failed_precondition(format!("cannot create a temporary folder for modules: {e}")).with_source(e)
    })?;
    let file = folder.path().join("module.hlo");
    let mut progress: Option<Progress> = None;
    let mut tried = 0;
    let found = bisect(&passes.pipeline, module, &passes.profile, options, &mut |probe| {
        let progress = progress.get_or_insert_with(|| Progress::new("modules tried", 2 * probe.left + 4));
        let verdict = judge(command, &file, probe.module);
        tried += 1;
        progress.advance();
        verdict
    });
    drop(progress);
    match found? {
        Bisected::AtStart => Err(Failure::usage("the command fails on the program as it is, before any pass")),
        Bisected::Never => Err(Failure::usage(
            "the command succeeds after all passes, so there is nothing to look for (is it the backend?)",
        )),
        Bisected::Broken(culprit) => Ok(report(&culprit, args, platform, tried)),
    }
}

/// Runs the command on the module.
fn judge(command: &str, file: &Path, module: &Module) -> Result<Verdict> {
    std::fs::write(file, module.to_string())
        .map_err(|e| Error::failed_precondition(format!("cannot write {}: {e}", file.display())).with_source(e))?;
    let line = command.replace(MODULE, &quoted(&file.display().to_string()));
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = shell.status();
    let status = status.map_err(|e| Error::failed_precondition(format!("cannot start a shell: {e}")).with_source(e))?;
    match status.code() {
        Some(0) => Ok(Verdict::Good),
        Some(CANNOT_TELL) => Ok(Verdict::Skip),
        Some(code @ (126 | 127)) => {
            Err(Error::invalid_argument(format!("the shell cannot run {line:?} (exit code {code})")))
        }
        // A crash by a signal has no exit code.
        Some(_) | None => Ok(Verdict::Bad),
    }
}

/// Quotes a word for the shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn report(culprit: &Culprit, args: &Args, platform: &str, tried: usize) -> String {
    let mut text = String::new();
    let Culprit { path, others, rule, max_passes, max_rewrites, .. } = culprit;
    let what = match (rule, max_rewrites) {
        (Some(rule), Some(number)) => format!(", by rewrite {number}: {rule}"),
        (Some(_) | None, _) => String::new(),
    };
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{path} breaks the program (pass {max_passes}{what})");
    if !others.is_empty() {
        let _ = writeln!(text, "or one of these, which the command cannot judge: {}", others.join(", "));
    }
    if let Some(error) = &culprit.error {
        let _ = writeln!(text, "the pass fails: {error}");
    }
    if let Some(after) = &culprit.after {
        let diff = diff::unified(("good", "bad"), &diff::text(&culprit.before), &diff::text(after));
        let _ = writeln!(text, "\n{diff}");
    }
    let again = command_line(culprit, args, platform);
    let good = if max_rewrites.is_some() { "; with one rewrite less it is good" } else { "" };
    let _ = writeln!(text, "To see it again ({tried} modules were tried{good}):\n  {again}");
    text
}

/// Returns the command line that reproduces the bad module.
fn command_line(culprit: &Culprit, args: &Args, platform: &str) -> String {
    let module = args.module.as_deref().map(|path| path.display().to_string()).unwrap_or_default();
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    let module = if module.chars().all(plain) { module } else { quoted(&module) };
    let mut line = format!("xla opt {module} --platform {platform}");
    if let Some(passes) = &args.passes {
        let _ = write!(line, " --passes {}", quoted(passes));
    }
    if !args.without.is_empty() {
        let _ = write!(line, " --without {}", args.without.join(","));
    }
    if !args.lacks.is_empty() {
        let _ = write!(line, " --lacks {}", args.lacks.join(","));
    }
    let _ = write!(line, " --max-passes {}", culprit.max_passes);
    if let Some(rewrites) = culprit.max_rewrites {
        let _ = write!(line, " --max-rewrites {rewrites}");
    }
    line
}
