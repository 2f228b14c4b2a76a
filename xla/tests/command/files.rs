//! Tests of `xla run` with arrays in files.

use crate::support::{Folder, MODULE, array, floats};

const X: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
const RUN: &str = "run module.hlo --platform interpreter";

/// Returns a folder with inputs that fit the module.
fn with_inputs() -> Folder {
    let folder = Folder::new();
    folder.archive("in.npz", &[("arg0", floats(&[2, 3], &X)), ("arg1", floats(&[2, 3], &[0.5; 6]))]);
    folder
}

#[test]
fn outputs_are_printed_or_written() {
    let folder = with_inputs();
    let done = folder.xla(&format!("{RUN} --inputs in.npz"));
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    let expected = "out0: f32[2,3] { { 1.5, 2.5, 3.5 }, { 4.5, 5.5, 6.5 } }\n\
                    out1: f32[2,3] { { 2, 4, 6 }, { 8, 10, 12 } }\n";
    assert_eq!(done.out, expected);

    let done = folder.xla(&format!("{RUN} --inputs in.npz --output out.npz"));
    assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (0, "", ""));
    let done = folder.xla(&format!("{RUN} --inputs in.npz --expect out.npz --rtol 0 --atol 0"));
    assert_eq!((done.code, done.out.as_str()), (0, "2 outputs agree with out.npz\n"));
    let done = folder.xla_with("run - --platform interpreter --inputs in.npz --expect out.npz", MODULE);
    assert_eq!(done.code, 0, "{done:?}");
}

#[test]
fn outputs_that_are_not_expected_are_told() {
    let folder = with_inputs();
    let sums = X.map(|x| x + 0.5);
    let mut doubles = X.map(|x| x + x);
    doubles[4] += 0.25;
    folder.archive("far.npz", &[("out0", floats(&[2, 3], &sums)), ("out1", floats(&[2, 3], &doubles))]);
    folder.archive("short.npz", &[("out0", floats(&[2, 3], &sums))]);
    folder.archive("flat.npz", &[("out0", floats(&[6], &sums))]);
    let far = folder.fails(1, &format!("{RUN} --inputs in.npz --expect far.npz"));
    assert_eq!(far, "out1 f32[2,3]: 1 of 6 beyond rtol 1e-5 atol 1e-6, worst at (1, 1): 10 expected 10.25");
    assert_eq!(folder.xla(&format!("{RUN} --inputs in.npz --expect far.npz --atol 0.3")).code, 0);
    let short = folder.fails(2, &format!("{RUN} --inputs in.npz --expect short.npz"));
    assert!(short.starts_with("out1 of short.npz cannot be read: "), "{short}");
    let flat = folder.fails(2, &format!("{RUN} --inputs in.npz --expect flat.npz"));
    assert_eq!(flat, "out0 of flat.npz is f32[6], not f32[2,3]");
}

#[test]
fn inputs_that_do_not_fit_are_named() {
    let folder = with_inputs();
    let x = || ("arg0", floats(&[2, 3], &X));
    let y = || ("arg1", floats(&[2, 3], &X));
    let huge = array("<f4", &[1_000_000_000_000_000_000], &[]);
    folder.archive("missing.npz", &[x()]);
    folder.archive("none.npz", &[]);
    folder.archive("extra.npz", &[x(), y(), ("arg2", floats(&[], &[1.0]))]);
    folder.archive("positional.npz", &[("arr_0", floats(&[2, 3], &X)), ("arr_1", floats(&[2, 3], &X))]);
    folder.archive("wrong_shape.npz", &[x(), ("arg1", floats(&[3, 2], &X))]);
    folder.archive("wrong_type.npz", &[x(), ("arg1", array("<f8", &[2, 3], &[0; 48]))]);
    folder.archive("huge_shape.npz", &[x(), ("arg1", huge)]);
    folder.archive("short_data.npz", &[x(), ("arg1", floats(&[2, 3], &X[..5]))]);
    folder.archive("no_array.npz", &[x(), ("arg1", b"hello".to_vec())]);
    folder.archive("objects.npz", &[x(), ("arg1", array("|O", &[2, 3], &[0; 48]))]);
    let names = [
        "missing",
        "none",
        "extra",
        "positional",
        "wrong_shape",
        "wrong_type",
        "huge_shape",
        "short_data",
        "no_array",
        "objects",
    ];
    let refused = |name: &&str| folder.fails(2, &format!("{RUN} --inputs {name}.npz"));
    let mut messages: Vec<String> = names.iter().map(refused).collect();
    messages.push(folder.fails(2, RUN));
    messages.push(folder.fails(2, &format!("{RUN} --inputs nowhere.npz")));
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn damaged_archives_are_refused() {
    let folder = with_inputs();
    let whole = std::fs::read(folder.path("in.npz")).unwrap();
    for length in [0, 10, whole.len() / 2, whole.len() - 4] {
        folder.write("cut.npz", &whole[..length]);
        let message = folder.fails(2, &format!("{RUN} --inputs cut.npz"));
        assert!(message.starts_with("cut.npz: not a complete .npz archive: "), "{length}: {message}");
    }
    folder.write("text.npz", "this is not an archive");
    assert!(folder.fails(2, &format!("{RUN} --inputs text.npz")).starts_with("text.npz: not a complete .npz archive"));
    // A wrong byte results in success or one error, but no panic.
    for at in (0..whole.len()).step_by(7) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0xff;
        folder.write("damaged.npz", &damaged);
        let done = folder.xla(&format!("{RUN} --inputs damaged.npz"));
        assert!(done.code == 0 || done.code == 2, "{at}: {done:?}");
    }
}

