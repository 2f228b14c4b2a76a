//! Tests of programs for several devices joined to one program: arguments of the devices, and results of the joined
//! program.

use std::fs;
use std::path::Path;

use xla_hlo::eval::grid::{self, Grid};
use xla_hlo::{ArrayShape, ElementType, Literal, Result, Scalar, VerifiedModule, eval, text};
use xla_passes::join::{Joined, join_devices};
use xla_passes::{ProgramForm, program_form};

#[path = "../../../xla-hlo/tests/eval_grid/modules.rs"]
pub mod modules;

fn joined(text: &str) -> Result<Joined> {
    let module = VerifiedModule::new(text::parse_module(text)?)?;
    assert_ne!(program_form(&module), ProgramForm::OneDevice);
    join_devices(&module)
}

fn f32s(values: &[f32]) -> Literal {
    let shape = ArrayShape::new(ElementType::F32, [values.len()]);
    Literal::from_fn(&shape, |i| Scalar::Float(values[i].into())).unwrap()
}

fn column(values: &[f32]) -> Literal {
    f32s(values).reshaped(&ArrayShape::new(ElementType::F32, [values.len(), 1])).unwrap()
}

fn values(literal: &Literal) -> Vec<f32> {
    let value = |i: usize| match literal.get(i) {
        Scalar::Float(value) => value as f32,
        other => panic!("{other:?} is no float"),
    };
    (0..literal.array_shape().element_count()).map(value).collect()
}

/// Runs a joined program: from the arguments of each device to the results of each device.
pub fn run(joined: &Joined, devices: &[Vec<Literal>]) -> Vec<Vec<Literal>> {
    let mut parts: Vec<Option<Literal>> = vec![None; joined.module.entry().parameters().len()];
    for (device, arguments) in devices.iter().enumerate() {
        assert_eq!(arguments.len(), joined.arguments.len());
        for (spread, argument) in joined.arguments.iter().zip(arguments) {
            parts[spread.parts[device]].get_or_insert_with(|| argument.clone());
        }
    }
    let parts: Option<Vec<Literal>> = parts.into_iter().collect();
    let results = eval::evaluate(&joined.module, parts.unwrap()).unwrap().into_elements();
    let own = |device: usize| joined.results.iter().map(|spread| results[spread.parts[device]].clone()).collect();
    (0..devices.len()).map(own).collect()
}

const MESH: &str = r##"frontend_attributes={xla.sdy.meshes="{mesh = #sdy.mesh<[\"x\"=4]>}"}"##;
const SPLIT: &str = r##"frontend_attributes={xla.sdy.sharding="#sdy.sharding<@mesh, [{\"x\"}]>"}"##;

