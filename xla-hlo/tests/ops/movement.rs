//! Tests of the movement family: comparison with an index formula for every element type, and edge cases.

use xla_hlo::eval::Evaluator;
use xla_hlo::ops::{
    Bitcast, Broadcast, Concatenate, Copy, DynamicSlice, DynamicUpdateSlice, Iota, Op, OpRules, Pad, PadDim, Reshape,
    Reverse, ShapeContext, Slice, SliceRange, Transpose,
};
use xla_hlo::{ArrayShape, ElementType, IndexIter, Layout, Literal, Scalar, Shape, linear_index};

use crate::testing::{array, assert_refused, distinct_bytes, numbers, run, run_in_layouts, scalar};

/// Asserts that each element of the result equals, bit for bit, the operand element whose index `source` returns.
fn check_every_type(
    op: impl Into<Op>,
    dims: &[usize],
    result_dims: &[usize],
    more: fn(ElementType) -> Vec<Literal>,
    source: impl Fn(&[usize]) -> Option<Vec<usize>>,
) {
    let op = op.into();
    for &ty in ElementType::ALL {
        let operand = distinct_bytes(ty, dims, 11);
        let mut operands = vec![operand.clone()];
        operands.extend(more(ty));
        let written = Some(Shape::array(ty, result_dims));
        let result = run(|_| op.clone(), written, &operands).unwrap_or_else(|e| panic!("{op:?} of {ty}: {e}"));
        let mut indices = IndexIter::new(result_dims);
        let mut at = 0;
        while let Some(index) = indices.next_index() {
            let expected = match source(index) {
                Some(from) => operand.element_bytes(linear_index(dims, &from)),
                None => operands[1].element_bytes(0),
            };
            assert_eq!(result.element_bytes(at), expected, "{op:?} of {ty} at {index:?}");
            at += 1;
        }
    }
}

fn nothing_more(_: ElementType) -> Vec<Literal> {
    Vec::new()
}

fn a_scalar(ty: ElementType) -> Vec<Literal> {
    vec![distinct_bytes(ty, &[], 201)]
}

#[test]
fn every_element_type_moves_bit_for_bit() {
    let dims = [2, 3, 4];
    check_every_type(Broadcast { dimensions: vec![2, 0, 3] }, &dims, &[3, 2, 2, 4], nothing_more, |i| {
        Some(vec![i[2], i[0], i[3]])
    });
    check_every_type(Reshape { inferred_dimension: None }, &dims, &[4, 6], nothing_more, |i| {
        let linear = i[0] * 6 + i[1];
        Some(vec![linear / 12, linear / 4 % 3, linear % 4])
    });
    check_every_type(Transpose { permutation: vec![2, 0, 1] }, &dims, &[4, 2, 3], nothing_more, |i| {
        Some(vec![i[1], i[2], i[0]])
    });
    let ranges = vec![range(0, 2, 1), range(1, 3, 1), range(0, 4, 3)];
    check_every_type(Slice { ranges }, &dims, &[2, 2, 2], nothing_more, |i| Some(vec![i[0], i[1] + 1, i[2] * 3]));
    check_every_type(Reverse { dimensions: vec![0, 2] }, &dims, &dims, nothing_more, |i| {
        Some(vec![1 - i[0], i[1], 3 - i[2]])
    });
    let padding = vec![padding(1, 0, 0), padding(-1, 2, 1), padding(0, -1, 2)];
    check_every_type(Pad { dims: padding }, &dims, &[3, 6, 9], a_scalar, |i| {
        let (a, b, c) = (i[0].checked_sub(1)?, i[1] + 1, i[2]);
        (b % 2 == 0 && b / 2 < 3 && c % 3 == 0).then(|| vec![a, b / 2, c / 3])
    });
    check_every_type(Copy, &dims, &dims, nothing_more, |i| Some(i.to_vec()));
}

