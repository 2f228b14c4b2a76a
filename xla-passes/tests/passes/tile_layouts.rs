//! Tests of tiled layouts: the pass, and buffer assignment after it.

use xla_hlo::text::parse_module;
use xla_hlo::{ArrayShape, ElementType, Literal, Module, Scalar, VerifiedModule, eval};
use xla_passes::buffers::{BufferOptions, assign_buffers};
use xla_passes::{FusionProfile, PassContext, TargetProfile, TileProfile, stages};

fn profile() -> TargetProfile {
    let tiles = Some(TileProfile { rows: 4, columns: 8 });
    TargetProfile { tiles, fusion: FusionProfile::none(), ..TargetProfile::generic() }
}

fn compiled(text: &str) -> Module {
    let profile = profile();
    let mut module = parse_module(text).unwrap();
    stages::standard(&profile).run(&mut module, &PassContext::new(&profile)).unwrap();
    VerifiedModule::new(module).unwrap().into_inner()
}

const RESHAPED: &str = include_str!("programs/reshaped.hlo");

#[test]
fn every_array_lies_in_tiles_and_bitcasts_are_spelled_out() {
    insta::assert_snapshot!(compiled(RESHAPED), @"
    HloModule module_main, is_scheduled=true, entry_computation_layout={(f32[3,10]{1,0:T(4,8)})->s32[30]{0:T(32)}}

    ENTRY %main (x: f32[3,10]) -> s32[30] {
      %x = f32[3,10]{1,0:T(4,8)} parameter(0)
      %n = f32[3,10]{1,0:T(4,8)} negate(%x)
      %reshape.1 = f32[5,6]{1,0:T(4,8)} reshape(%n)
      %bitcast-convert = s32[5,6]{1,0:T(4,8)} bitcast-convert(%reshape.1)
      %t = s32[6,5]{1,0:T(4,8)} transpose(%bitcast-convert), dimensions={1,0}
      %constant = s32[6,5]{1,0:T(4,8)} constant({ { 1, 1, 1, 1, 1 }, { 1, 1, 1, 1, 1 }, { 1, 1, 1, 1, 1 }, { 1, 1, 1, 1, 1 }, { 1, 1, 1, 1, 1 }, { 1, 1, 1, 1, 1 } })
      %add = s32[6,5]{1,0:T(4,8)} add(%t, %constant)
      ROOT %reshape = s32[30]{0:T(32)} reshape(%add)
    }
    ");
}

#[test]
fn values_stay_the_same() {
    let shape = ArrayShape::new(ElementType::F32, [3, 10]);
    let x = Literal::from_fn(&shape, |i| Scalar::Float(i as f64 - 7.5)).unwrap();
    let expected = eval::evaluate(&parse_module(RESHAPED).unwrap(), vec![x.clone()]).unwrap();
    assert_eq!(eval::evaluate(&compiled(RESHAPED), vec![x]).unwrap(), expected);
}

#[test]
fn buffers_have_room_for_whole_tiles() {
    let module = compiled(RESHAPED);
    let assignment = assign_buffers(&module, &BufferOptions { verify: true, ..BufferOptions::default() }).unwrap();
    let sizes: Vec<usize> = assignment.values().iter().map(|value| value.slice.size).collect();
    let whole = |rows: usize, columns: usize| rows.next_multiple_of(4) * columns.next_multiple_of(8) * 4;
    assert!(sizes.contains(&whole(3, 10)) && sizes.contains(&whole(6, 5)) && sizes.contains(&128), "{sizes:?}");
}

#[test]
fn a_loop_keeps_its_state_in_tiles() {
    let module = compiled(include_str!("programs/a_loop_keeps_its_state_in_tiles.hlo"));
    let text = module.to_string();
    assert!(text.contains("(s32[], f32[5]{0:T(32)}) parameter(0)"), "{text}");
    assign_buffers(&module, &BufferOptions { verify: true, ..BufferOptions::default() }).unwrap();
}