/// Returns a manual computation over 4 devices, each of which has 4 of 16 elements.
fn by_hand(body: &str, computations: &str) -> String {
    format!(
        r##"HloModule by_hand, num_partitions=4, {MESH}
sum {{ a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }}
{computations}
body {{
 x = f32[4] parameter(0)
 {body}
}}
ENTRY main {{
 x = f32[16] parameter(0), {SPLIT}
 local = f32[4] custom-call(x), custom_call_target="xla.sdy.GlobalToLocalShape", custom_call_has_side_effect=true,
   frontend_attributes={{xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{{\"x\"}}]>]>",xla.sdy.manual_axes="#sdy<manual_axes{{\"x\"}}>"}}
 done = f32[4] call(local), to_apply=body
 global = f32[16] custom-call(done), custom_call_target="xla.sdy.LocalToGlobalShape", custom_call_has_side_effect=true,
   frontend_attributes={{xla.sdy.out_shardings="#sdy.sharding_per_value<[<@mesh, [{{\"x\"}}]>]>",xla.sdy.manual_axes="#sdy<manual_axes{{\"x\"}}>"}}
 ROOT end = f32[16] custom-call(global), custom_call_target="xla.sdy.FuncResultSharding", custom_call_has_side_effect=true, {SPLIT}
}}"##
    )
}

/// Returns the devices' results for rows `10 * device + 0..4`.
fn outcome(body: &str, computations: &str) -> Vec<Vec<f32>> {
    let joined = joined(&by_hand(body, computations)).unwrap();
    let row = |device: usize| (0..4).map(|i| (10 * device + i) as f32).collect::<Vec<f32>>();
    let arguments: Vec<Vec<Literal>> = (0..4).map(|device| vec![f32s(&row(device))]).collect();
    let results = run(&joined, &arguments);
    results.iter().map(|own| values(&own[0])).collect()
}

#[test]
fn collectives_are_operations_among_devices() {
    let all = "channel_id=1, replica_groups={{0,1,2,3}}, use_global_device_ids=true";
    let pairs = "channel_id=1, replica_groups={{0,2},{3,1}}, use_global_device_ids=true";
    let cases = [
        (
            "all-reduce",
            format!("ROOT r = f32[4] all-reduce(x), {all}, to_apply=sum"),
            [[60., 64., 68., 72.], [60., 64., 68., 72.], [60., 64., 68., 72.], [60., 64., 68., 72.]],
        ),
        (
            "all-reduce in groups",
            format!("ROOT r = f32[4] all-reduce(x), {pairs}, to_apply=sum"),
            [[20., 22., 24., 26.], [40., 42., 44., 46.], [20., 22., 24., 26.], [40., 42., 44., 46.]],
        ),
        (
            "all-gather in groups",
            format!("s = f32[2] slice(x), slice={{[0:2]}}\n ROOT r = f32[4] all-gather(s), {pairs}, dimensions={{0}}"),
            [[0., 1., 20., 21.], [30., 31., 10., 11.], [0., 1., 20., 21.], [30., 31., 10., 11.]],
        ),
        (
            "reduce-scatter",
            format!(
                "s = f32[1] reduce-scatter(x), {all}, dimensions={{0}}, to_apply=sum\n ROOT r = f32[4] concatenate(s, s, s, s), dimensions={{0}}"
            ),
            [[60.; 4], [64.; 4], [68.; 4], [72.; 4]],
        ),
        (
            "all-to-all",
            "ROOT r = f32[4] all-to-all(x), channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}".to_string(),
            [[0., 10., 20., 30.], [1., 11., 21., 31.], [2., 12., 22., 32.], [3., 13., 23., 33.]],
        ),
        (
            "permute",
            "ROOT r = f32[4] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,2},{3,0}}".to_string(),
            [[30., 31., 32., 33.], [0., 1., 2., 3.], [10., 11., 12., 13.], [0.; 4]],
        ),
        (
            "broadcast",
            "ROOT r = f32[4] collective-broadcast(x), channel_id=1, replica_groups={{1,2},{3}}".to_string(),
            [[0.; 4], [10., 11., 12., 13.], [10., 11., 12., 13.], [30., 31., 32., 33.]],
        ),
        (
            "reduce to a root",
            "i = s32[] constant(0)\n ROOT r = f32[4] collective-reduce(x, i), channel_id=1, replica_groups={{1,2}}, \
             use_global_device_ids=true, has_dynamic_root=true, to_apply=sum"
                .to_string(),
            [[0.; 4], [30., 32., 34., 36.], [30., 32., 34., 36.], [0.; 4]],
        ),
        (
            "number",
            "p = u32[] partition-id()\n f = f32[] convert(p)\n ROOT r = f32[4] broadcast(f), dimensions={}".to_string(),
            [[0.; 4], [1.; 4], [2.; 4], [3.; 4]],
        ),
    ];
    for (name, body, expected) in cases {
        assert_eq!(outcome(&body, ""), expected.map(|row| row.to_vec()), "{name}");
    }
}

/// Loop in which each device adds 5 to its rows while the first element is below 25, and in each iteration adds the
/// number of devices of its group to a counter.
const DOUBLING: &str = r#"
cond {
 s = (f32[4], f32[4]) parameter(0)
 x = f32[4] get-tuple-element(s), index=0
 first = f32[1] slice(x), slice={[0:1]}
 scalar = f32[] reshape(first)
 bound = f32[] constant(25)
 ROOT less = pred[] compare(scalar, bound), direction=LT
}
step {
 s = (f32[4], f32[4]) parameter(0)
 x = f32[4] get-tuple-element(s), index=0
 n = f32[4] get-tuple-element(s), index=1
 five = f32[] constant(5)
 fives = f32[4] broadcast(five), dimensions={}
 more = f32[4] add(x, fives)
 ones = f32[4] divide(fives, fives)
 every = f32[4] all-reduce(ones), channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true, to_apply=sum
 m = f32[4] add(n, every)
 ROOT t = (f32[4], f32[4]) tuple(more, m)
}"#;

#[test]
fn loops_go_on_for_those_that_want_to() {
    let body = "z = f32[] constant(0)\n zeros = f32[4] broadcast(z), dimensions={}\n \
                init = (f32[4], f32[4]) tuple(x, zeros)\n \
                end = (f32[4], f32[4]) while(init), condition=cond, body=step\n ";
    let rows = format!("{body} ROOT r = f32[4] get-tuple-element(end), index=0");
    let rounds = format!("{body} ROOT r = f32[4] get-tuple-element(end), index=1");
    // Rows begin with 0, 10, 20 and 30 and grow by 5: five iterations, three, one, none.
    let expected = [[25., 26., 27., 28.], [25., 26., 27., 28.], [25., 26., 27., 28.], [30., 31., 32., 33.]];
    assert_eq!(outcome(&rows, DOUBLING), expected.map(|row| row.to_vec()));
    assert_eq!(outcome(&rounds, DOUBLING), [[10.; 4], [6.; 4], [2.; 4], [0.; 4]].map(|row| row.to_vec()));
}

const BRANCHES: &str = r#"
sums {
 x = f32[4] parameter(0)
 ROOT r = f32[4] all-reduce(x), channel_id=1, replica_groups={{0,2},{1,3}}, use_global_device_ids=true, to_apply=sum
}
negative {
 x = f32[4] parameter(0)
 ROOT r = f32[4] negate(x)
}"#;

#[test]
fn branches_are_taken_by_each_for_itself() {
    let body = "p = u32[] partition-id()\n two = u32[] constant(2)\n odd = u32[] remainder(p, two)\n \
                index = s32[] convert(odd)\n \
                ROOT r = f32[4] conditional(index, x, x), branch_computations={sums, negative}";
    let expected = [[20., 22., 24., 26.], [-10., -11., -12., -13.], [20., 22., 24., 26.], [-30., -31., -32., -33.]];
    assert_eq!(outcome(body, BRANCHES), expected.map(|row| row.to_vec()));
    let always =
        "one = s32[] constant(1)\n ROOT r = f32[4] conditional(one, x, x), branch_computations={sums, negative}";
    let joined = joined(&by_hand(always, BRANCHES)).unwrap();
    let text = joined.module.to_string();
    assert!(text.contains(" conditional("), "all take the same one: {text}");
}

#[test]
fn effects_of_those_that_are_done_are_refused() {
    let note = "ROOT t = (f32[4], f32[4]) tuple(more, m)";
    let noted = "noted = f32[4] custom-call(more), custom_call_target=\"note\", custom_call_has_side_effect=true\n \
                 ROOT t = (f32[4], f32[4]) tuple(noted, m)";
    let body = "init = (f32[4], f32[4]) tuple(x, x)\n \
                end = (f32[4], f32[4]) while(init), condition=cond, body=step\n \
                ROOT r = f32[4] get-tuple-element(end), index=0";
    let error = joined(&by_hand(body, &DOUBLING.replace(note, noted))).unwrap_err().to_string();
    assert!(error.contains("its trip count may differ between devices"), "{error}");
}

/// Three iterations on all devices, so no device needs a condition of its own, and effects apply to all devices.
const COUNTED: &str = r#"
cond {
 s = (s32[], f32[4]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 three = s32[] constant(3)
 ROOT less = pred[] compare(i, three), direction=LT
}
step {
 s = (s32[], f32[4]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 x = f32[4] get-tuple-element(s), index=1
 one = s32[] constant(1)
 next = s32[] add(i, one)
 noted = f32[4] custom-call(x), custom_call_target="note", custom_call_has_side_effect=true
 moved = f32[4] collective-permute(noted), channel_id=1, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}
 ROOT t = (s32[], f32[4]) tuple(next, moved)
}"#;

#[test]
fn loops_that_count_are_left_together() {
    let body = "zero = s32[] constant(0)\n init = (s32[], f32[4]) tuple(zero, x)\n \
                end = (s32[], f32[4]) while(init), condition=cond, body=step\n \
                ROOT r = f32[4] get-tuple-element(end), index=1";
    let text = joined(&by_hand(body, COUNTED)).unwrap().module.to_string();
    let of = |name: &str| text.matches(&format!(" {name}(")).count();
    assert_eq!([of("custom-call"), of("select"), of("or")], [4, 0, 0], "{text}");
    let pure =
        COUNTED.replace("custom-call(x), custom_call_target=\"note\", custom_call_has_side_effect=true", "copy(x)");
    let expected = [[10., 11., 12., 13.], [20., 21., 22., 23.], [30., 31., 32., 33.], [0., 1., 2., 3.]];
    assert_eq!(outcome(body, &pure), expected.map(|row| row.to_vec()));
}

#[test]
fn replicas_have_arguments_of_their_own() {
    let text = "HloModule replicas, replica_count=2\nsum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n \
                ROOT c = f32[] add(a, b) }\nENTRY main {\n x = f32[2] parameter(0)\n r = u32[] replica-id()\n \
                f = f32[] convert(r)\n n = f32[2] broadcast(f), dimensions={}\n \
                s = f32[2] all-reduce(x), replica_groups={}, to_apply=sum\n ROOT t = (f32[2], f32[2]) tuple(s, n)\n}";
    let joined = joined(text).unwrap();
    let results = run(&joined, &[vec![f32s(&[1., 2.])], vec![f32s(&[10., 20.])]]);
    assert_eq!(results[0], [f32s(&[11., 22.]), f32s(&[0., 0.])]);
    assert_eq!(results[1], [f32s(&[11., 22.]), f32s(&[1., 1.])]);
}

/// Column-major matrix that is partitioned in both dimensions, and aliased with a result.
const GRID: &str = include_str!("programs/grid.hlo");

#[test]
fn arrays_are_put_together_and_taken_apart() {
    let joined = joined(GRID).unwrap();
    // Devices 3, 1, 2, 0 have the parts in row-major order.
    let part = |row: usize, of: usize| {
        let values: Vec<f32> = (0..2).map(|i| (10 * (2 * row + i) + of) as f32).collect();
        column(&values)
    };
    let place = |device: usize| [(1, 1), (0, 1), (1, 0), (0, 0)][device];
    let arguments: Vec<Vec<Literal>> =
        (0..4).map(place).map(|(row, of)| vec![part(row, of), f32s(&[100.0 * of as f32])]).collect();
    for (device, own) in run(&joined, &arguments).into_iter().enumerate() {
        let (row, of) = place(device);
        let expected: Vec<f32> = (0..2).map(|i| (10 * (2 * row + i) + of + 100 * of) as f32).collect();
        assert_eq!(own[0], column(&expected), "device {device}");
        assert_eq!(values(&own[1]), [524.0]);
    }
    insta::assert_snapshot!(joined.module.to_string());
}

#[test]
fn parts_that_are_to_be_summed_are_summed() {
    let text = "HloModule sums, num_partitions=4\nENTRY main {\n \
                x = f32[2] parameter(0), sharding={devices=[2,2]<=[4] last_tile_dims={unreduced}}\n \
                two = f32[] constant(2)\n twos = f32[2] broadcast(two), dimensions={}\n y = f32[2] multiply(x, twos)\n \
                ROOT r = f32[2] custom-call(y), custom_call_target=\"Sharding\", sharding={unreduced}\n}";
    let joined = joined(text).unwrap();
    let arguments: Vec<Vec<Literal>> = [1.0, 10.0, 100.0, 1000.0].map(|part| vec![f32s(&[part])]).to_vec();
    let results: Vec<Vec<f32>> = run(&joined, &arguments).iter().map(|own| values(&own[0])).collect();
    assert_eq!(results, [[22.0, 2200.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]);
}

/// Results of operations on an array whose rows are partitioned along `a` and whose columns along `b`.
const OPEN: &str = include_str!("programs/open.hlo");

#[test]
fn open_results_are_split_as_what_they_are_made_of() {
    let joined = joined(OPEN).unwrap();
    let names = "sum called turned reduced product split joined thirds first closed";
    let mut lines = String::new();
    for ((name, spread), leaf) in names.split(' ').zip(&joined.results).zip(joined.shape.result.leaves()) {
        let first = spread.parts.iter().min().unwrap();
        let parts: Vec<usize> = spread.parts.iter().map(|part| part - first).collect();
        lines += &format!("{name}: parts {parts:?} of {}\n", leaf.1.without_layout());
    }
    insta::assert_snapshot!(lines);
}

/// Returns a sum of parts along one axis of a mesh and parts along the other.
fn mixed() -> String {
    let local = |axis: &str| {
        format!(
            r##"custom-call(x), custom_call_target="xla.sdy.GlobalToLocalShape", frontend_attributes={{xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{{\"{axis}\"}}]>]>",xla.sdy.manual_axes="#sdy<manual_axes{{\"{axis}\"}}>"}}"##
        )
    };
    format!(
        "HloModule mixed, num_partitions=4, frontend_attributes={{xla.sdy.meshes=\"{{mesh = #sdy.mesh<[\\\"a\\\"=2, \\\"b\\\"=2]>}}\"}}\n\
         ENTRY main {{ x = f32[4] parameter(0)\n y = f32[2] {}\n z = f32[2] {}\n ROOT s = f32[2] add(y, z) }}",
        local("a"),
        local("b")
    )
}

/// All programs of the evaluator's tests whose collectives can be joined, for replicas and partitions, and programs
/// without collectives.
#[test]
fn programs_of_each_device_are_joined() {
    let without = include_str!("programs/join_without_collectives.hlo");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../xla-hlo/tests/eval_grid/programs");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    let (mut count, mut refused) = (0, Vec::new());
    let texts = files.iter().flat_map(|file| modules::modules(&fs::read_to_string(file).unwrap()));
    for text in texts.chain(modules::modules(without)) {
        let Ok(module) = text::parse_module(&text).and_then(VerifiedModule::new) else { continue };
        if text.contains("rng-get-and-update-state") {
            // Lanes draw from the random state of the first device.
            continue;
        }
        let entry = module.entry();
        let argument = |device: usize, number: usize| {
            let shape = entry[entry.parameters()[number]].shape().as_array().unwrap();
            let scalar = |i: usize| Scalar::from_i64(shape.element_type(), (100 * number + 10 * device + i) as i64);
            Literal::from_fn(shape, |i| scalar(i).rounded(shape.element_type())).unwrap()
        };
        let list = |device| (0..entry.parameters().len()).map(|number| argument(device, number)).collect();
        let devices: Vec<Vec<Literal>> = (0..Grid::of(&module).unwrap().device_count()).map(list).collect();
        let expected = grid::evaluate(&module, devices.clone());
        let (ProgramForm::PerDevice, Ok(expected)) = (program_form(&module), expected) else { continue };
        match join_devices(&module) {
            Ok(joined) => {
                let leaves = |literal: &Literal| literal.leaves().into_iter().cloned().collect::<Vec<_>>();
                let expected: Vec<Vec<Literal>> = expected.iter().map(leaves).collect();
                assert_eq!(run(&joined, &devices), expected, "{text}");
                count += 1;
            }
            Err(error) => refused.push(format!("{}: {error}", module.name())),
        }
    }
    assert!(count > 25, "{count} programs");
    insta::assert_snapshot!(refused.join("\n"));
}

#[test]
fn what_cannot_be_joined_is_named() {
    let header = "HloModule m, num_partitions=2";
    let cases = [
        format!(
            "{header}\nENTRY main {{ x = f32[2] parameter(0)\n p = u32[] partition-id()\n \
             y = f32[2] custom-call(x), custom_call_target=\"Sharding\", sharding={{replicated}}\n \
             ROOT t = (f32[2], u32[]) tuple(y, p) }}"
        ),
        format!(
            "{header}\nENTRY main {{ x = f32[3] parameter(0), sharding={{devices=[2]0,1}}\n ROOT y = f32[3] negate(x) }}"
        ),
        format!(
            "{header}\nENTRY main {{ x = f32[4] parameter(0)\n ROOT y = f32[4] custom-call(x), custom_call_target=\"xla.sdy.LocalToGlobalShape\" }}"
        ),
        mixed(),
        by_hand(
            "s = (f32[4], f32[4]) collective-permute-start(x), channel_id=1, source_target_pairs={{0,1}}\n \
                 ROOT r = f32[4] collective-permute-done(s)",
            "",
        ),
    ];
    let errors: Vec<String> = cases.iter().map(|text| joined(text).unwrap_err().to_string()).collect();
    insta::assert_snapshot!(errors.join("\n"));
}
