//! Tests of programs for several devices.

use serde_json::Value;

use crate::support::{Folder, floats};

/// Returns the sum of an array over two replicas, and the array minus its own value.
const SUM: &str = "\
HloModule sum, replica_count=2

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[2] parameter(0)
  y = f32[2] parameter(1)
  s = f32[2] all-reduce(x), to_apply=add
  d = f32[2] subtract(s, y)
  ROOT both = (f32[2], f32[2]) tuple(s, d)
}
";

/// Returns the double of a matrix that is split over four partitions, by rows and columns, plus a whole row; and the
/// sum of all elements. The second result needs a partitioner.
const SPLIT: &str = "\
HloModule split, num_partitions=4

add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}

ENTRY main {
  x = f32[2,4] parameter(0), sharding={devices=[2,2]<=[4]}
  y = f32[4] parameter(1), sharding={replicated}
  r = f32[2,4] broadcast(y), dimensions={1}
  d = f32[2,4] add(x, x)
  e = f32[2,4] add(d, r)
  zero = f32[] constant(0)
  s = f32[] reduce(x, zero), dimensions={0,1}, to_apply=add
  ROOT both = (f32[2,4], f32[]) tuple(e, s), sharding={{devices=[2,2]<=[4]}, {replicated}}
}
";

const RUN: &str = "--platform interpreter";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("sum.hlo", SUM);
    folder.write("split.hlo", SPLIT);
    let pair = |a: f32, b: f32| floats(&[2], &[a, b]);
    folder.archive(
        "own.npz",
        &[
            ("arg0.dev0", pair(1.0, 2.0)),
            ("arg0.dev1", pair(10.0, 20.0)),
            ("arg1.dev0", pair(0.0, 1.0)),
            ("arg1.dev1", pair(100.0, 200.0)),
        ],
    );
    folder.archive("same.npz", &[("arg0", pair(1.0, 2.0)), ("arg1", pair(0.5, 0.5))]);
    let x: Vec<f32> = (0..8).map(|i| i as f32).collect();
    folder.archive("whole.npz", &[("arg0", floats(&[2, 4], &x)), ("arg1", floats(&[4], &[0.0, 10.0, 20.0, 30.0]))]);
    folder
}

#[test]
fn each_device_has_its_own_values() {
    let folder = folder();
    let done = folder.xla(&format!("run sum.hlo {RUN} --inputs own.npz --devices 2"));
    let expected = "out0.dev0: f32[2] { 11, 22 }\nout0.dev1: f32[2] { 11, 22 }\n\
                    out1.dev0: f32[2] { 11, 21 }\nout1.dev1: f32[2] { -89, -178 }\n";
    assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (0, expected, ""));
    // The module states the number of devices.
    let done = folder.xla(&format!("run sum.hlo {RUN} --inputs own.npz --output out.npz"));
    assert_eq!((done.code, done.out.as_str()), (0, ""), "{done:?}");
    let done = folder.xla(&format!("run sum.hlo {RUN} --inputs own.npz --expect out.npz --rtol 0 --atol 0"));
    assert_eq!((done.code, done.out.as_str()), (0, "2 outputs of 2 devices agree with out.npz\n"));
    let done = folder.xla(&format!("run sum.hlo {RUN} --inputs same.npz"));
    assert!(done.out.starts_with("out0.dev0: f32[2] { 2, 4 }\nout0.dev1: f32[2] { 2, 4 }\n"), "{done:?}");
    // The seed makes equal values on all devices.
    let done = folder.xla(&format!("run sum.hlo {RUN} --inputs-seed 3"));
    let lines: Vec<&str> = done.out.lines().map(|line| line.split_once(": ").unwrap().1).collect();
    assert!(lines.len() == 4 && lines[0] == lines[1] && lines[2] == lines[3], "{done:?}");
}

