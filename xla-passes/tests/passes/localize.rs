//! Tests of programs of each device made from programs on global values: programs in `programs/localize*.hlo`, their
//! local forms or the reasons for a refusal in snapshots. The devices compute the results of the joined program, and
//! effects happen equally often.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use xla_hlo::eval::{Evaluator, grid};
use xla_hlo::ops::{CustomCallContext, CustomCallRegistry};
use xla_hlo::{
    ArrayShape, ElementKind, Error, LeafSharding, Literal, Scalar, Shape, ShardingKind, VerifiedModule, linear_index,
    multi_index, text,
};
use xla_passes::join::{Joined, join_devices, join_each_device};
use xla_passes::{Localized, localize, localize_by_gathers};

use crate::join::modules::modules;

/// Returns a global array whose elements depend on the seed and the parameter.
fn argument(shape: &ArrayShape, seed: usize, parameter: usize) -> Literal {
    let value = |i: usize| {
        let number = (3 * seed + 5 * parameter + i) as i64 % 23;
        match shape.element_type().kind() {
            ElementKind::Float | ElementKind::Complex => Scalar::from_i64(shape.element_type(), number - 3),
            _ => Scalar::from_i64(shape.element_type(), number % 4),
        }
    };
    Literal::from_fn(shape, value).unwrap()
}

/// Parts of an array over devices.
struct Parts {
    /// Number of parts along each dimension.
    dims: Vec<usize>,
    /// Devices of each part; all devices if the array is replicated.
    devices: Vec<Vec<usize>>,
}

impl Parts {
    fn of(sharding: &LeafSharding, rank: usize, devices: usize) -> Parts {
        let ShardingKind::Tiled(tiled) = &sharding.kind else {
            return Parts { dims: vec![1; rank], devices: vec![(0..devices).collect()] };
        };
        let sizes: Vec<usize> = tiled.tile_dims.iter().map(|&size| size as usize).collect();
        let listed: Vec<usize> = tiled.listed_devices().unwrap().into_iter().map(|device| device as usize).collect();
        let copies = sizes[rank..].iter().product();
        Parts { dims: sizes[..rank].to_vec(), devices: listed.chunks(copies).map(<[usize]>::to_vec).collect() }
    }

    /// Returns the part of a device.
    fn part(&self, whole: &Literal, device: usize) -> Literal {
        let shape = whole.array_shape();
        let number = self.devices.iter().position(|devices| devices.contains(&device)).unwrap();
        let place = multi_index(&self.dims, number);
        let sizes: Vec<usize> = shape.dims().iter().zip(&self.dims).map(|(size, parts)| size / parts).collect();
        let element = |i: usize| {
            let index = multi_index(&sizes, i).into_iter().zip(&place).zip(&sizes);
            let index: Vec<usize> = index.map(|((i, place), size)| place * size + i).collect();
            whole.get(linear_index(shape.dims(), &index))
        };
        Literal::from_fn(&ArrayShape::new(shape.element_type(), sizes.clone()), element).unwrap()
    }

    /// Assembles an array from the parts of all devices. Copies of a part must be equal.
    fn whole(&self, parts: &[&Literal], shape: &ArrayShape) -> Literal {
        for devices in &self.devices {
            assert!(devices.iter().all(|&device| parts[device] == parts[devices[0]]), "{devices:?}: {parts:?}");
        }
        let sizes = parts[0].array_shape().dims();
        let element = |i: usize| {
            let index = multi_index(shape.dims(), i);
            let place: Vec<usize> = index.iter().zip(sizes).map(|(i, size)| i / size).collect();
            let inner: Vec<usize> = index.iter().zip(sizes).map(|(i, size)| i % size).collect();
            parts[self.devices[linear_index(&self.dims, &place)][0]].get(linear_index(sizes, &inner))
        };
        Literal::from_fn(&ArrayShape::new(shape.element_type(), shape.dims()), element).unwrap()
    }
}

/// Handlers of custom calls: `count` counts its calls, and returns a zero for each of its results.
fn counting() -> (CustomCallRegistry, Arc<AtomicUsize>) {
    let (registry, count) = (CustomCallRegistry::new(), Arc::new(AtomicUsize::new(0)));
    let counter = count.clone();
    let handler = move |_: &CustomCallContext<'_>, _: Vec<Literal>| {
        counter.fetch_add(1, Ordering::Relaxed);
        Ok(Literal::tuple(Vec::new()))
    };
    registry.register("count", Arc::new(handler));
    (registry, count)
}

