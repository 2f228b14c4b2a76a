//! `cargo xtask new-backend`, `remove-backend`, `vendor-todo`: a backend of one's own, from the one that is meant to be
//! copied.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use pico_args::Arguments;

use crate::shell::{cargo, program, root, run as run_program};
use crate::{downstream, finish};
use new_backend::name::{Name, ORIGINAL};
use new_backend::{copy, example, manifest, mark, register};

pub const NEW_HELP: &str = "\
  cargo xtask new-backend NAME [--out DIR] [--no-test]

Copies backend-template under another name. NAME is lower case letters and digits: it becomes the platform's name, the
Cargo feature and the crate backend-NAME.

Without --out the crate is added to this workspace, registered in the facade `xla` behind the feature NAME, built, and
put through the conformance kit. Then `cargo xtask test-backend NAME` and `xla run --platform NAME` (built with
`--features NAME`) work. `cargo xtask remove-backend NAME` takes it all back.

  --out DIR        make a repository of its own there instead, with its own registry; DIR must be empty or new
  --with-example   also do what the book does in its chapter on one operation: convolution on the device
  --quick          the conformance kit in quick sizes; with --out, the other tests alone
  --no-test        only write and check it, do not run the conformance kit
";

pub const REMOVE_HELP: &str = "\
  cargo xtask remove-backend NAME

Takes back what `cargo xtask new-backend NAME` did: the folder backend-NAME and the lines that register it.
It stops when something in that folder is not committed, so that nothing is lost.

  --force          remove it all the same
";

pub const TODO_HELP: &str = "\
  cargo xtask vendor-todo NAME [--path DIR]

Lists the places of crate backend-NAME that a vendor must change, marked `// VENDOR(topic): what to do`, with how many
lines each covers, in the order in which to work through them.

  --path DIR       the crate is in DIR and not in this workspace
";

/// Options of a new backend.
struct Options {
    is_tested: bool,
    is_quick: bool,
    with_example: bool,
}

pub fn new(mut args: Arguments) -> Result<()> {
    let out: Option<PathBuf> = args.opt_value_from_str("--out")?;
    let options = Options {
        is_tested: !args.contains("--no-test"),
        is_quick: args.contains("--quick"),
        with_example: args.contains("--with-example"),
    };
    let name = Name::parse(&args.free_from_str::<String>().context("which NAME? see --help")?)?;
    finish(args)?;
    match out {
        None => new_inside(&name, &options),
        Some(out) => new_outside(&name, &out, &options),
    }
}

fn new_inside(name: &Name, options: &Options) -> Result<()> {
    let folder = root().join(name.package());
    ensure!(!folder.exists(), "{} exists already; take another name", name.package());
    let files = copy::copy(&original(), &folder, name)?;
    mark::put(&folder.join("Cargo.toml"))?;
    register::add(&root(), name)?;
    if options.with_example {
        example::add(&root(), &folder)?;
    }
    println!("{}: {files} files; registered behind the Cargo feature \"{name}\" of xla", name.package());
    run_program(cargo(&["check", "--package", &name.package()]))?;
    if options.is_tested {
        let mut words = vec!["xtask", "test-backend", name.as_str()];
        words.extend(options.is_quick.then_some("--quick"));
        run_program(cargo(&words))?;
    }
    println!(
        "\nNext:\n  cargo xtask vendor-todo {name}     what to change, place by place\n  \
        cargo xtask test-backend {name}    what works, and the next operation worth lowering"
    );
    Ok(())
}

/// The tests of a backend but for the kit, which takes longest and is the same as in the workspace.
const WITHOUT_KIT: &[&str] = &["--", "--skip", "conformance"];

fn new_outside(name: &Name, out: &Path, options: &Options) -> Result<()> {
    let out = std::env::current_dir()?.join(out);
    let is_empty = std::fs::read_dir(&out).map_or(true, |mut entries| entries.next().is_none());
    ensure!(is_empty, "{} is not empty", out.display());
    let files = copy::copy(&original(), &out, name)?;
    manifest::make_independent(&out.join("Cargo.toml"), &root())?;
    if options.with_example {
        example::add(&root(), &out)?;
    }
    // The versions that this workspace was tested with.
    std::fs::copy(root().join("Cargo.lock"), out.join("Cargo.lock"))?;
    std::fs::write(out.join(".gitignore"), "/target\n")?;
    println!("{}: {files} files, a repository of its own", out.display());
    let inside = |words: &[&str]| {
        let mut command = program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), words);
        command.current_dir(&out);
        command
    };
    if options.is_tested {
        let mut command = inside(&["test"]);
        match options.is_quick {
            true => command.args(downstream::profile()).args(WITHOUT_KIT),
            false => command.arg("--release"),
        };
        run_program(command)?;
    } else {
        run_program(inside(&["check"]))?;
    }
    println!(
        "\nNext:\n  cargo xtask vendor-todo {name} --path DIR    what to change, place by place\n  \
        cargo test --release                        there: the conformance kit"
    );
    Ok(())
}

pub fn remove(mut args: Arguments) -> Result<()> {
    let is_forced = args.contains("--force");
    let name = Name::parse(&args.free_from_str::<String>().context("which NAME? see --help")?)?;
    finish(args)?;
    let folder = root().join(name.package());
    ensure!(folder.is_dir(), "there is no {}", name.package());
    ensure!(
        mark::is_on(&folder.join("Cargo.toml"))?,
        "{} was not made by `cargo xtask new-backend`, so it is not removed",
        name.package()
    );
    let changes = crate::shell::output(program("git", &["status", "--porcelain", "--", &name.package()]));
    if !is_forced && changes.is_none_or(|changes| !changes.is_empty()) {
        bail!("{} is not committed as it is; --force removes it all the same", name.package());
    }
    std::fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", name.package()))?;
    register::remove(&root(), &name)?;
    // Cargo.lock forgets it too.
    run_program(cargo(&["update", "--workspace", "--offline", "--quiet"]))?;
    println!("{} is gone", name.package());
    Ok(())
}

pub fn todo(mut args: Arguments) -> Result<()> {
    let path: Option<PathBuf> = args.opt_value_from_str("--path")?;
    let name = Name::parse(&args.free_from_str::<String>().context("which NAME? see --help")?)?;
    finish(args)?;
    let folder = path.unwrap_or_else(|| root().join(name.package()));
    ensure!(folder.is_dir(), "there is no {}", folder.display());
    print!("{}", new_backend::todo::report(&folder)?);
    Ok(())
}

fn original() -> PathBuf {
    root().join(format!("backend-{ORIGINAL}"))
}
