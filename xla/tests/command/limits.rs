//! Tests of exhausted memory and threads: one error each, no abort, no damaged file.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::Folder;

/// Time limit of one run.
const LONGEST: Duration = Duration::from_secs(60);

/// Program of a dot, a decomposition and functions, of some megabytes; with `LARGE` elements, of 160 megabytes.
const SMALL: &str = "\
HloModule small

ENTRY main {
  x = f32[500,500] parameter(0)
  d = f32[500,500] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  s = f32[500,500] sine(d)
  c = f32[500,500] cholesky(s), lower=true
  ROOT z = f32[500,500] add(s, c)
}
";

const LARGE: &str = "\
HloModule large

ENTRY main {
  x = f32[20000000] parameter(0)
  s = f32[20000000] sine(x)
  r = f32[20000000] reverse(s), dimensions={0}
  ROOT z = f32[20000000] exponential(r)
}
";

/// Library transform whose tables are as large as the array.
const TRANSFORM: &str = "\
HloModule transform

ENTRY main {
  x = c64[10000001] parameter(0)
  ROOT y = c64[10000001] fft(x), fft_type=FFT, fft_length={10000001}
}
";

/// Returns the exit code and standard error of a script; `$0` is the command.
fn limited(folder: &Folder, script: &str) -> (i32, String) {
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_xla")]).current_dir(folder.path("."));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let begin = Instant::now();
    let output = command.spawn().unwrap().wait_with_output().unwrap();
    assert!(begin.elapsed() < LONGEST, "{script}: {:?}", begin.elapsed());
    (output.status.code().unwrap_or(-1), String::from_utf8(output.stderr).unwrap())
}

/// Checks for success, or one error that is not an internal one; returns whether it was a success.
fn ends_well(script: &str, (code, error): &(i32, String)) -> bool {
    match code {
        0 => assert_eq!(error, "", "{script}"),
        1 | 2 => {
            assert!(error.starts_with("error: ") && error.lines().count() == 1, "{script}: {error}");
            assert!(!error.contains("internal error"), "{script}: {error}");
        }
        _ => panic!("{script}: exit code {code}: {error}"),
    }
    *code == 0
}

#[test]
fn too_little_memory_is_one_error() {
    let folder = Folder::new();
    for (name, text) in [("small", SMALL), ("large", LARGE), ("transform", TRANSFORM)] {
        folder.write(&format!("{name}.hlo"), text);
    }
    let mut failures = 0;
    for megabytes in (400..=1400).step_by(100) {
        let name = ["small", "large", "transform"][(megabytes / 100) % 3];
        let platform = if megabytes % 200 == 0 || name != "small" { "cpu" } else { "interpreter" };
        let script = format!(
            "ulimit -c 0; ulimit -v {}; exec \"$0\" run {name}.hlo --platform {platform} --inputs-seed 0 -o out.npz",
            megabytes * 1024
        );
        folder.write("out.npz", "old");
        let done = limited(&folder, &script);
        let old = std::fs::read(folder.path("out.npz")).unwrap() == b"old";
        if !ends_well(&script, &done) {
            failures += 1;
            assert!(old, "{script}: {done:?}");
        }
    }
    assert!(failures > 0, "no limit was low enough");
}

#[test]
fn too_little_memory_for_code_is_one_error() {
    let folder = Folder::new();
    folder.write("small.hlo", SMALL);
    let mut failures = 0;
    for megabytes in (500..=900).step_by(40) {
        let limit = format!("ulimit -c 0; ulimit -v {};", megabytes * 1024);
        let script = format!("{limit} exec \"$0\" compile small.hlo --platform cpu -o {megabytes}");
        let done = limited(&folder, &script);
        if !ends_well(&script, &done) {
            failures += 1;
            let whole = |ending: &str| folder.path(&format!("{megabytes}/small.{ending}")).exists();
            assert!(!whole("o") && !whole("h"), "{script}");
        }
    }
    assert!(failures > 0, "no limit was low enough");
}

