//! Tests of shardings: text, conversion to XLA's tiles, and their location in modules.

use xla_hlo::sdy::{
    Direction, ManualAxes, Mesh, MeshName, Meshes, PerValue, Role, TensorSharding, from_tiles, meshes, role, shardings,
    tiles,
};
use xla_hlo::text::parse_module;
use xla_hlo::{InstrId, Module, Sharding};

fn module(text: &str) -> Module {
    parse_module(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn text_reads_back_as_itself() {
    for text in [
        r#"<@mesh, [{"x"}p1, {"y", ?}p2]>"#,
        r#"<@mesh, [{"x":(1)2}, {"x":(2)2}], replicated={"y"}>"#,
        r#"<@mesh, [{?}, {}], unreduced={"x", "y"}>"#,
        r#"<@mesh, [{"x"}], replicated={"y"}, unreduced=max{"z"}>"#,
        r#"<@mesh, [], unreduced=min{"z"}>"#,
        r#"<@"a b", []>"#,
        r#"<mesh<["z"=2, "c\22d"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>, [{"z"}]>"#,
    ] {
        let read = TensorSharding::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(read.to_string(), text);
        assert_eq!(TensorSharding::parse(&format!("#sdy.sharding{text}")).expect(text), read);
    }
    let list = r#"#sdy.sharding_per_value<[<@mesh, [{"x"}]>, <@mesh, []>]>"#;
    assert_eq!(PerValue::parse(list).expect("shardings").to_string(), list);
    let axes = r#"#sdy<manual_axes{"x", "y"}>"#;
    assert_eq!(ManualAxes::parse(axes).expect("axes").to_string(), axes);
    let meshes = r#"{max = #sdy.mesh<[], device_ids=[3]>, mesh = #sdy.mesh<["x"=4, "y"=2]>}"#;
    assert_eq!(Meshes::parse(meshes).expect("meshes").to_string(), meshes);
}

#[test]
fn wrong_text_is_named_with_its_place() {
    for (text, message) in [
        (r#"<@mesh [{"x"}]>"#, "expected `,` at byte 7 of a sharding"),
        (r#"<@mesh, [{?, "x"}]>"#, "expected `}` at byte 12 of a sharding"),
        (r#"<@mesh, [{"x}]>"#, "the string at byte 10 of a sharding is broken"),
        (r#"<@mesh, [{"x":(1)}]>"#, "expected the size of the part"),
        (r#"<@mesh, [], more={}>"#, "expected `unreduced`"),
        (r#"<@mesh, []> x"#, "expected the end of the text"),
    ] {
        let error = TensorSharding::parse(text).expect_err(text).to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
    let error = Meshes::parse("{a = #sdy.mesh<[]>, a = #sdy.mesh<[]>}").expect_err("twice").to_string();
    assert!(error.contains("mesh a before byte"), "{error}");
}

/// The expected tiles are the output of jaxlib's conversion.
#[test]
fn tiles_are_those_of_xla() {
    let mesh = r#"<["x"=4, "y"=2]>"#;
    let cube = r#"<["x"=4, "y"=2, "z"=2]>"#;
    for (mesh, sharding, expected) in [
        (mesh, r#"[{"x"}, {"y"}]"#, "{devices=[4,2]<=[8]}"),
        (mesh, r#"[{}, {"x", "y"}]"#, "{devices=[1,8]<=[8]}"),
        (mesh, r#"[{"x"}, {?}]"#, "{devices=[4,1,2]<=[8] last_tile_dim_replicate}"),
        (mesh, r#"[{}, {}]"#, "{replicated}"),
        (mesh, r#"[{"y"}, {"x"}]"#, "{devices=[2,4]<=[4,2]T(1,0)}"),
        (mesh, r#"[{"y", "x"}, {}]"#, "{devices=[8,1]<=[4,2]T(1,0)}"),
        (mesh, r#"[{"x":(1)2}, {"x":(2)2}]"#, "{devices=[2,2,2]<=[8] last_tile_dim_replicate}"),
        (mesh, r#"[{"x":(2)2}, {}]"#, "{devices=[2,1,4]<=[2,2,2]T(1,0,2) last_tile_dim_replicate}"),
        (mesh, r#"[{"x":(2)2, "y"}, {}]"#, "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}"),
        (mesh, r#"[{"x"}, {}], unreduced={"y"}"#, "{devices=[4,1,2]<=[8] last_tile_dims={unreduced}}"),
        (cube, r#"[{"x"}, {}], unreduced={"y"}"#, "{devices=[4,1,2,2]<=[16] last_tile_dims={unreduced, replicated}}"),
        (cube, r#"[{}, {}], unreduced={"x", "y", "z"}"#, "{unreduced}"),
        (cube, r#"[], unreduced={"x"}"#, "{devices=[4,4]<=[16] last_tile_dims={unreduced, replicated}}"),
        (cube, r#"[{"z"}, {"x"}]"#, "{devices=[2,4,2]<=[8,2]T(1,0) last_tile_dim_replicate}"),
        (cube, r#"[{"z"}, {"x"}], unreduced={"y"}"#, "{devices=[2,4,2]<=[8,2]T(1,0) last_tile_dims={unreduced}}"),
        (r#"<["a"=8], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>"#, r#"[{"a"}, {}]"#, "{devices=[8,1]7,6,5,4,3,2,1,0}"),
        (
            r#"<["a"=8], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>"#,
            r#"[{"a":(2)2}, {"a":(4)2}]"#,
            "{devices=[2,2,2]3,7,2,6,1,5,0,4 last_tile_dim_replicate}",
        ),
        ("<[], device_ids=[3]>", "[]", "{maximal device=3}"),
        ("<[]>", "[{}, {}]", "{replicated}"),
        (r#"<["x"=1, "y"=4]>"#, r#"[{"x"}, {"y"}]"#, "{devices=[1,4]<=[4]}"),
        (r#"<["x"=1, "y"=4]>"#, r#"[{"x"}, {}]"#, "{replicated}"),
    ] {
        let mesh = Mesh::parse(mesh).expect(mesh);
        let text = format!("<@mesh, {sharding}>");
        let tiles = tiles(&TensorSharding::parse(&text).expect(&text), &mesh).expect(&text);
        let printed = module_with(Sharding::Leaf(tiles.clone()));
        assert!(printed.contains(&format!("sharding={expected}")), "{text}: {printed}");
    }
}

/// Returns a module's text with that sharding of its parameter.
fn module_with(sharding: Sharding) -> String {
    let mut module = module("ENTRY e { ROOT x = f32[8,16] parameter(0) }");
    let entry = module.entry_id();
    let root = module[entry].root();
    module.computation_mut(entry).annotations_mut(root).sharding = Some(sharding);
    module.to_string()
}

#[test]
fn wrong_shardings_are_refused() {
    for (mesh, sharding, message) in [
        (r#"<["x"=4]>"#, r#"[{"x"}, {"x"}]"#, "uses axis \"x\" twice"),
        (r#"<["x"=4]>"#, r#"[{"y"}]"#, "the mesh has no axis 'y'"),
        (r#"<["x"=4]>"#, r#"[{"x":(1)3}]"#, "axis 'x' of size 4 has no part (1)3"),
        (r#"<["x"=4], device_ids=[1]>"#, r#"[{"x"}]"#, "the mesh has 4 devices and 1 device_ids"),
        (r#"<["x"=4294967296]>"#, r#"[{"x"}]"#, "devices"),
    ] {
        let mesh = Mesh::parse(mesh).expect(mesh);
        let text = format!("<@mesh, {sharding}>");
        let error = tiles(&TensorSharding::parse(&text).expect(&text), &mesh).expect_err(&text).to_string();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn tiles_become_axes_and_the_same_tiles_again() {
    for text in [
        "{devices=[4,2]<=[8]}",
        "{devices=[2,4]<=[4,2]T(1,0)}",
        "{devices=[4,1,2]<=[8] last_tile_dim_replicate}",
        "{devices=[2,2,2]7,6,5,4,3,2,1,0 last_tile_dims={unreduced}}",
        "{maximal device=3}",
        "{replicated}",
        "{unreduced}",
    ] {
        let module = module(&format!(
            "HloModule m, num_partitions=8\nENTRY e {{ ROOT x = f32[8,16] parameter(0), sharding={text} }}"
        ));
        let instruction = &module.entry()[module.entry().root()];
        let leaf = instruction.annotations().and_then(|annotations| annotations.leaf_sharding()).expect(text);
        let (sharding, manual) = from_tiles(leaf, 2, 8).expect(text);
        assert!(manual.is_empty());
        let MeshName::Inline(mesh) = &sharding.mesh else { panic!("{sharding}") };
        let again = tiles(&sharding, mesh).expect(text);
        let (sharding_again, _) = from_tiles(&again, 2, 8).expect(text);
        assert_eq!(sharding_again, sharding, "{text}");
    }
}

fn roles(module: &Module) -> Vec<Role> {
    let entry = module.entry_id();
    let ids: Vec<InstrId> = module.entry().ids().collect();
    ids.into_iter().filter_map(|id| role(module, entry, id).expect("a role")).collect()
}

#[test]
fn instructions_have_roles() {
    let module = module(include_str!("programs/instructions_have_roles.hlo"));
    let mesh = &meshes(&module).expect("meshes").0["mesh"];
    assert_eq!(mesh.axes, [("x".to_string(), 4), ("y".to_string(), 2)]);
    let split = TensorSharding::parse(r#"<@mesh, [{"x"}, {}]>"#).expect("a sharding");
    let a = module.entry().find("a").expect("a");
    assert_eq!(shardings(&module, module.entry_id(), a).expect("shardings"), Some(vec![split.clone()]));
    let found = roles(&module);
    assert!(matches!(&found[0], Role::Constraint(sharding) if sharding.dims[0].axes.is_empty()));
    assert_eq!(found[1], Role::Group(3));
    assert_eq!(found[2], Role::Barrier(Direction::Backward));
    for found in &found[3..] {
        let (Role::GlobalToLocal(edge) | Role::LocalToGlobal(edge)) = found else { panic!("{found:?}") };
        assert_eq!((&edge.shardings[..], &edge.manual_axes[..]), (&[split.clone()][..], &["x".to_string()][..]));
    }
}

/// XLA copies the attribute of an operation with several results to its elements.
#[test]
fn an_element_of_a_tuple_has_its_own_sharding() {
    let attribute = r##"frontend_attributes={xla.sdy.sharding="#sdy.sharding_per_value<[<@mesh, [{\"x\"}]>, <@mesh, [{\"y\"}]>]>"}"##;
    let module = module(&format!(
        "HloModule m
ENTRY e {{
  a = f32[8] parameter(0)
  t = (f32[8], f32[8], f32[]) custom-call(a), custom_call_target=\"f\", {attribute}
  x = f32[8] get-tuple-element(t), index=0, {attribute}
  y = f32[8] get-tuple-element(t), index=1, {attribute}
  ROOT z = f32[] get-tuple-element(t), index=2, {attribute}
}}"
    ));
    let of = |name: &str| {
        let id = module.entry().find(name).expect(name);
        let list = shardings(&module, module.entry_id(), id).expect(name);
        list.map(|list| list.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    assert_eq!(of("t").map(|list| list.len()), Some(2));
    assert_eq!(of("x"), Some(vec![r#"<@mesh, [{"x"}]>"#.to_string()]));
    assert_eq!(of("y"), Some(vec![r#"<@mesh, [{"y"}]>"#.to_string()]));
    assert_eq!(of("z"), None);
}

/// GSPMD program that jax generates for a `shard_map` over one of two axes.
#[test]
fn instructions_of_gspmd_have_the_same_roles() {
    let module = module(include_str!("programs/instructions_of_gspmd_have_the_same_roles.hlo"));
    let found = roles(&module);
    let [Role::Constraint(constraint), Role::GlobalToLocal(into), _, Role::LocalToGlobal(out)] = &found[..] else {
        panic!("{found:?}")
    };
    assert_eq!(constraint.to_string(), r#"<mesh<["axis_0"=4, "axis_2"=2]>, [{"axis_0"}, {}]>"#);
    assert_eq!((&into.shardings[0], &into.manual_axes[..]), (constraint, &["axis_0".to_string()][..]));
    assert_eq!(out.manual_axes, ["axis_2"]);
    assert_eq!(out.shardings[0].to_string(), r#"<mesh<["axis_2"=4, "axis_3"=2]>, [{}, {}]>"#);
}
