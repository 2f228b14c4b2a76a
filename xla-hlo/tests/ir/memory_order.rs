//! Tests of arrays in the memory of devices: padded sizes of tiled arrays, and the steps that lead to their order.

use xla_hlo::text::parse_shape;
use xla_hlo::{ArrayShape, ElementType, Error, Layout, MemoryStep, MemoryStepKind, Result};

fn array(text: &str) -> ArrayShape {
    parse_shape(text).unwrap().as_array().unwrap().clone()
}

fn steps(shape: &str) -> Result<Vec<MemoryStep>> {
    array(shape).memory_steps()
}

fn dims_on_the_way(shape: &str) -> Vec<Vec<usize>> {
    steps(shape).unwrap().into_iter().map(|step| step.to).collect()
}

#[test]
fn tiles_are_padded_to_whole_ones() {
    let bytes = |text: &str| array(text).padded_byte_size();
    assert_eq!(bytes("f32[5,9]{1,0}"), 5 * 9 * 4);
    assert_eq!(bytes("f32[5,9]{1,0:T(4,8)}"), 8 * 16 * 4);
    assert_eq!(bytes("f32[5,9]{0,1:T(4,8)}"), 12 * 8 * 4, "rows of the tile go along the major dimension in memory");
    assert_eq!(bytes("bf16[2,5,9]{2,1,0:T(4,8)}"), 2 * 8 * 16 * 2);
    assert_eq!(bytes("f32[5]{0:T(4,8)}"), 4 * 8 * 4, "missing dimensions are of size 1");
    assert_eq!(bytes("bf16[16,200]{1,0:T(8,128)(2,1)}"), 16 * 256 * 2);
    assert_eq!(bytes("s8[7,200]{1,0:T(8,128)(4,1)}"), 8 * 256);
    assert_eq!(bytes("f32[3,5,7]{2,1,0:T(*,8)}"), 3 * 5 * 8 * 4);
    assert_eq!(bytes("f32[10]{0:L(8)}"), 16 * 4);
    assert_eq!(bytes("f32[0,9]{1,0:T(4,8)}"), 0);
    assert_eq!(bytes("f32[]"), 4);
}

#[test]
fn plain_arrays_are_transposed_at_most() {
    assert!(steps("f32[2,3]{1,0}").unwrap().is_empty() && steps("f32[]").unwrap().is_empty());
    let [step] = &steps("f32[2,3,4]{0,2,1}").unwrap()[..] else { panic!("one step") };
    assert_eq!(
        *step,
        MemoryStep { kind: MemoryStepKind::Transpose(vec![1, 2, 0]), from: vec![2, 3, 4], to: vec![3, 4, 2] }
    );
    assert_eq!(step.clone().inverse().kind, MemoryStepKind::Transpose(vec![2, 0, 1]));
    assert_eq!(step.clone().inverse().inverse(), *step);
}

#[test]
fn tiles_are_split_off_and_go_behind_the_grid() {
    assert_eq!(dims_on_the_way("f32[5,9]{1,0:T(4,8)}"), [vec![8, 16], vec![2, 4, 2, 8], vec![2, 2, 4, 8]]);
    assert_eq!(dims_on_the_way("f32[5]{0:T(4,8)}"), [vec![1, 5], vec![4, 8], vec![1, 4, 1, 8], vec![1, 1, 4, 8]]);
    assert_eq!(dims_on_the_way("f32[3,5,7]{2,1,0:T(*,8)}"), [vec![3, 35], vec![3, 40], vec![3, 5, 8]]);
    assert_eq!(dims_on_the_way("f32[10]{0:L(8)}"), [[16]]);
}

#[test]
fn layouts_that_fit_nothing_are_refused() {
    assert!(steps("f32[3,5]{1,0:T(8,*)}").is_err());
    assert!(matches!(steps("f32[8]{0:T(9223372036854775807)}"), Err(Error::ResourceExhausted(_))));
    let shape = ArrayShape::new(ElementType::F32, [2]).with_layout(Some(Layout::row_major(3)));
    assert!(shape.memory_steps().is_err());
}