#[test]
fn every_element_type_is_concatenated_and_updated_bit_for_bit() {
    for &ty in ElementType::ALL {
        let (a, b, c) =
            (distinct_bytes(ty, &[2, 2], 1), distinct_bytes(ty, &[2, 0], 2), distinct_bytes(ty, &[2, 1], 3));
        let joined = run(|_| Concatenate { dimension: 1 }, None, &[a.clone(), b, c.clone()]).unwrap();
        let expected = [(&a, 0), (&a, 1), (&c, 0), (&a, 2), (&a, 3), (&c, 1)];
        for (i, (literal, at)) in expected.into_iter().enumerate() {
            assert_eq!(joined.element_bytes(i), literal.element_bytes(at), "concatenate of {ty} at {i}");
        }
        let starts = [scalar(ElementType::S8, 0.0), scalar(ElementType::S8, 1.0)];
        let operands = [&[a.clone(), c.clone()][..], &starts[..]].concat();
        let updated = run(|_| DynamicUpdateSlice, None, &operands).unwrap();
        for (i, (literal, at)) in [(&a, 0), (&c, 0), (&a, 2), (&c, 1)].into_iter().enumerate() {
            assert_eq!(updated.element_bytes(i), literal.element_bytes(at), "dynamic-update-slice of {ty} at {i}");
        }
        let sliced = run(|_| DynamicSlice { sizes: vec![1, 2] }, None, &[&[a.clone()][..], &starts].concat()).unwrap();
        assert_eq!(sliced.bytes(), &a.bytes()[..2 * ty.byte_width()], "dynamic-slice of {ty}");
    }
}

fn range(start: usize, limit: usize, stride: usize) -> SliceRange {
    SliceRange { start, limit, stride }
}

fn padding(low: i64, high: i64, interior: usize) -> PadDim {
    PadDim { low, high, interior }
}

fn f32s(dims: &[usize], values: &[f64]) -> Literal {
    array(ElementType::F32, dims, values)
}

#[test]
fn pad_at_the_edges() {
    let x = f32s(&[3], &[1.0, 2.0, 3.0]);
    let cases: &[(PadDim, &[f64])] = &[
        (padding(0, 0, 0), &[1.0, 2.0, 3.0]),
        (padding(2, 1, 0), &[9.0, 9.0, 1.0, 2.0, 3.0, 9.0]),
        (padding(0, 0, 2), &[1.0, 9.0, 9.0, 2.0, 9.0, 9.0, 3.0]),
        (padding(-1, -1, 2), &[9.0, 9.0, 2.0, 9.0, 9.0]),
        (padding(-2, 0, 0), &[3.0]),
        (padding(-3, 2, 0), &[9.0, 9.0]),
        (padding(-5, 4, 0), &[9.0, 9.0]),
        (padding(4, -5, 0), &[9.0, 9.0]),
        (padding(-3, 0, 0), &[]),
        (padding(1, -1, 0), &[9.0, 1.0, 2.0]),
    ];
    for (pad, expected) in cases {
        let result = run(|_| Pad { dims: vec![*pad] }, None, &[x.clone(), scalar(ElementType::F32, 9.0)]).unwrap();
        assert_eq!(numbers(&result), *expected, "{pad:?}");
    }
    let empty = f32s(&[0], &[]);
    let result = run(|_| Pad { dims: vec![padding(1, 1, 7)] }, None, &[empty, scalar(ElementType::F32, 9.0)]).unwrap();
    assert_eq!(numbers(&result), [9.0, 9.0], "an empty array has no interior");
    let huge = Pad { dims: vec![padding(0, -(usize::MAX as i64 / 2), usize::MAX / 4)] };
    assert!(run(|_| huge, None, &[x, scalar(ElementType::F32, 9.0)]).is_err(), "no overflow, no allocation");
}

#[test]
fn slices_of_nothing_and_of_everything() {
    let x = f32s(&[3], &[1.0, 2.0, 3.0]);
    let cases: &[(SliceRange, &[f64])] = &[
        (range(0, 3, 1), &[1.0, 2.0, 3.0]),
        (range(0, 3, 2), &[1.0, 3.0]),
        (range(1, 3, 5), &[2.0]),
        (range(1, 3, usize::MAX), &[2.0]),
        (range(3, 3, 1), &[]),
        (range(0, 0, 3), &[]),
    ];
    for (range, expected) in cases {
        let result = run(|_| Slice { ranges: vec![*range] }, None, std::slice::from_ref(&x)).unwrap();
        assert_eq!(numbers(&result), *expected, "{range:?}");
    }
}

