//! Tests of modules of 100 MB, of any depth, and with cycles: one error with a location, in limited memory and time.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::Folder;

/// Size of a large file in bytes.
const LARGE: usize = 100_000_000;
/// Limit of the command's address space in KiB: the text, the module, LLVM and stacks.
const MEMORY: usize = 2_000_000;
/// Time limit, for a slow and busy machine.
const LONGEST: Duration = Duration::from_secs(60);

/// Returns the exit code and standard error of `xla convert FILE --to hlo` with limited memory.
fn convert(folder: &Folder, file: &str) -> (i32, String) {
    let script = format!("ulimit -v {MEMORY} && exec \"$0\" convert {file} --to hlo");
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_xla")]).current_dir(folder.path("."));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let begin = Instant::now();
    let output = command.spawn().unwrap().wait_with_output().unwrap();
    assert!(begin.elapsed() < LONGEST, "{file}: {:?}", begin.elapsed());
    (output.status.code().unwrap_or(-1), String::from_utf8(output.stderr).unwrap())
}

/// Checks that a file is rejected with the expected error. The file repeats `part` until it is large.
fn refused(folder: &Folder, name: &str, begin: &str, part: &str, expected: &str) {
    let file = format!("{name}.hlo");
    folder.write(&file, format!("{begin}{}", part.repeat((LARGE - begin.len()) / part.len())));
    let (code, message) = convert(folder, &file);
    assert_eq!(code, 2, "{name}: {message}");
    assert!(message.starts_with(&format!("error: {file}: error at {expected}")), "{name}: {message}");
    assert!(message.len() < 2000 && message.trim_end().ends_with('^'), "{name}: {message}");
    std::fs::remove_file(folder.path(&file)).unwrap();
}

const ROOT: &str = "HloModule m\n\nENTRY %e {\n  ROOT %c = ";

#[test]
fn large_garbage_takes_little_memory_and_time() {
    let folder = Folder::new();
    refused(&folder, "word", "", "x", "1:1: ");
    refused(&folder, "noise", "HloModule m\n", "a %=( {]b,} 0\n", "2:3: ");
    refused(&folder, "shape", ROOT, "(", "4:");
    refused(&folder, "literal", &format!("{ROOT}f32[5] constant("), "{", "4:");
    refused(&folder, "elements", &format!("{ROOT}f32[5] constant({{1"), ", 1", "4:");
    let many = "f32[1000000000,1000000000] constant({1";
    refused(&folder, "many_elements", &format!("{ROOT}{many}"), ", 1", "4:13: ");
    refused(&folder, "string", &format!("{ROOT}f32[] parameter(0), metadata={{op_name=\""), "a", "4:");
    refused(&folder, "comment", "HloModule m\n/*", "*", "2:1: ");
    refused(&folder, "one_name", &format!("{ROOT}f32[] parameter(0)\n"), "  %c = f32[] parameter(0)\n", "5:");
}

#[test]
fn a_large_constant_is_read() {
    let folder = Folder::new();
    let count = LARGE / 3;
    folder.write("large.hlo", format!("{ROOT}f32[{count}] constant({{1{}}})\n}}\n", ", 1".repeat(count - 1)));
    assert_eq!(convert(&folder, "large.hlo"), (0, String::new()));
}

#[test]
fn large_binary_files_are_refused() {
    let folder = Folder::new();
    folder.write("noise", b"\x80\xff\x00\x01".repeat(LARGE / 4));
    let (code, message) = convert(&folder, "noise");
    assert!(code == 2 && message.starts_with("error: noise: ") && message.len() < 500, "{message}");
}

#[test]
fn calls_and_operands_nest_as_deep_as_they_like() {
    let folder = Folder::new();
    let mut calls = "HloModule m\n%c0 { ROOT %x = f32[] parameter(0) }\n".to_string();
    for i in 1..5000 {
        let callee = i - 1;
        calls += &format!("%c{i} {{ %x = f32[] parameter(0)\n ROOT %y = f32[] call(%x), to_apply=%c{callee} }}\n");
    }
    calls += "ENTRY %e { %x = f32[] parameter(0)\n ROOT %y = f32[] call(%x), to_apply=%c4999 }\n";
    folder.write("calls.hlo", calls);
    let mut chain = "HloModule m\nENTRY %e {\n %x0 = f32[2] parameter(0)\n".to_string();
    for i in 1..20_000 {
        chain += &format!(" %x{i} = f32[2] negate(%x{})\n", i - 1);
    }
    folder.write("chain.hlo", chain + " ROOT %y = f32[2] copy(%x19999)\n}\n");
    for file in ["calls.hlo", "chain.hlo"] {
        assert_eq!(folder.xla(&format!("convert {file} --to hlo")).code, 0);
    }
    let run = |file: &str, platform: &str| folder.xla(&format!("run {file} --platform {platform} --inputs-seed 0"));
    for file in ["calls.hlo", "chain.hlo"] {
        let done = run(file, "interpreter");
        assert_eq!((done.code, done.err.as_str()), (0, ""), "{file}");
        #[cfg(feature = "cpu")]
        {
            let done = run(file, "cpu");
            assert_eq!((done.code, done.err.as_str()), (0, ""), "{file}");
        }
    }
}

#[test]
fn names_and_circles() {
    let folder = Folder::new();
    let main = "ENTRY %e {\n  ROOT %x = f32[] parameter(0)\n}\n";
    let cases = [
        ("instruction_twice", "ENTRY %e {\n  %x = f32[] parameter(0)\n  ROOT %x = f32[] negate(%x)\n}\n".to_string()),
        (
            "computation_twice",
            format!("%c {{\n  ROOT %x = f32[] parameter(0)\n}}\n%c {{\n  ROOT %x = f32[] parameter(0)\n}}\n{main}"),
        ),
        ("parameter_twice", "ENTRY %e {\n  %x = f32[] parameter(0)\n  ROOT %y = f32[] parameter(0)\n}\n".to_string()),
        ("two_entries", format!("{main}{}", main.replace("%e", "%f"))),
        ("no_entry", String::new()),
        ("two_roots", "ENTRY %e {\n  ROOT %x = f32[] parameter(0)\n  ROOT %y = f32[] negate(%x)\n}\n".to_string()),
        (
            "recursion",
            "%c {\n  %x = f32[] parameter(0)\n  ROOT %y = f32[] call(%x), to_apply=%c\n}\n".to_string() + main,
        ),
        ("itself", "ENTRY %e {\n  ROOT %x = f32[] negate(%x)\n}\n".to_string()),
    ];
    let mut messages = String::new();
    for (name, text) in cases {
        folder.write(&format!("{name}.hlo"), format!("HloModule m\n{text}"));
        let message = folder.fails(2, &format!("run {name}.hlo --platform interpreter --inputs-seed 0"));
        messages += &format!("{message}\n\n");
    }
    insta::assert_snapshot!(messages);
}