/// Runs the program of each device and the joined program on equal global arguments, and compares the global results
/// and the numbers of effects.
fn check(name: &str, module: &VerifiedModule, local: &Localized, seed: usize) {
    let joined = join_devices(module).unwrap();
    let (devices, asked) = (joined.devices, module.entry_layout());
    let leaves = asked.parameters.iter().flat_map(|shape| shape.leaves());
    let wholes: Vec<Literal> =
        leaves.enumerate().map(|(i, (_, leaf))| argument(leaf.as_array().unwrap(), seed, i)).collect();
    let parts = |sharding: &LeafSharding, array: &ArrayShape| Parts::of(sharding, array.rank(), devices);

    let of_device = |device: usize| {
        let part =
            |(whole, sharding): (&Literal, &LeafSharding)| parts(sharding, whole.array_shape()).part(whole, device);
        let mut leaves = wholes.iter().zip(&local.arguments).map(part);
        let grouped = asked.parameters.iter().map(|shape| grouped(shape, &mut leaves));
        grouped.collect::<Vec<Literal>>()
    };
    let (registry, local_effects) = counting();
    let evaluator = |_| Evaluator::new(&local.module).with_custom_calls(&registry);
    let results = grid::evaluate_with(&local.module, (0..devices).map(of_device).collect(), evaluator).unwrap();

    let lists: Vec<Vec<Literal>> = (0..devices).map(of_device).collect();
    if let Ok(each) = join_each_device(&local.module) {
        assert_eq!(each_device(&each, &lists), results, "{name}: devices in one program");
    }

    let mut arguments: Vec<Option<Literal>> = vec![None; joined.module.entry().parameters().len()];
    for (whole, spread) in wholes.iter().zip(&joined.arguments) {
        let parts = parts(&spread.sharding, whole.array_shape());
        for (device, &number) in spread.parts.iter().enumerate() {
            arguments[number].get_or_insert_with(|| parts.part(whole, device));
        }
    }
    let (registry, effects) = counting();
    let mut evaluator = Evaluator::new(&joined.module).with_custom_calls(&registry);
    let expected = evaluator.call_entry(arguments.into_iter().map(Option::unwrap).collect()).unwrap().into_elements();

    assert_eq!(local_effects.load(Ordering::Relaxed), effects.load(Ordering::Relaxed), "{name}: effects");
    let arrays: Vec<&ArrayShape> = asked.result.leaves().into_iter().filter_map(|(_, leaf)| leaf.as_array()).collect();
    for (i, array) in arrays.into_iter().enumerate() {
        let actual: Vec<&Literal> = results.iter().map(|result| result.leaves()[i]).collect();
        let of_joined = &joined.results[i];
        let expected: Vec<&Literal> = of_joined.parts.iter().map(|&number| &expected[number]).collect();
        let actual = parts(&local.results[i], array).whole(&actual, array);
        assert_eq!(actual, parts(&of_joined.sharding, array).whole(&expected, array), "{name}: result {i}");
    }
}

/// Runs a program that does the work of all devices on arguments of each device. Returns the result of each.
fn each_device(joined: &Joined, lists: &[Vec<Literal>]) -> Vec<Literal> {
    let mut arguments: Vec<Option<Literal>> = vec![None; joined.module.entry().parameters().len()];
    for (device, list) in lists.iter().enumerate() {
        let leaves = list.iter().flat_map(Literal::leaves);
        for (leaf, spread) in leaves.zip(&joined.arguments) {
            arguments[spread.parts[device]] = Some(leaf.clone());
        }
    }
    let (registry, _) = counting();
    let mut evaluator = Evaluator::new(&joined.module).with_custom_calls(&registry);
    let results = evaluator.call_entry(arguments.into_iter().map(Option::unwrap).collect()).unwrap().into_elements();
    let of_device = |device: usize| {
        let mut leaves = joined.results.iter().map(|spread| results[spread.parts[device]].clone());
        grouped(&joined.shape.result, &mut leaves)
    };
    (0..lists.len()).map(of_device).collect()
}

/// Builds a value of that shape from arrays in depth-first order.
fn grouped(shape: &Shape, leaves: &mut dyn Iterator<Item = Literal>) -> Literal {
    match shape {
        Shape::Tuple(elements) => Literal::tuple(elements.iter().map(|element| grouped(element, leaves)).collect()),
        _ => leaves.next().unwrap(),
    }
}