#[test]
fn inputs_for_several_devices_are_not_taken() {
    let folder = with_inputs();
    folder.archive("devices.npz", &[("arg0.dev0", floats(&[2, 3], &X)), ("arg0.dev1", floats(&[2, 3], &X))]);
    let message = folder.fails(2, &format!("{RUN} --inputs devices.npz"));
    let expected = "devices.npz has arg0.dev0, an array of one of several devices, but the program is for 1 device";
    assert_eq!(message, expected);
}

#[test]
fn the_same_seed_makes_the_same_inputs() {
    let folder = Folder::new();
    let seeded = |seed: u64| folder.xla(&format!("{RUN} --inputs-seed {seed}"));
    let first = seeded(0);
    assert_eq!(first.code, 0, "{first:?}");
    assert_eq!(first.out, seeded(0).out);
    assert_ne!(first.out, seeded(1).out);
    // Parameter 0 of seed 0 begins with 0.30489695; out1 is twice that.
    assert!(first.out.contains("out1: f32[2,3] { { 0.6097939, "), "{}", first.out);
}

#[test]
fn a_manifest_says_what_inputs_are_made_of() {
    let folder = Folder::new();
    let constant = |name: &str, shape: &str| {
        format!(
            "{{\"name\": \"{name}\", \"shape\": {shape}, \"dtype\": \"f32\", \"gen\": {{\"kind\": \"const\", \"value\": 2}}}}"
        )
    };
    let manifest = |generator: &str, params: &str| {
        let program = format!("{{\"name\": \"module\", \"file\": \"module.hlo\", \"params\": [{params}]}}");
        format!("{{\"generator\": \"{generator}\", \"programs\": [{program}]}}")
    };
    let both = format!("{}, {}", constant("x", "[2, 3]"), constant("y", "[2, 3]"));
    folder.write("manifest.json", manifest("splitmix64-v1", &both));
    let done = folder.xla(&format!("{RUN} --inputs-seed 0"));
    assert!(done.out.starts_with("out0: f32[2,3] { { 4, 4, 4 }, { 4, 4, 4 } }"), "{done:?}");

    folder.write("manifest.json", manifest("splitmix64-v1", &constant("x", "[2, 3]")));
    let message = folder.fails(2, &format!("{RUN} --inputs-seed 0"));
    assert_eq!(message, "manifest.json lists 1 inputs, but the module takes 2");
    let other = format!("{}, {}", constant("x", "[2, 3]"), constant("y", "[3]"));
    folder.write("manifest.json", manifest("splitmix64-v1", &other));
    let message = folder.fails(2, &format!("{RUN} --inputs-seed 0"));
    assert_eq!(message, "argument 1: manifest.json declares y as f32[3], but the module takes f32[2,3]");
    folder.write("manifest.json", "{\"generator\": \"splitmix64-v1\", \"programs\": 3}");
    assert!(folder.fails(2, &format!("{RUN} --inputs-seed 0")).starts_with("manifest.json: invalid type"));

    for foreign in ["{\"name\": \"a web page\"}", "not JSON", &manifest("other", "3")] {
        folder.write("manifest.json", foreign);
        assert_eq!(folder.xla(&format!("{RUN} --inputs-seed 0")).code, 0, "{foreign}");
    }
}
