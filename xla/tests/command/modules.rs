//! Tests of invalid modules, modules in an unreadable form, and modules that are written again.

use crate::support::{Folder, MODULE};

#[test]
fn bad_modules_are_refused_with_a_place() {
    let folder = Folder::new();
    let files: &[(&str, &[u8])] = &[
        ("empty.hlo", b" \n"),
        ("unknown_op.hlo", b"HloModule m\n\nENTRY %e {\n  ROOT %x = f32[2]{0} parametre(0)\n}\n"),
        ("truncated.hlo", &MODULE.as_bytes()[..300]),
        (
            "wrong_shape.hlo",
            b"HloModule m\n\nENTRY %e {\n  %x = f32[2] parameter(0)\n  ROOT %y = f32[3] negate(%x)\n}\n",
        ),
        ("no_such_operand.hlo", b"HloModule m\n\nENTRY %e {\n  ROOT %y = f32[3] negate(%x)\n}\n"),
        ("binary.hlo", b"HloModule m\n\0\x01\x02"),
        ("latin.hlo", b"HloModule caf\xe9\n"),
        ("image.hlo", b"\x89PNG\x0d\x0a\x1a\x0a"),
        ("malformed.hlo.pb", b"\x0a\x05jit_f\x12\x04main\x1a\x02\x08\x01"),
        ("truncated.hlo.pb", b"\x0a\x05jit_f\x12\x04main\x1a\x7f\x0a\x01e"),
    ];
    let mut messages = String::new();
    for (name, content) in files {
        folder.write(name, content);
        messages += &format!("{}\n\n", folder.fails(2, &format!("run {name} --platform interpreter --inputs-seed 0")));
    }
    messages += &folder.fails(2, "run missing.hlo --platform interpreter");
    insta::assert_snapshot!(messages);
}

#[test]
fn other_forms_are_recognised_by_content() {
    let folder = Folder::new();
    let files: &[(&str, &[u8])] = &[
        ("a", b"ML\xefR\x0dStableHLO_v1.9.0\0"),
        ("b", b"module @jit_f attributes {mhlo.num_partitions = 1 : i32} {\n}\n"),
    ];
    let mut messages = String::new();
    for (name, content) in files {
        folder.write(name, content);
        let run = folder.xla(&format!("run {name} --platform interpreter"));
        messages += &format!("exit {}: {}", run.code, run.err);
    }
    insta::assert_snapshot!(messages);
}

#[test]
fn a_serialised_module_is_the_same_program() {
    let folder = Folder::new();
    assert_eq!(folder.xla("convert module.hlo --to pb -o module.hlo.pb").code, 0);
    let text = folder.xla("convert module.hlo.pb --to hlo");
    assert_eq!((text.code, text.err.as_str(), text.out.as_str()), (0, "", MODULE));
    let run = |module: &str| folder.xla(&format!("run {module} --platform interpreter --inputs-seed 1"));
    let (from_text, from_proto) = (run("module.hlo"), run("module.hlo.pb"));
    assert_eq!((from_proto.code, from_proto.out), (0, from_text.out));
    let json = folder.xla("bench module.hlo.pb --platform interpreter --json --reps 1 --compiles 1");
    assert!(json.code == 0 && json.out.contains("\"name\":\"module\""), "{}{}", json.out, json.err);
    assert_eq!(folder.xla("opt module.hlo.pb --platform cpu").code, 0);
}

#[test]
fn hostile_modules_are_refused_in_bounded_time() {
    let folder = Folder::new();
    folder.write("deep.hlo", format!("HloModule m\nENTRY %e {{\n  ROOT %x = {}", "(".repeat(1 << 20)));
    folder.write("huge.hlo", "HloModule m\nENTRY %e {\n  ROOT %x = f32[1000000000,1000000000] parameter(0)\n}\n");
    folder.write("overflow.hlo", "HloModule m\nENTRY %e {\n  ROOT %x = f32[99999999999999999999999] parameter(0)\n}\n");
    folder.write("long.hlo", "x".repeat(1 << 24));
    folder.write("cyclic.hlo", "HloModule m\nENTRY %e {\n  %a = f32[] negate(%b)\n  ROOT %b = f32[] negate(%a)\n}\n");
    for name in ["deep.hlo", "huge.hlo", "overflow.hlo", "long.hlo", "cyclic.hlo"] {
        let message = folder.fails(2, &format!("run {name} --platform interpreter --inputs-seed 0"));
        assert!(message.starts_with(name) && message.len() < 1000, "{message}");
    }
}

#[test]
fn a_module_is_written_as_it_was_read() {
    let folder = Folder::new();
    let done = folder.xla("convert module.hlo --to hlo");
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    let again = folder.xla_with("convert - --to hlo", &done.out);
    assert_eq!((again.code, &again.out), (0, &done.out));
    assert_eq!(folder.xla("convert module.hlo --to hlo -o copy.hlo").out, "");
    assert_eq!(std::fs::read_to_string(folder.path("copy.hlo")).unwrap(), done.out);
    assert_eq!(done.out, MODULE);
    assert!(
        folder.fails(1, "convert module.hlo --to hlo -o no/such/folder").starts_with("cannot write no/such/folder")
    );
}

/// A 4 GB constant is parsed, optimized, serialized and run without its data: nothing needs the array.
#[test]
fn constants_without_data_take_no_memory_and_are_said_to_be_zeros() {
    let folder = Folder::new();
    let text = "HloModule m\nadd { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n\
        ENTRY main {\n k = f32[1000,1000000] constant({...})\n one = f32[] constant(1)\n \
        s = f32[2,2] slice(k), slice={[7:9], [5:7]}\n r = f32[] reduce(k, one), dimensions={0,1}, to_apply=add\n \
        ROOT t = (f32[2,2], f32[]) tuple(s, r)\n}";
    folder.write("large.hlo", text);
    let warning = "warning: large.hlo: 1 constant has no data, {...}, and counts as zeros\n";
    for command in ["convert large.hlo --to hlo -o again.hlo", "convert large.hlo --to pb -o again.pb"] {
        let done = folder.xla(command);
        assert_eq!((done.code, done.err.as_str()), (0, warning));
    }
    for file in ["again.hlo", "again.pb"] {
        assert!(std::fs::metadata(folder.path(file)).unwrap().len() < 2000);
        for command in ["opt", "run"] {
            let done = folder.xla(&format!("{command} {file} --platform cpu"));
            assert_eq!((done.code, done.err.as_str()), (0, ""), "{command} {file}");
        }
    }
}