/// Localizes the programs of a file, and checks them unless they are refused.
fn programs(file: &str, source: &str) {
    programs_by(file, source, localize);
}

fn programs_by(file: &str, source: &str, localize: fn(&VerifiedModule) -> xla_hlo::Result<Localized>) {
    let mut report = String::new();
    for case in source.split("// === ").skip(1) {
        let (name, source) = case.split_once('\n').unwrap();
        let module = text::parse_module(source).and_then(VerifiedModule::new).unwrap_or_else(|e| panic!("{name}: {e}"));
        let outcome = localize(&module);
        assert_eq!(outcome.is_err(), name.starts_with("refused"), "{name}: {outcome:?}");
        writeln!(report, "// === {name}").unwrap();
        let local = match outcome {
            Ok(local) => local,
            Err(error) => {
                writeln!(report, "{error}\n").unwrap();
                continue;
            }
        };
        let [arguments, results] = [&local.arguments, &local.results]
            .map(|list| list.iter().map(|sharding| format!("{:?}", sharding.kind)).collect::<Vec<_>>().join(" "));
        writeln!(report, "// arguments: {arguments}\n// results: {results}\n{}", &*local.module).unwrap();
        // Joining reduces partial values.
        if !name.ends_with("not yet reduced") {
            (0..5).for_each(|seed| check(name, &module, &local, seed));
        }
    }
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(file, report);
    });
}

#[test]
fn manual_computations_run_on_each_device() {
    programs("localize", include_str!("programs/localize.hlo"));
}

#[test]
fn operations_that_keep_split_dimensions_run_on_each_device() {
    programs("localize_operations", include_str!("programs/localize_operations.hlo"));
}

#[test]
fn loops_and_branches_around_manual_computations_run_on_each_device() {
    programs("localize_loops", include_str!("programs/localize_loops.hlo"));
}

#[test]
fn programs_of_jax_with_loops_around_manual_computations_run_on_each_device() {
    programs("localize_jax", include_str!("programs/localize_jax.hlo"));
}

#[test]
fn values_are_gathered_where_devices_must_communicate() {
    programs_by("localize_gathers", include_str!("programs/localize_gathers.hlo"), localize_by_gathers);
}

#[test]
fn programs_that_are_refused_without_gathers_agree_with_gathers() {
    let mut gathered = Vec::new();
    for source in [
        include_str!("programs/localize.hlo"),
        include_str!("programs/localize_operations.hlo"),
        include_str!("programs/localize_loops.hlo"),
        include_str!("programs/localize_jax.hlo"),
    ] {
        for case in source.split("// === ").skip(1) {
            let (name, source) = case.split_once('\n').unwrap();
            let module = parsed(source);
            let Ok(local) = localize_by_gathers(&module) else {
                assert!(name.starts_with("refused"), "{name}");
                continue;
            };
            // Arrays of dynamic size have no parts of equal size. There is no handler of calls without effects.
            let is_static = |(_, leaf): (_, &Shape)| leaf.as_array().is_none_or(ArrayShape::is_static);
            let is_static = module.entry_layout().result.leaves().into_iter().all(is_static);
            let is_call = source.contains("custom_call_target=\"sum\"");
            if join_devices(&module).is_ok() && is_static && !is_call && !name.ends_with("not yet reduced") {
                check(name, &module, &local, 1);
            }
            if localize(&module).is_err() {
                gathered.push(name);
            }
        }
    }
    insta::assert_snapshot!("localize_refused_but_gathered", gathered.join("\n"));
}

fn parsed(text: &str) -> VerifiedModule {
    text::parse_module(text).and_then(VerifiedModule::new).unwrap()
}

/// Checks that localizing and joining a program exceed a limit.
fn assert_exhausted(module: &VerifiedModule, message: &str) {
    for error in [localize(module).unwrap_err(), join_devices(module).unwrap_err()] {
        assert!(matches!(error, Error::ResourceExhausted(_)), "{error}");
        assert!(error.to_string().contains(message), "{error}");
    }
}

