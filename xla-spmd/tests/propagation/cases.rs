//! Cases that jaxlib does not produce: barriers, groups, several meshes, and programs that are refused.

use xla_hlo::text::parse_module;
use xla_hlo::{Module, Result};
use xla_spmd::{Shardings, propagate};

const HEADER: &str = concat!(
    r#"HloModule m, num_partitions=8, frontend_attributes={xla.sdy.meshes={mesh = #sdy.mesh<["x"=2, "y"=4]>, "#,
    r#"other = #sdy.mesh<["a"=8]>, one = #sdy.mesh<[], device_ids=[3]>}}"#
);

fn module(text: &str) -> Module {
    parse_module(&format!("{HEADER}\n{text}")).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Attribute of a parameter or an operation with this sharding.
fn sharding(text: &str) -> String {
    format!(r##"frontend_attributes={{xla.sdy.sharding="#sdy.sharding{}"}}"##, text.replace('"', r#"\""#))
}

fn run(text: &str) -> (Module, Result<Shardings>) {
    let module = module(text);
    let shardings = propagate(&module);
    (module, shardings)
}

/// Returns the sharding of an array of the entry computation as text; `-` without one.
fn of(module: &Module, shardings: &Shardings, name: &str) -> String {
    let id = module.entry().find(name).unwrap_or_else(|| panic!("no {name}"));
    let list = shardings.of(module.entry_id(), id);
    list[0].as_ref().map_or("-".to_string(), ToString::to_string)
}

#[test]
fn barriers_let_axes_pass_in_their_direction() {
    // 0: none, 1: forward, 2: backward, 3: both.
    for (direction, forward, backward) in [(0, false, false), (1, true, false), (2, false, true), (3, true, true)] {
        let (a, d) = (sharding(r#"<@mesh, [{"x"}, {?}]>"#), sharding(r#"<@mesh, [{?}, {"y"}]>"#));
        let (module, shardings) = run(&format!(
            "ENTRY e {{
              a = f32[8,8] parameter(0), {a}
              d = f32[8,8] parameter(1), {d}
              b = f32[8,8] custom-call(a), custom_call_target=\"xla.sdy.PropagationBarrier\",
                frontend_attributes={{xla.sdy.allowed_direction=\"{direction} : i32\"}}
              ROOT r = f32[8,8] add(b, d)
            }}"
        ));
        let shardings = shardings.expect("shardings");
        assert_eq!(of(&module, &shardings, "r").contains("\"x\""), forward, "direction {direction}");
        assert_eq!(of(&module, &shardings, "a").contains("\"y\""), backward, "direction {direction}");
    }
}

#[test]
fn members_of_a_group_have_one_sharding() {
    let a = sharding(r#"<@mesh, [{"x"}, {}]>"#);
    let group = concat!(
        r#"custom_call_target="xla.sdy.ShardingGroup", custom_call_has_side_effect=true, "#,
        r#"frontend_attributes={xla.sdy.sharding_group_id="7 : i64"}"#
    );
    let (module, shardings) = run(&format!(
        "ENTRY e {{
          a = f32[8,8] parameter(0), {a}
          b = f32[8,8] parameter(1)
          s = f32[8,8] sine(a)
          c = f32[8,8] cosine(b)
          g = () custom-call(s), {group}
          h = () custom-call(c), {group}
          ROOT r = (f32[8,8], f32[8,8]) tuple(s, c)
        }}"
    ));
    let shardings = shardings.expect("shardings");
    assert!(of(&module, &shardings, "c").starts_with(r#"<@mesh, [{"x""#), "{}", of(&module, &shardings, "c"));
    assert_eq!(of(&module, &shardings, "c"), of(&module, &shardings, "s"));
}

#[test]
fn different_meshes_and_single_devices_do_not_mix() {
    for (b, expected) in [
        (r#"<@other, [{"a"}, {}]>"#, "-"),
        (r#"<@one, [{}, {}]>"#, "-"),
        (r#"<@mesh, [{}, {"y"}]>"#, r#"<@mesh, [{"x", ?}, {"y", ?}]>"#),
    ] {
        let (a, b) = (sharding(r#"<@mesh, [{"x"}, {}]>"#), sharding(b));
        let (module, shardings) = run(&format!(
            "ENTRY e {{
              a = f32[8,8] parameter(0), {a}
              b = f32[8,8] parameter(1), {b}
              ROOT r = f32[8,8] add(a, b)
            }}"
        ));
        assert_eq!(of(&module, &shardings.expect("shardings"), "r"), expected);
    }
}

#[test]
fn programs_that_are_not_supported_are_named() {
    let manual = concat!(
        r#"custom_call_target="xla.sdy.GlobalToLocalShape", frontend_attributes={"#,
        r##"xla.sdy.in_shardings="#sdy.sharding_per_value<[<@mesh, [{\"x\"}]>]>", "##,
        r##"xla.sdy.manual_axes="#sdy<manual_axes{\"x\"}>"}"##
    );
    for (text, message) in [
        (
            "f { p = f32[8] parameter(0) ROOT s = f32[8] sine(p) }
             ENTRY e { a = f32[8] parameter(0) b = f32[8] call(a), to_apply=f ROOT c = f32[8] call(b), to_apply=f }"
                .to_string(),
            "%c: propagation of shardings through computation %f, which has several callers",
        ),
        (
            format!("ENTRY e {{ a = f32[8] parameter(0) ROOT l = f32[4] custom-call(a), {manual} }}"),
            "propagation into a region that is manual along [\"x\"] only",
        ),
        (
            format!("ENTRY e {{ ROOT a = f32[8] parameter(0), {} }}", sharding(r#"<@mesh, [{"x"}, {}]>"#)),
            "has 2 dimensions, the array has 1",
        ),
        (
            format!("ENTRY e {{ ROOT a = f32[8] parameter(0), {} }}", sharding(r#"<@mesh, [{"z"}]>"#)),
            "the mesh has no axis 'z'",
        ),
        (
            format!("ENTRY e {{ ROOT a = f32[8,8] parameter(0), {} }}", sharding(r#"<@mesh, [{"x"}, {"x"}]>"#)),
            "uses axis x twice",
        ),
    ] {
        let error = run(&text).1.expect_err(&text).to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

/// Custom call with these arguments and target, and one frontend attribute.
fn call(arguments: &str, target: &str, name: &str, value: &str) -> String {
    let value = value.replace('"', r#"\""#);
    format!(
        r#"custom-call({arguments}), custom_call_target="{target}", frontend_attributes={{xla.sdy.{name}="{value}"}}"#
    )
}

#[test]
fn calls_for_sharding_need_their_arrays() {
    let constraint = |arguments: &str| call(arguments, "Sharding", "sharding", "#sdy.sharding<@mesh, [{}, {}]>");
    let barrier = |arguments: &str| call(arguments, "xla.sdy.PropagationBarrier", "allowed_direction", "1 : i32");
    let group = |arguments: &str| call(arguments, "xla.sdy.ShardingGroup", "sharding_group_id", "0 : i64");
    let result = |arguments: &str| {
        call(arguments, "xla.sdy.FuncResultSharding", "sharding", "#sdy.sharding_per_value<[<@mesh, [{}, {}]>]>")
    };
    for instruction in [
        format!("f32[8,8] {}", constraint("")),
        format!("() {}", constraint("a")),
        format!("f32[8,8] {}", constraint("a, a")),
        format!("f32[64] {}", constraint("a")),
        format!("f32[8,8] {}", constraint("t")),
        format!("f32[8,8] {}", barrier("")),
        format!("() {}", barrier("a")),
        format!("() {}", group("")),
        format!("f32[8,8] {}", result("")),
        r#"f32[8,8] custom-call(), custom_call_target="xla.sdy.DataFlowEdge""#.to_string(),
    ] {
        let text = format!(
            "ENTRY e {{ a = f32[8,8] parameter(0) t = (f32[8,8], f32[8,8]) tuple(a, a) c = {instruction}
             ROOT r = (f32[8,8]) tuple(a) }}"
        );
        let error = run(&text).1.expect_err(&text).to_string();
        assert!(error.contains("%c: the custom call needs one operand"), "{text}: {error}");
    }
    let text =
        r#"ENTRY e { ROOT c = f32[8] custom-call(), custom_call_target="SPMDFullToShardShape", sharding={manual} }"#;
    let error = run(text).1.expect_err(text).to_string();
    assert!(error.contains("%c, custom call \"SPMDFullToShardShape\": one operand is needed"), "{error}");
}

#[test]
fn stated_rules_without_a_factor_are_refused() {
    for (rule, message) in [
        ("<([i, ])->([i, j]) {i=8, j=8}>", "has no factor for a dimension of size 8"),
        ("<([i, i])->([i, j]) {i=8, j=8}>", "uses a factor twice in one array"),
    ] {
        let (a, call) = (sharding(r#"<@mesh, [{?}, {"x"}]>"#), call("a", "f", "sharding_rule", rule));
        let text = format!("ENTRY e {{ a = f32[8,8] parameter(0), {a} ROOT r = f32[8,8] {call} }}");
        let error = run(&text).1.expect_err(rule).to_string();
        assert!(error.contains(&format!("%r: the sharding rule {rule} of %r {message}")), "{error}");
    }
}

#[test]
fn meshes_beyond_the_limit_are_refused() {
    let text = r##"HloModule m, frontend_attributes={xla.sdy.meshes={big = #sdy.mesh<["x"=4294967296, "y"=4294967296]>}}
        ENTRY e {
          a = f32[8,8] parameter(0), frontend_attributes={xla.sdy.sharding="#sdy.sharding<@big, [{\"x\", \"y\"}, {}]>"}
          ROOT r = f32[8,8] sine(a)
        }"##;
    let error = propagate(&parse_module(text).expect("a module")).expect_err("too many devices").to_string();
    assert!(error.contains("more than 1048576 devices"), "{error}");
}

#[test]
fn manual_regions_need_all_axes_by_name() {
    let region = |mesh: &str, axes: &str| {
        let (mesh, axes) = (mesh.replace('"', r#"\""#), axes.replace('"', r#"\""#));
        run(&format!(
            r##"ENTRY e {{ a = f32[8] parameter(0)
             ROOT l = f32[8] custom-call(a), custom_call_target="xla.sdy.GlobalToLocalShape", frontend_attributes={{
               xla.sdy.in_shardings="#sdy.sharding_per_value<[<{mesh}, [{{}}]>]>",
               xla.sdy.manual_axes="#sdy<manual_axes{{{axes}}}>"}} }}"##
        ))
        .1
    };
    for axes in [r#""x", "x""#, r#""x", "z""#] {
        let error = region("@mesh", axes).expect_err(axes).to_string();
        assert!(error.contains("propagation into a region that is manual along"), "{axes}: {error}");
    }
    region("@mesh", r#""y", "x""#).expect("all axes");
    region(r#"mesh<["x"=8, "y"=1]>"#, r#""x""#).expect("all axes but one of size 1");
}

#[test]
fn members_of_a_group_have_one_rank() {
    let group = |name: &str| call(name, "xla.sdy.ShardingGroup", "sharding_group_id", "7 : i64");
    let text = format!(
        "ENTRY e {{
          a = f32[8,8] parameter(0), {}
          b = f32[8] parameter(1)
          g = () {}
          h = () {}
          ROOT r = (f32[8,8], f32[8]) tuple(a, b)
        }}",
        sharding(r#"<@mesh, [{"x"}, {}]>"#),
        group("a"),
        group("b")
    );
    let error = run(&text).1.expect_err("different ranks").to_string();
    assert!(error.contains("sharding group 7 has members of rank 2 and 1"), "{error}");
}

#[test]
fn copies_of_constants_are_limited() {
    // Each value of the chain is used once more, by an operation that is not constant.
    let mut text = "ENTRY e {\n a = f32[8] parameter(0)\n c0 = f32[8] iota(), iota_dimension=0\n".to_string();
    for i in 1..600 {
        text += &format!(" c{i} = f32[8] negate(c{})\n r{i} = f32[8] add(a, c{i})\n", i - 1);
    }
    let results: Vec<String> = (1..600).map(|i| format!("r{i}")).collect();
    let shape = vec!["f32[8]"; results.len()].join(", ");
    text += &format!(" ROOT t = ({shape}) tuple({})\n}}", results.join(", "));
    let error = run(&text).1.expect_err("too many copies").to_string();
    assert!(error.contains("copies more than 131072 constants"), "{error}");
}
