//! Tests of usage, help and platforms.

use crate::support::Folder;

#[test]
fn wrong_usage_is_told_with_exit_code_2() {
    let folder = Folder::new();
    for words in [
        "frobnicate",
        "run",
        "run module.hlo --frobnicate",
        "run module.hlo --inputs a.npz --inputs-seed 0",
        "run module.hlo --inputs-seed -3",
        "run module.hlo --inputs-seed 0 --threads 0",
        "run module.hlo --inputs-seed 0 --devices 0",
        "run module.hlo --inputs-seed 0 --rtol 0.1",
        "run module.hlo --inputs-seed 0 --expect a.npz --rtol -1",
        "bench module.hlo --compiles 0",
        "bench module.hlo --min-seconds nan",
        "convert module.hlo",
        "convert module.hlo --to xml",
        "opt",
        "opt module.hlo --passes dead-code --until fuse",
    ] {
        let message = folder.fails(2, words);
        assert!(message.contains("--help"), "{words}: {message}");
    }
}

#[test]
fn every_command_has_help_with_examples() {
    let folder = Folder::new();
    for command in ["", "run", "bench", "opt", "compile", "convert", "platforms"] {
        let done = folder.xla(&format!("{command} --help"));
        assert_eq!((done.code, done.err.as_str()), (0, ""));
        assert!(done.out.contains("Examples:\n  xla "), "{command}: {}", done.out);
        assert!(done.out.lines().all(|line| line.len() <= 140), "{command}: {}", done.out);
    }
    assert!(folder.xla("--version").out.starts_with("xla "));
}

#[test]
fn an_unknown_platform_is_told_which_there_are() {
    let folder = Folder::new();
    for command in ["run module.hlo --inputs-seed 0", "bench module.hlo", "opt module.hlo", "compile module.hlo -o ."] {
        let done = folder.xla(&format!("{command} --platform abacus"));
        assert_eq!(done.code, 2, "{command}: {done:?}");
        assert!(done.err.contains("no platform is called \"abacus\"; registered: "), "{command}: {done:?}");
        assert!(done.err.contains("interpreter"), "{command}: {done:?}");
    }
}

#[test]
fn platforms_are_listed_with_their_devices() {
    let done = Folder::new().xla("platforms");
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert!(done.out.contains("interpreter: 1 device\n  device 0: "), "{}", done.out);
    assert!(done.out.lines().any(|line| line.starts_with("cpu: ")), "{}", done.out);
}

#[test]
fn what_is_not_built_yet_is_exit_code_1() {
    let folder = Folder::new();
    insta::assert_snapshot!(folder.fails(1, "compile module.hlo -o . --platform interpreter"));
}