#[test]
fn global_values_are_split() {
    let folder = folder();
    let done = folder.xla(&format!("run split.hlo {RUN} --inputs whole.npz --output parts.npz"));
    assert_eq!(done.code, 0, "{done:?}");
    let done = folder.xla(&format!("run split.hlo {RUN} --inputs whole.npz"));
    let expected = "out0.dev0: f32[1,2] { { 0, 12 } }\nout0.dev1: f32[1,2] { { 24, 36 } }\n\
                    out0.dev2: f32[1,2] { { 8, 20 } }\nout0.dev3: f32[1,2] { { 32, 44 } }\n\
                    out1.dev0: f32[] 28\nout1.dev1: f32[] 28\nout1.dev2: f32[] 28\nout1.dev3: f32[] 28\n";
    assert_eq!(done.out, expected);
    let doubled = [0.0, 12.0, 24.0, 36.0, 8.0, 20.0, 32.0, 44.0];
    folder.archive("expected.npz", &[("out0", floats(&[2, 4], &doubled)), ("out1", floats(&[], &[28.0]))]);
    for expected in ["expected.npz", "parts.npz"] {
        let done = folder.xla(&format!("run split.hlo {RUN} --inputs whole.npz --expect {expected}"));
        assert_eq!((done.code, done.out), (0, format!("2 outputs of 4 devices agree with {expected}\n")));
    }
    folder.archive("far.npz", &[("out0", floats(&[2, 4], &[0.0; 8])), ("out1", floats(&[], &[28.0]))]);
    let far = folder.fails(1, &format!("run split.hlo {RUN} --inputs whole.npz --expect far.npz"));
    assert_eq!(far, "out0.dev0 f32[1,2]: 1 of 2 beyond rtol 1e-5 atol 1e-6, worst at (0, 1): 12 expected 0");
    // Parts of the inputs are those that `--output` would write.
    let row = || floats(&[4], &[0.0, 10.0, 20.0, 30.0]);
    let part = |a: f32| floats(&[1, 2], &[a, a + 1.0]);
    let parts =
        [("arg0.dev0", part(0.0)), ("arg0.dev1", part(2.0)), ("arg0.dev2", part(4.0)), ("arg0.dev3", part(6.0))];
    let rows = ["arg1.dev0", "arg1.dev1", "arg1.dev2", "arg1.dev3"].map(|name| (name, row()));
    folder.archive("cut.npz", &parts.into_iter().chain(rows).collect::<Vec<_>>());
    assert_eq!(folder.xla(&format!("run split.hlo {RUN} --inputs cut.npz")).out, done.out);
}

