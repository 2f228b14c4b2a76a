//! Tests of output files and processes: full disks, traces of two processes, kills.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::Folder;

const RUN: &str = "run module.hlo --platform interpreter --inputs-seed 0";

/// Module with an output that is larger than the buffers of files.
const LARGE: &str = "HloModule large\n\nENTRY e {\n  x = f32[100000] parameter(0)\n  ROOT y = f32[100000] sine(x)\n}\n";

fn names(folder: &Folder) -> Vec<String> {
    let names = std::fs::read_dir(folder.path("")).unwrap();
    let mut names: Vec<_> = names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_full_disk_is_one_error() {
    let folder = Folder::new();
    folder.write("large.hlo", LARGE);
    let run = "run large.hlo --platform interpreter --inputs-seed 0";
    let full = "cannot write /dev/full: No space left on device (os error 28)";
    for words in [
        format!("{run} -o /dev/full"),
        format!("{RUN} -o /dev/full"),
        format!("{RUN} -o out.npz --trace /dev/full"),
        "opt --list-passes --platform interpreter -o /dev/full".to_string(),
        "convert module.hlo --to hlo -o /dev/full".to_string(),
    ] {
        assert_eq!(folder.fails(1, &words), full, "{words}");
    }
    assert_eq!(names(&folder), ["large.hlo", "module.hlo", "out.npz"]);
}

/// Runs with a limit of the size of files, which has the effect of a full disk.
#[test]
fn a_file_that_cannot_be_written_whole_leaves_the_old_one() {
    let folder = Folder::new();
    folder.write("large.hlo", LARGE);
    let run = "run large.hlo --platform interpreter --inputs-seed 0";
    for (words, name) in [
        (format!("{run} -o out.npz"), "out.npz"),
        (format!("{run} --trace out.json -o /dev/null"), "out.json"),
        ("convert large.hlo --to html -o out.html".to_string(), "out.html"),
    ] {
        folder.write(name, "old");
        // Blocks of 512 bytes; if the signal is ignored, a write returns an error.
        let limited = format!("trap '' XFSZ; ulimit -f 0; exec \"$0\" {words}");
        let done = Command::new("sh")
            .args(["-c", &limited, env!("CARGO_BIN_EXE_xla")])
            .current_dir(folder.path(""))
            .output()
            .unwrap();
        let error = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(1), "{words}: {error}");
        assert_eq!(error, format!("error: cannot write {name}: File too large (os error 27)\n"), "{words}");
        assert_eq!(std::fs::read_to_string(folder.path(name)).unwrap(), "old", "{words}");
    }
    assert!(names(&folder).iter().all(|name| !name.contains("tmp")), "{:?}", names(&folder));
}

#[test]
fn archives_are_written_to_pipes() {
    let folder = Folder::new();
    let whole = format!("{RUN} -o out.npz");
    assert_eq!(folder.xla(&whole).code, 0);
    let piped = format!("\"$0\" {RUN} -o /dev/stdout | cat > piped.npz");
    let done = Command::new("sh")
        .args(["-c", &piped, env!("CARGO_BIN_EXE_xla")])
        .current_dir(folder.path(""))
        .status()
        .unwrap();
    assert!(done.success());
    let done = folder.xla(&format!("{RUN} --expect piped.npz"));
    assert_eq!(done.code, 0, "{done:?}");
}

#[test]
fn names_of_a_program_do_not_reach_the_terminal_as_commands() {
    let folder = Folder::new();
    let call = "HloModule m\n\nENTRY e {\n  x = f32[4] parameter(0)\n  ROOT y = f32[4] custom-call(x), \
                custom_call_target=\"a\\033[31mb\"\n}\n";
    folder.write("call.hlo", call);
    let done = folder.xla("run call.hlo --platform interpreter --inputs-seed 0");
    assert_ne!(done.code, 0);
    assert!(!done.err.contains('\u{1b}'), "{done:?}");
    assert!(done.err.contains("u{1b}[31mb"), "{done:?}");
}

#[test]
fn a_long_module_name_is_dumped() {
    let folder = Folder::new();
    let name = "long_".repeat(60);
    folder.write("long.hlo", format!("HloModule {name}\n\nENTRY e {{\n  ROOT x = f32[4] parameter(0)\n}}\n"));
    let done = folder.xla("run long.hlo --platform interpreter --inputs-seed 0 --dump-to dump");
    assert_eq!(done.code, 0, "{done:?}");
    assert!(folder.path("dump").read_dir().unwrap().count() > 1);
}

#[cfg(feature = "cpu")]
#[test]
fn a_compilation_to_files_writes_one_valid_trace() {
    let folder = Folder::new();
    let done = folder.xla("compile module.hlo --platform cpu -o out --trace trace.json");
    assert_eq!(done.code, 0, "{done:?}");
    let events: Vec<Value> = serde_json::from_slice(&std::fs::read(folder.path("trace.json")).unwrap()).unwrap();
    assert!(events.iter().any(|event| event["cat"] == "pass"), "the passes of the child process are in it");
    let full = folder.fails(1, "compile module.hlo --platform cpu -o out --trace /dev/full");
    assert_eq!(full, "cannot write /dev/full: No space left on device (os error 28)");
}

/// The process that generates code reads its module from a named pipe without a writer, and so would wait forever.
#[cfg(all(feature = "cpu", target_os = "linux"))]
#[test]
fn a_killed_compilation_leaves_no_child() {
    let folder = Folder::new();
    assert!(Command::new("mkfifo").arg(folder.path("module.fifo")).status().unwrap().success());
    let mut parent = Command::new(env!("CARGO_BIN_EXE_xla"));
    parent.args(["compile", "module.fifo", "--platform", "cpu", "-o", "out"]).current_dir(folder.path(""));
    let mut parent = parent.stdin(Stdio::null()).spawn().unwrap();
    let children = format!("/proc/{0}/task", parent.id());
    let child = until(|| {
        let threads = std::fs::read_dir(&children).ok()?;
        let lists = threads.filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("children")).ok());
        let child = lists.into_iter().find_map(|list| Some(list.split_whitespace().next()?.to_string()))?;
        // When it waits for the pipe, it has already requested to be killed with its parent.
        let state = std::fs::read_to_string(format!("/proc/{child}/task/{child}/comm")).ok()?;
        let threads = std::fs::read_dir(format!("/proc/{child}/task")).ok()?.count();
        (state.starts_with("xla") && threads > 1).then_some(child)
    });
    std::thread::sleep(Duration::from_millis(300));
    parent.kill().unwrap();
    parent.wait().unwrap();
    let is_gone = || {
        let status = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        (status.is_empty() || status.contains(") Z ") || status.contains(") X ")).then_some(())
    };
    until(is_gone);
}

/// Returns the first result of `attempt`, which must come within seconds.
#[cfg(all(feature = "cpu", target_os = "linux"))]
fn until<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = attempt() {
            return found;
        }
        assert!(start.elapsed() < Duration::from_secs(20), "nothing happened in 20 seconds");
        std::thread::sleep(Duration::from_millis(20));
    }
}