/// Functions around a manual computation that each call the previous one twice.
fn nested_calls(levels: usize) -> VerifiedModule {
    let edge = |name: &str, side: &str| {
        format!(
            r##"custom_call_target="xla.sdy.{name}", custom_call_has_side_effect=true, frontend_attributes={{xla.sdy.{side}_shardings="#sdy.sharding_per_value<[<@mesh, [{{}}]>]>",xla.sdy.manual_axes="#sdy<manual_axes{{\"x\"}}>"}}"##
        )
    };
    let (enter, leave) = (edge("GlobalToLocalShape", "in"), edge("LocalToGlobalShape", "out"));
    let mut text = format!(
        r##"HloModule m, num_partitions=2, frontend_attributes={{xla.sdy.meshes="{{mesh = #sdy.mesh<[\"x\"=2]>}}"}}
f0 {{ x = f32[4] parameter(0)
 l = f32[4] custom-call(x), {enter}
 ROOT g = f32[4] custom-call(l), {leave} }}
"##
    );
    for level in 1..=levels {
        let (name, before) = (format!("f{level}"), format!("f{}", level - 1));
        writeln!(text, "{name} {{ x = f32[4] parameter(0)\n y = f32[4] call(x), to_apply={before}").unwrap();
        writeln!(text, " ROOT z = f32[4] call(y), to_apply={before} }}").unwrap();
    }
    text += &format!("ENTRY main {{ x = f32[4] parameter(0)\n ROOT y = f32[4] call(x), to_apply=f{levels} }}");
    parsed(&text)
}

#[test]
fn nested_calls_around_manual_computations_are_limited() {
    let few = nested_calls(3);
    assert!(localize(&few).is_ok() && join_devices(&few).is_ok());
    for (levels, message) in [(60, "more than 262144 instructions"), (130, "more than 128 levels deep")] {
        assert_exhausted(&nested_calls(levels), message);
    }
}

#[test]
fn numbers_of_devices_are_limited() {
    let one = |count: u64| [format!("num_partitions={count}"), format!("replica_count={count}")];
    let both = "replica_count=33, num_partitions=32".to_string();
    for header in [1025, 1 << 40].into_iter().flat_map(one).chain([both]) {
        let text = format!("HloModule m, {header}\nENTRY main {{ ROOT x = f32[4] parameter(0) }}");
        assert_exhausted(&parsed(&text), "for more than 1024 devices");
    }
}

/// Branches on a state of two values, one of which is split. Each one has the previous one as both of its branches.
fn nested_branches(levels: usize) -> VerifiedModule {
    let state = "(pred[], f32[2], f32[2])";
    let mut text = format!(
        "HloModule m, num_partitions=2, allow_spmd_sharding_propagation_to_output={{true}}
b0 {{ s = {state} parameter(0)
 p = pred[] get-tuple-element(s), index=0
 x = f32[2] get-tuple-element(s), index=1
 ROOT t = {state} tuple(p, x, x) }}\n"
    );
    for level in 1..=levels {
        let before = level - 1;
        writeln!(text, "c{level} {{ s = {state} parameter(0)").unwrap();
        writeln!(text, " ROOT w = {state} while(s), condition=more, body=b{before} }}").unwrap();
        writeln!(text, "b{level} {{ s = {state} parameter(0)\n p = pred[] get-tuple-element(s), index=0").unwrap();
        writeln!(text, " v = {state} while(s), condition=more, body=b{before}").unwrap();
        writeln!(
            text,
            " ROOT w = {state} conditional(p, v, s), true_computation=c{level}, false_computation=b{before} }}"
        )
        .unwrap();
    }
    let more = format!("more {{ s = {state} parameter(0)\n ROOT p = pred[] get-tuple-element(s), index=0 }}\n");
    let text = text.replacen("b0 {", &format!("{more}b0 {{"), 1);
    parsed(&format!(
        "{text}ENTRY main {{ x = f32[2] parameter(0), sharding={{devices=[2]<=[2]}}
 k = f32[2] constant({{1, 2}})
 p = pred[] constant(false)
 t = {state} tuple(p, x, k)
 w = {state} conditional(p, t, t), true_computation=b{levels}, false_computation=b{levels}
 ROOT y = f32[2] get-tuple-element(w), index=2 }}"
    ))
}

#[test]
fn loops_and_branches_share_computations_as_before() {
    let module = nested_branches(40);
    let local = localize(&module).unwrap();
    let (before, after) = (module.instruction_count(), local.module.instruction_count());
    assert!(after <= 4 * before, "{before} instructions, {after} of each device");
    check("nested branches", &nested_branches(2), &localize(&nested_branches(2)).unwrap(), 0);
}