#[test]
fn errors_name_the_device() {
    let folder = folder();
    let pair = || floats(&[2], &[1.0, 2.0]);
    let both = [("arg0.dev0", pair()), ("arg0.dev1", pair())];
    let with = |more: Vec<(&'static str, Vec<u8>)>| both.iter().cloned().chain(more).collect::<Vec<_>>();
    folder.archive("few.npz", &with(vec![("arg1.dev0", pair())]));
    folder.archive("many.npz", &with(vec![("arg1.dev0", pair()), ("arg1.dev1", pair()), ("arg1.dev2", pair())]));
    folder.archive("mixed.npz", &with(vec![("arg1", pair())]));
    folder.archive("shape.npz", &with(vec![("arg1.dev0", pair()), ("arg1.dev1", floats(&[3], &[1.0; 3]))]));
    folder.archive("one.npz", &[("arg0", pair())]);
    folder.archive("out.npz", &[("out0.dev0", pair()), ("out0.dev1", pair()), ("out1.dev0", pair())]);
    folder.archive("names.npz", &[("arg0", pair()), ("arg01", pair()), ("arg1", pair())]);
    folder.archive("more.npz", &[("out0", pair()), ("out1", pair()), ("out7", pair())]);
    let rows = |last: f32| {
        let row = |name: &'static str, last: f32| (name, floats(&[4], &[0.0, 10.0, 20.0, last]));
        let names = ["arg1.dev0", "arg1.dev1", "arg1.dev2"].map(|name| row(name, 30.0));
        let parts =
            ["arg0.dev0", "arg0.dev1", "arg0.dev2", "arg0.dev3"].map(|name| (name, floats(&[1, 2], &[1.0, 2.0])));
        names.into_iter().chain([row("arg1.dev3", last)]).chain(parts).collect::<Vec<_>>()
    };
    folder.archive("rows.npz", &rows(31.0));
    folder.write("wide.hlo", SUM.replace("replica_count=2", "replica_count=1000000000"));
    let refused = [
        format!("run sum.hlo {RUN} --inputs own.npz --devices 4"),
        format!("run split.hlo {RUN} --inputs whole.npz --devices 1"),
        format!("run module.hlo {RUN} --inputs-seed 0 --devices 2"),
        format!("run module.hlo {RUN} --inputs own.npz"),
        format!("run sum.hlo {RUN} --inputs few.npz"),
        format!("run sum.hlo {RUN} --inputs many.npz"),
        format!("run sum.hlo {RUN} --inputs mixed.npz"),
        format!("run sum.hlo {RUN} --inputs shape.npz"),
        format!("run sum.hlo {RUN} --inputs one.npz"),
        format!("run sum.hlo {RUN} --inputs own.npz --expect out.npz"),
        format!("run sum.hlo {RUN} --inputs names.npz"),
        format!("run sum.hlo {RUN} --inputs same.npz --expect more.npz"),
        format!("run split.hlo {RUN} --inputs rows.npz"),
        format!("run sum.hlo {RUN}"),
        format!("run wide.hlo {RUN} --inputs-seed 0"),
        format!("bench sum.hlo {RUN} --devices 3"),
        format!("bench sum.hlo {RUN} --profile"),
        format!("bench sum.hlo {RUN} --device-time"),
        "compile sum.hlo -o .".to_string(),
    ];
    let messages: Vec<String> = refused.iter().map(|words| folder.fails(2, words)).collect();
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn bench_reports_joined_programs() {
    let folder = folder();
    let bench = |module: &str, words: &str| {
        folder.xla(&format!("bench {module} --platform interpreter --reps 3 --compiles 1 --devices {words}"))
    };
    let report = |module: &str, words: &str| -> Value {
        let done = bench(module, &format!("{words} --json"));
        assert_eq!(done.code, 0, "{done:?}");
        serde_json::from_str(&done.out).unwrap()
    };
    let own = report("sum.hlo", "2");
    assert_eq!(
        (&own["devices"], &own["joined"], own["outputs"].as_array().unwrap().len()),
        (&2.into(), &Value::Null, 4)
    );
    let joined = report("split.hlo", "4");
    assert_eq!((&joined["devices"], joined["outputs"].as_array().unwrap().len()), (&4.into(), 8));
    let reason = joined["joined"].as_str().unwrap();
    assert!(reason.starts_with("%x of main has the sharding of a global value; "), "{reason}");
    let table = bench("split.hlo", "4").out;
    assert!(table.contains("\n  devices             4       joined for the first: %x of main has"), "{table}");
    assert!(table.contains("  output 1.dev3 sum "), "{table}");
    let table = bench("sum.hlo", "2").out;
    assert!(table.contains("\n  devices             2       each runs the program on its own values\n"), "{table}");
}

#[test]
fn independent_replicas_run_on_all_devices() {
    let folder = folder();
    folder.write("twice.hlo", crate::support::MODULE.replace("HloModule sums,", "HloModule sums, replica_count=2,"));
    let done = folder.xla(&format!("run twice.hlo {RUN} --inputs-seed 0"));
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(done.out.lines().count(), 4, "{done:?}");
    assert_eq!(folder.xla("bench twice.hlo --platform interpreter --reps 3 --compiles 1 --devices 2").code, 0);
}