#[test]
fn scalars_and_empty_arrays_move() {
    let x = scalar(ElementType::F32, 5.0);
    let to = |dims: &[usize]| Some(Shape::array(ElementType::F32, dims));
    let spread = run(|_| Broadcast { dimensions: vec![] }, to(&[2, 2]), std::slice::from_ref(&x)).unwrap();
    assert_eq!(numbers(&spread), [5.0; 4]);
    let none = run(|_| Broadcast { dimensions: vec![] }, to(&[2, 0, usize::MAX]), std::slice::from_ref(&x)).unwrap();
    assert!(none.bytes().is_empty());
    let empty = f32s(&[0, 3], &[]);
    for (op, written, dims) in [
        (Op::from(Transpose { permutation: vec![1, 0] }), None, vec![3, 0]),
        (Op::from(Reverse { dimensions: vec![0, 1] }), None, vec![0, 3]),
        (Op::from(Reshape { inferred_dimension: Some(0) }), to(&[5, 0]), vec![5, 0]),
        (Op::from(Slice { ranges: vec![range(0, 0, 1), range(1, 2, 1)] }), None, vec![0, 1]),
    ] {
        let result = run(|_| op.clone(), written, std::slice::from_ref(&empty)).unwrap();
        assert_eq!(result.array_shape().dims(), dims, "{op:?}");
    }
    let same = run(|_| DynamicSlice { sizes: vec![] }, None, std::slice::from_ref(&x)).unwrap();
    assert_eq!(same, x);
    let replaced = run(|_| DynamicUpdateSlice, None, &[x, scalar(ElementType::F32, 6.0)]).unwrap();
    assert_eq!(numbers(&replaced), [6.0]);
}

#[test]
fn iota_counts_in_every_numeric_type() {
    for &ty in ElementType::ALL {
        let shape = ArrayShape::new(ty, [2, 6, 2]);
        let result = run(|_| Iota { dimension: 1 }, Some(shape.into()), &[]);
        if ty == ElementType::Pred {
            assert_refused("iota", result, "integers, floats or complex");
            continue;
        }
        let result = result.unwrap();
        for i in 0..24 {
            let expected = Literal::scalar(ty, Scalar::from_i64(ty, (i / 2 % 6) as i64));
            assert_eq!(result.element_bytes(i), expected.bytes(), "{ty} at {i}");
        }
    }
    let narrow = run(|_| Iota { dimension: 0 }, Some(Shape::array(ElementType::S4, [18])), &[]).unwrap();
    assert_eq!(numbers(&narrow)[7..10], [7.0, -8.0, -7.0], "integers wrap");
    let unsigned = run(|_| Iota { dimension: 0 }, Some(Shape::array(ElementType::U2, [5])), &[]).unwrap();
    assert_eq!(numbers(&unsigned), [0.0, 1.0, 2.0, 3.0, 0.0]);
    let empty = run(|_| Iota { dimension: 0 }, Some(Shape::array(ElementType::S32, [4, 0, usize::MAX])), &[]);
    assert!(empty.unwrap().bytes().is_empty());
}

