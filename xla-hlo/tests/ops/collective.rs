//! Tests of collectives: three forms of groups, text, shapes, results on one device.

use xla_hlo::ElementType::{F32, S32};
use xla_hlo::eval::evaluate;
use xla_hlo::ops::collective::{IotaGroups, MeshGroups, ReplicaGroups};
use xla_hlo::sdy::{Mesh, MeshAxis};
use xla_hlo::text::parse_module;
use xla_hlo::verify::VerifiedModule;
use xla_hlo::{Literal, Module, Result};

use crate::testing::{array, assert_refused, numbers, scalar};

const ADD: &str = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }";

/// Parses a program over `x: f32[4,2]` and `i: s32[]`; printing it must be a fixpoint.
fn parse(header: &str, instructions: &str) -> Result<Module> {
    let text = format!(
        "HloModule m{header}\n{ADD}\nENTRY main {{\n x = f32[4,2] parameter(0)\n i = s32[] parameter(1)\n {instructions}\n}}"
    );
    let module = parse_module(&text)?;
    let printed = module.to_string();
    assert_eq!(parse_module(&printed)?.to_string(), printed, "printing is a fixed point");
    Ok(module)
}

/// Evaluates the program for x = 0, 1, ... 7 and i = 1.
fn run(header: &str, instructions: &str) -> Result<Literal> {
    let module = VerifiedModule::new(parse(header, instructions)?)?;
    evaluate(&module, vec![array(F32, &[4, 2], &X), scalar(S32, 1.0)])
}

const X: [f64; 8] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];

/// Operations that return their operand on one device.
const IDENTITIES: &[&str] = &[
    "ROOT r = f32[4,2] all-reduce(x), to_apply=add",
    "ROOT r = f32[4,2] all-reduce(x), channel_id=1, replica_groups={{0}}, use_global_device_ids=true, to_apply=add",
    "ROOT r = f32[4,2] all-reduce(x), replica_groups=[1,1]<=[1], constrain_layout=true, mode=cross_replica, to_apply=add",
    "ROOT r = f32[4,2] all-reduce(x), replica_groups=mesh['x'=1] {'x'}, to_apply=add",
    "s = f32[4,2] all-reduce-start(x), to_apply=add\n ROOT r = f32[4,2] all-reduce-done(s)",
    "ROOT r = f32[4,2] all-gather(x), dimensions={1}",
    "s = (f32[4,2], f32[4,2]) all-gather-start(x), dimensions={0}\n ROOT r = f32[4,2] all-gather-done(s)",
    "ROOT r = f32[4,2] reduce-scatter(x), dimensions={0}, to_apply=add",
    "ROOT r = f32[4,2] all-to-all(x), dimensions={0}",
    "ROOT r = f32[4,2] collective-permute(x), source_target_pairs={{0,0},{1,2}}",
    "s = (f32[4,2], f32[4,2], u32[], u32[]) collective-permute-start(x), channel_id=3, source_target_pairs={{0,0}}\n \
     ROOT r = f32[4,2] collective-permute-done(s)",
    "ROOT r = f32[4,2] collective-broadcast(x), replica_groups={{0}}",
    "ROOT r = f32[4,2] collective-broadcast(x, i), replica_groups={{0}}, has_dynamic_root=true",
    "ROOT r = f32[4,2] collective-reduce(x), replica_groups={{0}}, to_apply=add",
    "ROOT r = f32[4,2] collective-reduce(x, i), has_dynamic_root=true, to_apply=add",
    "s = ((f32[4,2]), f32[4,2]) all-to-all-start(x), dimensions={0}\n ROOT r = f32[4,2] all-to-all-done(s)",
];