/// A loop that passes each element of its state to the next one. The first one is split.
fn chain(count: usize) -> VerifiedModule {
    let state = format!("(s32[], {})", vec!["f32[2]"; count].join(", "));
    let list = |element: &dyn Fn(usize) -> String| (0..count).map(element).collect::<Vec<_>>().join(", ");
    let mut text = format!(
        "HloModule m, num_partitions=2, allow_spmd_sharding_propagation_to_output={{true}}
more {{ s = {state} parameter(0)
 i = s32[] get-tuple-element(s), index=0
 n = s32[] constant(3)
 ROOT p = pred[] compare(i, n), direction=LT }}
body {{ s = {state} parameter(0)
 i = s32[] get-tuple-element(s), index=0
 one = s32[] constant(1)
 j = s32[] add(i, one)\n"
    );
    for i in 0..count {
        writeln!(text, " e{i} = f32[2] get-tuple-element(s), index={}", i + 1).unwrap();
    }
    let (shifted, init) = (list(&|i| format!("e{}", i.max(1) - 1)), list(&|i| ["x", "k"][i.min(1)].to_string()));
    parsed(&format!(
        "{text} ROOT r = {state} tuple(j, {shifted}) }}
ENTRY main {{ x = f32[2] parameter(0), sharding={{devices=[2]<=[2]}}
 k = f32[2] constant({{1, 2}})
 i = s32[] constant(0)
 t = {state} tuple(i, {init})
 w = {state} while(t), condition=more, body=body
 ROOT y = f32[2] get-tuple-element(w), index={count} }}"
    ))
}

#[test]
fn elements_of_a_state_that_become_split_one_after_another_take_one_iteration_of_the_search() {
    assert!(localize(&chain(1000)).is_ok());
    for count in 1..6 {
        check("a chain", &chain(count), &localize(&chain(count)).unwrap(), 0);
    }
}

/// A function and an entry in which `f` runs after an annotation, and the annotation after `e`.
const ORDERED: &str = r#"HloModule m, num_partitions=2
g { d = f32[4] parameter(0)
 e = f32[4] exponential(d)
 c = f32[4] custom-call(d), custom_call_target="Sharding", sharding={replicated}, control-predecessors={e}
 f = f32[4] negate(d), control-predecessors={c}
 ROOT r = f32[4] add(e, f) }
ENTRY main { x = f32[4] parameter(0), sharding={replicated}
 d = f32[4] call(x), to_apply=g
 e = f32[4] exponential(d)
 c = f32[4] custom-call(d), custom_call_target="Sharding", sharding={replicated}, control-predecessors={e}
 f = f32[4] negate(d), control-predecessors={c}
 ROOT r = f32[4] add(e, f), sharding={replicated} }"#;

#[test]
fn control_dependencies_pass_through_annotations() {
    let module = parsed(ORDERED);
    for new in [localize(&module).unwrap().module, join_devices(&module).unwrap().module] {
        for id in new.ids() {
            let graph = &new[id];
            let after = graph.iter().find(|(_, instruction)| instruction.name() == "f").unwrap().1;
            let mut before = after.control_predecessors().iter().map(|&id| graph[id].name());
            assert!(before.any(|name| name == "e"), "{}: {}", graph.name(), &*new);
        }
    }
}

/// Programs that are joined in their local form only, on platforms without collectives.
#[test]
fn local_forms_without_collectives_are_joined() {
    for source in modules(include_str!("programs/localize_then_join.hlo")) {
        let module = VerifiedModule::new(text::parse_module(&source).unwrap()).unwrap();
        assert!(join_devices(&module).is_err());
        let local = localize(&module).unwrap().module;
        let parameters = local.entry_layout().parameters;
        let list = |device: usize| {
            let arrays = parameters.iter().map(|shape| shape.as_array().unwrap()).enumerate();
            arrays.map(|(i, array)| argument(array, device, i)).collect::<Vec<Literal>>()
        };
        let lists: Vec<Vec<Literal>> = (0..4).map(list).collect();
        let expected = grid::evaluate(&local, lists.clone()).unwrap();
        assert_ne!(expected[0], expected[1]);
        assert_eq!(each_device(&join_each_device(&local).unwrap(), &lists), expected, "{source}");
    }
}