#[test]
fn dynamic_starts_are_clamped_in_their_own_signedness() {
    let x = f32s(&[5], &[0.0, 1.0, 2.0, 3.0, 4.0]);
    let of = |ty, v| Literal::scalar(ty, v);
    use ElementType::{S8, S64, U4, U8, U64};
    let cases = [
        (of(S64, Scalar::Signed(i64::MIN)), 0.0),
        (of(S64, Scalar::Signed(i64::MAX)), 3.0),
        (of(U64, Scalar::Unsigned(u64::MAX)), 3.0),
        (of(U64, Scalar::Unsigned(1 << 63)), 3.0),
        (of(U8, Scalar::Unsigned(255)), 3.0),
        (of(S8, Scalar::Signed(-1)), 0.0),
        (of(U4, Scalar::Unsigned(15)), 3.0),
        (of(U4, Scalar::Unsigned(2)), 2.0),
        (array(ElementType::S32, &[1], &[1.0]), 1.0),
    ];
    for (start, expected) in cases {
        let what = format!("{start:?}");
        let read = run(|_| DynamicSlice { sizes: vec![2] }, None, &[x.clone(), start.clone()]).unwrap();
        assert_eq!(numbers(&read), [expected, expected + 1.0], "{what}");
        let update = f32s(&[2], &[7.0, 8.0]);
        let written = run(|_| DynamicUpdateSlice, None, &[x.clone(), update, start]).unwrap();
        let at = expected as usize;
        assert_eq!(numbers(&written)[at..at + 2], [7.0, 8.0], "{what}");
        assert_eq!(numbers(&written).iter().filter(|v| **v < 5.0).count(), 3, "{what}: the rest stays");
    }
    let matrix = f32s(&[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let starts = array(ElementType::S32, &[2], &[1.0, 9.0]);
    let read = run(|_| DynamicSlice { sizes: vec![1, 2] }, None, &[matrix, starts]).unwrap();
    assert_eq!(numbers(&read), [4.0, 5.0], "starts as one vector");
}

#[test]
fn an_update_writes_in_place() {
    let x = f32s(&[3], &[1.0, 2.0, 3.0]);
    let at = x.bytes().as_ptr();
    let operands = vec![x, f32s(&[1], &[9.0]), scalar(ElementType::S32, 1.0)];
    let shape = operands[0].shape().clone();
    let module = xla_hlo::Module::new("test");
    let result = DynamicUpdateSlice.evaluate(&mut Evaluator::new(&module), operands, &shape).unwrap();
    assert_eq!(numbers(&result), [1.0, 9.0, 3.0]);
    assert_eq!(result.bytes().as_ptr(), at, "the operand was held by nobody else, so nothing is copied");
}

#[test]
fn bitcast_keeps_the_bytes_in_memory() {
    let matrix = f32s(&[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let layout = |ty, dims: &[usize], order: &[usize]| -> Shape {
        ArrayShape::new(ty, dims).with_layout(Some(Layout::from_minor_to_major(order.to_vec()))).into()
    };
    let cast = |operand: &Literal, from: Shape, to: Shape| {
        run_in_layouts(|_| Bitcast, Some(to), std::slice::from_ref(operand), &[from])
    };
    let f32 = ElementType::F32;
    let cases: &[(Shape, Shape, &[f64])] = &[
        (layout(f32, &[2, 3], &[1, 0]), layout(f32, &[3, 2], &[1, 0]), &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
        // A column-major matrix is its transpose in row-major order.
        (layout(f32, &[2, 3], &[0, 1]), layout(f32, &[3, 2], &[1, 0]), &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]),
        (layout(f32, &[2, 3], &[1, 0]), layout(f32, &[3, 2], &[0, 1]), &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]),
        (layout(f32, &[2, 3], &[0, 1]), layout(f32, &[6], &[0]), &[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]),
        (layout(f32, &[2, 3], &[0, 1]), layout(f32, &[2, 3], &[0, 1]), &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]),
    ];
    for (from, to, expected) in cases {
        let result = cast(&matrix, from.clone(), to.clone()).unwrap();
        assert_eq!(numbers(&result), *expected, "{from} to {to}");
    }
    let bits = cast(&matrix, layout(f32, &[2, 3], &[1, 0]), Shape::array(ElementType::U8, [6, 4])).unwrap();
    assert_eq!(bits.bytes(), matrix.bytes(), "another element type of the same size in all");
}

#[test]
fn bitcast_packs_narrow_elements() {
    let packed = |ty, dims: &[usize], bits| {
        let layout = Layout { element_size_in_bits: bits, ..Layout::row_major(dims.len()) };
        Shape::from(ArrayShape::new(ty, dims).with_layout(Some(layout)))
    };
    let nibbles = array(ElementType::S4, &[4], &[1.0, -2.0, 7.0, -8.0]);
    let bytes = Shape::array(ElementType::U8, [2]);
    let from = packed(ElementType::S4, &[4], 4);
    let result =
        run_in_layouts(|_| Bitcast, Some(bytes.clone()), std::slice::from_ref(&nibbles), std::slice::from_ref(&from))
            .unwrap();
    assert_eq!(result.bytes(), [0xe1, 0x87], "low bits first");
    let back = run_in_layouts(|_| Bitcast, Some(from), &[result], &[bytes]).unwrap();
    assert_eq!(back, nibbles);
    let refused = run(|_| Bitcast, Some(Shape::array(ElementType::U8, [2])), &[nibbles]);
    assert_refused("unpacked nibbles take a byte each", refused, "32 bits");
}

#[test]
fn broken_rules_are_named() {
    let x = f32s(&[2, 3], &[0.0; 6]);
    let f32 = |dims: &[usize]| Some(Shape::array(ElementType::F32, dims));
    let s32 = |v| scalar(ElementType::S32, v);
    let one = scalar(ElementType::F32, 1.0);
    let cases: Vec<(Op, Option<Shape>, Vec<Literal>, &str)> = vec![
        (Broadcast { dimensions: vec![0] }.into(), f32(&[2, 3]), vec![x.clone()], "for each of the 2 dimensions"),
        (Broadcast { dimensions: vec![0, 2] }.into(), f32(&[2, 3]), vec![x.clone()], "names dimension 2"),
        (Broadcast { dimensions: vec![0, 0] }.into(), f32(&[2, 3]), vec![x.clone()], "names dimension 0 twice"),
        (Broadcast { dimensions: vec![1, 0] }.into(), f32(&[2, 3]), vec![x.clone()], "has size 2, so dimension 1"),
        (Broadcast { dimensions: vec![] }.into(), None, vec![one.clone()], "must be written"),
        (Broadcast { dimensions: vec![] }.into(), Some(Shape::Token), vec![one.clone()], "must be an array"),
        (
            Reshape { inferred_dimension: None }.into(),
            f32(&[4]),
            vec![x.clone()],
            "6 elements, the result f32[4] has 4",
        ),
        (Reshape { inferred_dimension: None }.into(), f32(&[1 << 40, 1 << 40]), vec![x.clone()], "more elements"),
        (Reshape { inferred_dimension: Some(1) }.into(), f32(&[6]), vec![x.clone()], "inferred_dimension=1"),
        (Transpose { permutation: vec![0] }.into(), None, vec![x.clone()], "each of the 2 dimensions"),
        (Transpose { permutation: vec![1, 1] }.into(), None, vec![x.clone()], "names dimension 1 twice"),
        (Slice { ranges: vec![range(0, 2, 1)] }.into(), None, vec![x.clone()], "1 ranges"),
        (Slice { ranges: vec![range(0, 2, 1), range(0, 4, 1)] }.into(), None, vec![x.clone()], "limit <= 3"),
        (Slice { ranges: vec![range(0, 2, 1), range(2, 1, 1)] }.into(), None, vec![x.clone()], "[2:1]"),
        (Slice { ranges: vec![range(0, 2, 0), range(0, 1, 1)] }.into(), None, vec![x.clone()], "stride 0"),
        (Pad { dims: vec![padding(0, 0, 0)] }.into(), None, vec![x.clone(), one.clone()], "1 entries"),
        (Pad { dims: vec![padding(0, 0, 0); 2] }.into(), None, vec![x.clone(), x.clone()], "must be a scalar"),
        (
            Pad { dims: vec![padding(0, 0, 0); 2] }.into(),
            None,
            vec![x.clone(), s32(0.0)],
            "element types must be equal",
        ),
        (Pad { dims: vec![padding(-1, -2, 0); 2] }.into(), None, vec![x.clone(), one.clone()], "negative size -1"),
        (
            Pad { dims: vec![padding(i64::MAX, i64::MAX, usize::MAX); 2] }.into(),
            None,
            vec![x.clone(), one.clone()],
            "too large",
        ),
        (Concatenate { dimension: 2 }.into(), None, vec![x.clone()], "is not a dimension of operand 0"),
        (Concatenate { dimension: 0 }.into(), None, vec![x.clone(), one.clone()], "operand 1 is f32[]"),
        (Concatenate { dimension: 0 }.into(), None, vec![x.clone(), f32s(&[1, 2], &[0.0; 2])], "size of dimension 0"),
        (Reverse { dimensions: vec![2] }.into(), None, vec![x.clone()], "names dimension 2"),
        (Iota { dimension: 0 }.into(), f32(&[]), vec![], "iota_dimension=0"),
        (DynamicSlice { sizes: vec![3, 1] }.into(), None, vec![x.clone(), s32(0.0), s32(0.0)], "none larger"),
        (DynamicSlice { sizes: vec![1, 1] }.into(), None, vec![x.clone(), s32(0.0)], "1 starts"),
        (
            DynamicSlice { sizes: vec![1, 1] }.into(),
            None,
            vec![x.clone(), one.clone(), one.clone()],
            "integer elements",
        ),
        (
            DynamicSlice { sizes: vec![1, 1] }.into(),
            None,
            vec![x.clone(), s32(0.0), scalar(ElementType::U8, 0.0)],
            "start 0 is s32[]",
        ),
        (
            DynamicSlice { sizes: vec![1, 1] }.into(),
            None,
            vec![x.clone(), array(ElementType::S32, &[3], &[0.0; 3])],
            "vector of starts is s32[3]",
        ),
        (DynamicUpdateSlice.into(), None, vec![x.clone(), one, s32(0.0), s32(0.0)], "must have the operand's rank"),
        (Copy.into(), f32(&[3, 2]), vec![x.clone()], "copy has shape"),
        (Bitcast.into(), f32(&[5]), vec![x.clone()], "192 bits"),
    ];
    for (op, written, operands, message) in cases {
        assert_refused(&format!("{op:?}"), run(|_| op.clone(), written, &operands), message);
    }
    let joined = Shape::array(ElementType::U8, [usize::MAX / 2]);
    let shapes = [&joined, &joined, &joined];
    let module = xla_hlo::Module::new("test");
    let result = Concatenate { dimension: 0 }.infer_shape(&ShapeContext::new(&module, &shapes, None));
    assert!(result.is_err(), "sizes that overflow are refused");
}