#[test]
fn one_device_gets_what_it_gives() {
    for text in IDENTITIES {
        let value = run("", text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(numbers(&value), X, "{text}");
    }
}

#[test]
fn several_arrays_come_as_tuples() {
    for text in [
        "ROOT r = (f32[4,2], s32[]) tuple(x, i)",
        "z = s32[] constant(0)\n f = f32[] convert(i)\n ROOT r = (f32[4,2], f32[]) all-reduce(x, f), to_apply=add",
        "f = f32[] convert(i)\n ROOT r = (f32[4,2], f32[]) collective-permute(x, f), source_target_pairs={{0,0}}",
        "f = f32[] convert(i)\n s = ((f32[4,2], f32[]), (f32[4,2], f32[]), u32[], u32[]) collective-permute-start(x, f), \
         source_target_pairs={{0,0}}\n ROOT r = (f32[4,2], f32[]) collective-permute-done(s)",
    ] {
        let value = run("", text).unwrap_or_else(|e| panic!("{text}: {e}"));
        let [first, second] = value.elements() else { panic!("{text}: {}", value.shape()) };
        assert_eq!((numbers(first), numbers(second)), (X.to_vec(), vec![1.0]), "{text}");
    }
    let one = run("", "ROOT r = (f32[4,2]) all-to-all(x), replica_groups={{0}}").unwrap();
    assert_eq!(numbers(&one.elements()[0]), X);
    assert!(run("", "ROOT r = () all-reduce(), to_apply=add").unwrap().elements().is_empty());
}

#[test]
fn who_is_no_target_gets_zeros() {
    for text in [
        "ROOT r = f32[4,2] collective-permute(x), source_target_pairs={{0,1}}",
        "ROOT r = f32[4,2] collective-permute(x), source_target_pairs={}",
        "ROOT r = f32[4,2] collective-broadcast(x), replica_groups={{1,2}}",
    ] {
        assert_eq!(numbers(&run("", text).unwrap()), [0.0; 8], "{text}");
    }
    assert_eq!(numbers(&run("", "ROOT r = u32[] replica-id()").unwrap()), [0.0]);
    assert_eq!(numbers(&run("", "ROOT r = u32[] partition-id()").unwrap()), [0.0]);
}

#[test]
fn slices_are_written_in_place() {
    let program = |pairs: &str| {
        format!(
            "o = f32[2,3] constant({{ {{10,11,12}}, {{13,14,15}} }})\n one = s32[] constant(1)\n big = s32[] constant(9)\n \
             a = (s32[], s32[]) tuple(big, i)\n b = (s32[], s32[]) tuple(i, one)\n \
             ROOT r = f32[2,3] collective-permute(x, o, a, b), source_target_pairs={pairs}, slice_sizes={{{{1,1}}}}"
        )
    };
    // Row 9 is clamped to row 3: element (3, 1) moves to (1, 1).
    assert_eq!(numbers(&run("", &program("{{0,0}}")).unwrap()), [10.0, 11.0, 12.0, 13.0, 7.0, 15.0]);
    assert_eq!(numbers(&run("", &program("{{0,1}}")).unwrap()), [10.0, 11.0, 12.0, 13.0, 14.0, 15.0]);
}

#[test]
fn ragged_rows() {
    let rows = |reads: &str, sizes: &str, writes: &str| {
        let text = format!(
            "o = f32[3,2] constant({{ {{20,21}}, {{22,23}}, {{24,25}} }})\n a = s64[2] constant({{{reads}}})\n \
             b = s64[2] constant({{{sizes}}})\n c = s64[2] constant({{{writes}}})\n \
             ROOT r = f32[3,2] ragged-all-to-all(x, o, a, b, c, b), replica_groups={{{{0}}}}"
        );
        numbers(&run("", &text).unwrap_or_else(|e| panic!("{e}")))
    };
    assert_eq!(rows("1, 3", "1, 1", "0, 2"), [2.0, 3.0, 22.0, 23.0, 6.0, 7.0]);
    // Later entries overwrite earlier ones; rows out of bounds of an array are skipped.
    assert_eq!(rows("0, 2", "3, 9", "0, 1"), [0.0, 1.0, 4.0, 5.0, 6.0, 7.0]);
    assert_eq!(rows("-1, 9223372036854775807", "2, 2", "0, 0"), [20.0, 21.0, 0.0, 1.0, 24.0, 25.0]);
}

#[test]
fn programs_for_several_devices_are_verified_but_not_run() {
    let header = ", replica_count=2, num_partitions=2";
    for (text, name) in [
        ("ROOT r = f32[4,2] all-reduce(x), replica_groups={{0,1}}, to_apply=add", "all-reduce"),
        ("ROOT r = f32[8,2] all-gather(x), replica_groups={{0,1}}, dimensions={0}", "all-gather"),
        ("ROOT r = f32[16,2] all-gather(x), replica_groups={{0,1}}, channel_id=1, dimensions={0}", "all-gather"),
        (
            "ROOT r = f32[1,2] reduce-scatter(x), replica_groups=[1,4]<=[4], channel_id=1, use_global_device_ids=true, \
          dimensions={0}, to_apply=add",
            "reduce-scatter",
        ),
        ("ROOT r = (f32[4,2], f32[4,2]) all-to-all(x, x), replica_groups={{0,1}}", "all-to-all"),
        ("ROOT r = u32[] replica-id()", "replica-id"),
    ] {
        assert_refused(text, run(header, text), &format!("{name} among several devices cannot be run"));
    }
    let text = "ROOT r = f32[4,2] all-reduce(x), replica_groups={{0,1}}, to_apply=add";
    assert_refused(text, run("", text), "has a group of 2 devices, but the module runs on one");
    let text = "ROOT r = f32[8,2] all-gather(x), dimensions={0}";
    assert_refused(text, run("", text), "all-gather has shape f32[4,2] on one device, not f32[8,2]");
}

#[test]
fn broken_rules() {
    let header = ", replica_count=4";
    let all_reduce = |attributes: &str| format!("ROOT r = f32[4,2] all-reduce(x), {attributes}, to_apply=add");
    for (text, message) in [
        (all_reduce("replica_groups={{0,1},{1,2}}"), "names 1 twice"),
        (all_reduce("replica_groups={{0,1},{3,4}}"), "names 4 numbers, but not 2"),
        (all_reduce("replica_groups={{0,1}}"), "name 2 replicas, the module has 4"),
        (all_reduce("replica_groups={{0,1,2,3},{}}"), "holds an empty group"),
        (all_reduce("replica_groups={{-1,0}}"), "names -1, which is negative"),
        (all_reduce("channel_id=-1"), "channel_id must not be negative"),
        (all_reduce("use_global_device_ids=true"), "needs a channel_id"),
        (all_reduce("channel_id=1, use_global_device_ids=true"), "cannot be empty when use_global_device_ids"),
        (all_reduce("replica_groups=[2,3]<=[4]"), "2 groups of 3 devices on a grid of [4]"),
        (all_reduce("replica_groups=[1,4]<=[2,2]T(1,1)"), "transposed by [1, 1]"),
        (all_reduce("replica_groups=[1,9999999999]<=[9999999999]"), "more than 1048576 devices"),
        (all_reduce("replica_groups=mesh['x'=4] {'y'}"), "has no axis 'y'"),
        (all_reduce("replica_groups=mesh['x'=4] {'x':(1)3}"), "has no part (1)3"),
        (all_reduce("replica_groups=mesh['x'=4] {'x','x'}"), "a part of a mesh axis twice"),
        (all_reduce("mode=sideways"), "cross_replica"),
        ("ROOT r = f32[4,2] all-gather(x), replica_groups={{0},{1,2,3}}, dimensions={0}".into(), "the same size"),
        ("ROOT r = f32[8,2] all-gather(x), dimensions={0}".into(), "is 4, of the result 8, in groups of 4 devices"),
        ("ROOT r = f32[4,2] all-gather(x), dimensions={2}".into(), "has no dimension 2"),
        ("ROOT r = f32[4,2] all-gather(x), dimensions={0,1}".into(), "dimensions must have one element"),
        ("ROOT r = f32[4,2] reduce-scatter(x), dimensions={0}, to_apply=add".into(), "of the result 4"),
        ("ROOT r = f32[4,2] all-to-all(x), dimensions={1}".into(), "cannot be cut into 4 parts"),
        ("ROOT r = (f32[4,2], s32[]) all-to-all(x, i)".into(), "must have the same shape"),
        ("ROOT r = (f32[4,2], f32[4,2]) all-to-all(x, x)".into(), "2 parts in groups of 4 devices"),
        (
            "ROOT r = f32[4,2] collective-permute(x), source_target_pairs={{0,1},{0,2}}".into(),
            "source 0 appears more than once",
        ),
        (
            "ROOT r = f32[4,2] collective-permute(x), source_target_pairs={{0,1},{2,1}}".into(),
            "target 1 appears more than once",
        ),
        (
            "t = (s32[], s32[]) tuple(i, i)\n a = ((s32[], s32[]), (s32[], s32[])) tuple(t, t)\n ".to_string()
                + " ROOT r = f32[4,2] collective-permute(x, x, a, a), slice_sizes={{1,1},{1,1}}, \
                   source_target_pairs={{0,1},{0,2},{0,3}}",
            "source 0 appears more than 2 times",
        ),
        ("ROOT r = f32[4,2] collective-permute(x), source_target_pairs={{0}}".into(), "two numbers each"),
        (
            "ROOT r = f32[4,2] collective-permute(x), source_target_pairs={}, slice_sizes={{1,1}}".into(),
            "found 1 operands",
        ),
        ("ROOT r = s32[] all-reduce(i), to_apply=add".into(), "which the computation add of f32 cannot reduce"),
        (
            "s = f32[4,2] all-reduce-start(x), to_apply=add\n ROOT r = f32[4,2] negate(s)".into(),
            "must be used once, by all-reduce-done",
        ),
        ("ROOT r = f32[4,2] all-reduce-done(x)".into(), "all-reduce-done must wait for all-reduce-start"),
        (
            "ROOT r = f32[4,2] collective-broadcast(x, x), has_dynamic_root=true".into(),
            "the root's number must be s32[]",
        ),
        (
            "o = s32[2] constant({0,0})\n ROOT r = f32[2] ragged-all-to-all(x, o, o, o, o, o)".into(),
            "element types must be equal",
        ),
    ] {
        assert_refused(&text, run(header, &text), message);
    }
}

#[test]
fn groups_are_listed() {
    let listed = |groups: ReplicaGroups| groups.listed().unwrap();
    let iota = |count, size, reshape: &[usize], transpose: &[usize]| {
        listed(ReplicaGroups::Iota(IotaGroups { count, size, reshape: reshape.into(), transpose: transpose.into() }))
    };
    assert_eq!(iota(2, 4, &[8], &[]), [[0, 1, 2, 3], [4, 5, 6, 7]]);
    assert_eq!(iota(2, 4, &[4, 2], &[1, 0]), [[0, 2, 4, 6], [1, 3, 5, 7]]);
    assert_eq!(iota(4, 2, &[2, 2, 2], &[0, 2, 1]), [[0, 2], [1, 3], [4, 6], [5, 7]]);
    let mesh = |along: &[(&str, Option<(usize, usize)>)], device_ids: &[i64]| {
        listed(ReplicaGroups::Mesh(MeshGroups {
            mesh: Mesh { axes: vec![("x".into(), 2), ("y".into(), 4)], device_ids: device_ids.into() },
            along: along.iter().map(|(name, part)| MeshAxis { name: (*name).into(), part: *part }).collect(),
        }))
    };
    assert_eq!(mesh(&[("y", None)], &[]), [[0, 1, 2, 3], [4, 5, 6, 7]]);
    assert_eq!(mesh(&[("x", None)], &[]), [[0, 4], [1, 5], [2, 6], [3, 7]]);
    assert_eq!(mesh(&[("y", None), ("x", None)], &[]), [[0, 4, 1, 5, 2, 6, 3, 7]]);
    assert_eq!(mesh(&[("y", Some((1, 2)))], &[]), [[0, 2], [1, 3], [4, 6], [5, 7]]);
    assert_eq!(mesh(&[("y", Some((2, 2)))], &[7, 6, 5, 4, 3, 2, 1, 0]), [[7, 6], [5, 4], [3, 2], [1, 0]]);
    assert_eq!(mesh(&[], &[]).len(), 8);
}

#[test]
fn text_of_groups() {
    for groups in [
        "{{0,2},{1,3}}",
        "[2,2]<=[4]",
        "[2,2]<=[2,2]T(1,0)",
        "mesh['x'=2,'y'=2] {'y'}",
        "mesh['x'=2,'y'=2, device_ids=(3,2,1,0)] {'x','y':(1)2}",
    ] {
        let module = parse(
            ", replica_count=4",
            &format!("ROOT r = f32[4,2] all-reduce(x), replica_groups={groups}, to_apply=add"),
        );
        let printed = module.unwrap_or_else(|e| panic!("{e}")).to_string();
        assert!(printed.contains(&format!("replica_groups={groups}, to_apply=%add")), "{printed}");
    }
}