/// Closely spaced limits: memory runs out once in each of the many small allocations of LLVM and of the passes.
#[test]
fn memory_that_runs_out_while_kernels_are_emitted_is_one_error() {
    let folder = Folder::new();
    folder.write("many.hlo", many_kernels());
    let mut failures = 0;
    for megabytes in (500..=640).step_by(7) {
        let limit = format!("ulimit -c 0; ulimit -v {};", megabytes * 1024);
        let script = format!("{limit} exec \"$0\" run many.hlo --inputs-seed 0 --cache-dir none --trace trace.json");
        failures += usize::from(!ends_well(&script, &limited(&folder, &script)));
        let names = std::fs::read_dir(folder.path(".")).unwrap().map(|entry| entry.unwrap().file_name());
        let left: Vec<_> = names.filter(|name| name.to_string_lossy().ends_with(".tmp")).collect();
        assert!(left.is_empty(), "{script}: {left:?}");
    }
    assert!(failures > 0, "no limit was low enough");
}

/// Returns a program of many kernels, all of them different.
fn many_kernels() -> String {
    let mut text = "HloModule many\n\nENTRY main {\n  x0 = f32[64,64] parameter(0)\n".to_string();
    for i in 1..24 {
        let previous = i - 1;
        text += &format!("  c{i} = f32[] constant({i})\n  b{i} = f32[64,64] broadcast(c{i}), dimensions={{}}\n");
        text += &format!(
            "  s{i} = f32[64,64] power(x{previous}, b{i})\n  r{i} = f32[64,64] reverse(s{i}), dimensions={{1}}\n"
        );
        text +=
            &format!("  x{i} = f32[64,64] dot(r{i}, s{i}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}\n");
    }
    text + "  ROOT y = f32[64,64] tanh(x23)\n}\n"
}

/// Runs as another user if this one is root, since the limit does not apply to root.
#[test]
fn too_few_threads_are_one_error() {
    let folder = Folder::new();
    folder.write("small.hlo", SMALL);
    let is_root = |facts: std::fs::Metadata| std::os::unix::fs::MetadataExt::uid(&facts) == 0;
    let user = match std::fs::metadata("/proc/self").is_ok_and(is_root) {
        true => "setpriv --reuid=54321 --regid=54321 --clear-groups --inh-caps=-all",
        false => "",
    };
    // The other user may not be able to read the command's folder.
    let (code, _) = limited(&folder, &format!("{user} prlimit --nproc=10000 \"$0\" platforms"));
    if code != 0 {
        return;
    }
    let mut failures = 0;
    for threads in 1..=8 {
        let limit = format!("{user} prlimit --nproc={threads}");
        for command in ["run - --platform cpu --inputs-seed 0", "compile - --platform cpu -o objects"] {
            let script = format!("{limit} \"$0\" {command} < small.hlo");
            failures += usize::from(!ends_well(&script, &limited(&folder, &script)));
        }
    }
    assert!(failures > 0, "no limit was low enough");
}

/// Writes beyond the limit fail; no signal ends the process.
#[test]
fn too_large_files_are_one_error() {
    let folder = Folder::new();
    folder.write("small.hlo", SMALL);
    let commands = [
        "run small.hlo --platform cpu --inputs-seed 0 -o out.npz",
        "run small.hlo --platform cpu --inputs-seed 0 -o out.npz --trace trace.json --cache-dir cache",
        "compile small.hlo --platform cpu -o objects",
        "opt small.hlo --platform cpu -o out.hlo",
    ];
    for command in commands {
        for blocks in [0, 1, 10] {
            let script = format!("ulimit -c 0; ulimit -f {blocks}; exec \"$0\" {command}");
            let done = limited(&folder, &script);
            assert!(!ends_well(&script, &done) || blocks > 0, "{script}: {done:?}");
        }
    }
    let files = |name: &str| std::fs::read_dir(folder.path(name)).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<_> = files(".").chain(files("objects")).map(|name| name.to_string_lossy().into_owned()).collect();
    let is_left = |name: &String| name.ends_with(".tmp") || name == "out.npz" || name == "small.o";
    assert!(!names.iter().any(is_left), "larger than all limits, or temporary: {names:?}");
}
