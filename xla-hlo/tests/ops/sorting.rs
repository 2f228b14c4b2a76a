//! Tests of the sorting family: order and stability, comparators of every kind, every element type, and violated rules.

use ElementType::{BF16, C64, F8E4M3FNUZ, F32, Pred, S8, S32, U8};
use xla_hlo::builder::{ComputationBuilder, ModuleBuilder};
use xla_hlo::ops::{Compare, CompareDirection, CompareType, Sort, TopK};
use xla_hlo::{ArrayShape, ElementKind, ElementType, InstrId, Literal, Result, Scalar};

use crate::testing::{array, assert_refused, distinct_bytes, function, numbers, run};

/// Builds a sort whose comparator takes two scalars of the type of each operand and is written by `body`.
fn sort_by(
    dimension: usize,
    types: &[ElementType],
    body: impl FnOnce(&mut ComputationBuilder<'_>, &[InstrId]) -> Result<InstrId>,
    operands: &[Literal],
) -> Result<Literal> {
    let parameters: Vec<ElementType> = types.iter().flat_map(|&ty| [ty, ty]).collect();
    let op = |m: &mut ModuleBuilder| Sort { dimension, is_stable: true, computation: function(m, &parameters, body) };
    run(op, None, operands)
}

fn ascending(dimension: usize, operands: &[Literal]) -> Result<Literal> {
    let types: Vec<ElementType> = operands.iter().map(|x| x.array_shape().element_type()).collect();
    sort_by(dimension, &types, |b, p| b.compare(CompareDirection::Lt, p[0], p[1]), operands)
}

fn counting(dims: &[usize]) -> Literal {
    array(S32, dims, &(0..dims.iter().product()).map(|i: usize| i as f64).collect::<Vec<_>>())
}

#[test]
fn sorts_along_each_dimension() {
    let x = array(S32, &[2, 3, 2], &[5.0, 1.0, 3.0, 9.0, 4.0, 0.0, 8.0, 7.0, 2.0, 6.0, 11.0, 10.0]);
    let sorted = |d| numbers(&ascending(d, std::slice::from_ref(&x)).unwrap());
    assert_eq!(sorted(0), [5.0, 1.0, 2.0, 6.0, 4.0, 0.0, 8.0, 7.0, 3.0, 9.0, 11.0, 10.0]);
    assert_eq!(sorted(1), [3.0, 0.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 8.0, 7.0, 11.0, 10.0]);
    assert_eq!(sorted(2), [1.0, 5.0, 3.0, 9.0, 0.0, 4.0, 7.0, 8.0, 2.0, 6.0, 10.0, 11.0]);
}

#[test]
fn equal_elements_keep_their_order() {
    let keys = array(S8, &[8], &[1.0, 0.0, 1.0, 0.0, 2.0, 1.0, 0.0, 2.0]);
    let result = ascending(0, &[keys.clone(), counting(&[8]), distinct_bytes(C64, &[8], 3)]).unwrap();
    let [sorted, places, others] = result.elements() else { panic!("three results") };
    assert_eq!(numbers(sorted), [0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 2.0, 2.0]);
    assert_eq!(numbers(places), [1.0, 3.0, 6.0, 0.0, 2.0, 5.0, 4.0, 7.0]);
    let bytes = distinct_bytes(C64, &[8], 3);
    let expected: Vec<u8> = [1, 3, 6, 0, 2, 5, 4, 7].iter().flat_map(|&i| bytes.element_bytes(i).to_vec()).collect();
    assert_eq!(others.bytes(), expected, "elements are moved bit for bit");
    let down = sort_by(0, &[S8, S32], |b, p| b.compare(CompareDirection::Gt, p[0], p[1]), &[keys, counting(&[8])]);
    assert_eq!(numbers(&down.unwrap().elements()[1]), [4.0, 7.0, 0.0, 2.0, 5.0, 1.0, 3.0, 6.0]);
}

#[test]
fn the_comparator_may_look_at_every_array() {
    // By the second array, and for equal elements by the first, descending.
    let body = |b: &mut ComputationBuilder<'_>, p: &[InstrId]| {
        let before = b.compare(CompareDirection::Lt, p[2], p[3])?;
        let equal = b.compare(CompareDirection::Eq, p[2], p[3])?;
        let tie = b.compare(CompareDirection::Gt, p[0], p[1])?;
        let tied = b.and(equal, tie)?;
        b.or(before, tied)
    };
    let keys = array(U8, &[6], &[1.0, 0.0, 1.0, 0.0, 1.0, 0.0]);
    let result = sort_by(0, &[S32, U8], body, &[counting(&[6]), keys]).unwrap();
    assert_eq!(numbers(&result.elements()[0]), [5.0, 3.0, 1.0, 4.0, 2.0, 0.0]);
}

#[test]
fn a_comparator_without_an_order_gives_some_permutation() {
    let x = counting(&[33]);
    for answer in [false, true] {
        let body =
            |b: &mut ComputationBuilder<'_>, _: &[InstrId]| b.constant(Literal::scalar(Pred, Scalar::Pred(answer)));
        let mut found = numbers(&sort_by(0, &[S32], body, std::slice::from_ref(&x)).unwrap());
        assert!(answer || found == numbers(&x), "nothing comes before anything: all keep their places");
        found.sort_by(f64::total_cmp);
        assert_eq!(found, numbers(&x), "always {answer}");
    }
    let nan = f64::NAN;
    let x = array(F32, &[7], &[3.0, nan, 1.0, nan, 2.0, 0.0, nan]);
    let found = numbers(&ascending(0, &[x]).unwrap());
    assert_eq!(found.iter().filter(|v| v.is_nan()).count(), 3);
    assert_eq!(found.iter().filter(|v| !v.is_nan()).sum::<f64>(), 6.0);
}

#[test]
fn nothing_to_sort() {
    for dims in [&[0][..], &[0, 3], &[3, 0], &[1]] {
        let x = counting(dims);
        for d in 0..dims.len() {
            assert_eq!(ascending(d, std::slice::from_ref(&x)).unwrap(), x, "{dims:?} along {d}");
        }
    }
}

#[test]
fn every_ordered_type_sorts() {
    for &ty in ElementType::ALL.iter().filter(|ty| !ty.is_complex()) {
        let total = |b: &mut ComputationBuilder<'_>, p: &[InstrId]| {
            let order = ty.is_float().then_some(CompareType::TotalOrder);
            b.instruction(Compare { direction: CompareDirection::Lt, order }, None, [p[0], p[1]])
        };
        let values = match ty.kind() {
            ElementKind::Signed => [0.0, -1.0, -1.0],
            ElementKind::Float | ElementKind::Complex => [2.0, 1.0, 1.0],
            ElementKind::Pred | ElementKind::Unsigned => [1.0, 0.0, 0.0],
        };
        let result = sort_by(0, &[ty, S32], total, &[array(ty, &[3], &values), counting(&[3])]).unwrap();
        assert_eq!(numbers(&result.elements()[1]), [1.0, 2.0, 0.0], "{ty}");
    }
}

fn top_k(x: &Literal, k: usize, largest: bool) -> (Vec<f64>, Vec<f64>) {
    let result = run(|_| TopK { k, largest, is_stable: false }, None, std::slice::from_ref(x)).unwrap();
    (numbers(&result.elements()[0]), numbers(&result.elements()[1]))
}

#[test]
fn the_best_of_each_row_come_first() {
    let x = array(S32, &[2, 4], &[3.0, 9.0, 9.0, -1.0, 0.0, 5.0, -7.0, 5.0]);
    assert_eq!(top_k(&x, 2, true), (vec![9.0, 9.0, 5.0, 5.0], vec![1.0, 2.0, 1.0, 3.0]));
    assert_eq!(top_k(&x, 3, false), (vec![-1.0, 3.0, 9.0, -7.0, 0.0, 5.0], vec![3.0, 0.0, 1.0, 2.0, 0.0, 1.0]));
    assert_eq!(top_k(&x, 0, true), (vec![], vec![]));
    assert_eq!(top_k(&array(S32, &[0, 4], &[]), 4, true), (vec![], vec![]));
    assert_eq!(top_k(&array(S32, &[3, 0], &[]), 0, true), (vec![], vec![]));
}

#[test]
fn floats_are_taken_in_the_total_order_of_their_patterns() {
    let patterns = [0x3f80, 0x0000, 0x8000, 0x7fc0, 0xff80, 0x7f80, 0xffc0, 0x0000];
    let x =
        Literal::from_bytes(&ArrayShape::new(BF16, [8]), patterns.iter().flat_map(|p: &u16| p.to_le_bytes()).collect());
    let x = x.unwrap();
    assert_eq!(top_k(&x, 8, true).1, [3.0, 5.0, 0.0, 1.0, 7.0, 2.0, 4.0, 6.0]);
    assert_eq!(top_k(&x, 8, false).1, [6.0, 4.0, 2.0, 1.0, 7.0, 0.0, 5.0, 3.0]);
    // The only NaN of this type has the bit pattern of a negative zero and is sorted like one, as in XLA.
    let x = Literal::from_bytes(&ArrayShape::new(F8E4M3FNUZ, [3]), vec![0x80, 0x01, 0x81]).unwrap();
    assert_eq!(top_k(&x, 3, true).1, [1.0, 0.0, 2.0]);
}

#[test]
fn every_ordered_type_has_a_greatest_element() {
    for &ty in ElementType::ALL.iter().filter(|ty| !ty.is_complex()) {
        let x = array(ty, &[3], &[1.0, 1.0, 1.0]);
        assert_eq!(top_k(&x, 2, true).1, [0.0, 1.0], "{ty}");
    }
    let wide = Literal::from_fn(&ArrayShape::new(ElementType::U64, [3]), |i| Scalar::Unsigned(u64::MAX - 2 + i as u64));
    assert_eq!(top_k(&wide.unwrap(), 3, true).1, [2.0, 1.0, 0.0]);
    let wide = Literal::from_fn(&ArrayShape::new(ElementType::S64, [3]), |i| Scalar::Signed(i64::MIN + i as i64));
    assert_eq!(top_k(&wide.unwrap(), 3, true).1, [2.0, 1.0, 0.0]);
}

#[test]
fn text_prints_back_the_same() {
    let text = include_str!("programs/text_prints_back_the_same.hlo");
    let module = xla_hlo::text::parse_module(text).unwrap();
    let printed = module.to_string();
    for line in text.lines().filter(|line| line.contains("topk") || line.contains("sort(")) {
        assert!(printed.contains(line), "{line}\nis not in\n{printed}");
    }
    assert_eq!(xla_hlo::text::parse_module(&printed).unwrap().to_string(), printed);
}

#[test]
fn broken_rules_are_named() {
    let lt = |b: &mut ComputationBuilder<'_>, p: &[InstrId]| b.compare(CompareDirection::Lt, p[0], p[1]);
    let (x, y) = (counting(&[2, 3]), counting(&[3, 2]));
    assert_refused("dimension", sort_by(2, &[S32], lt, std::slice::from_ref(&x)), "is not one of the 2 dimensions");
    assert_refused("scalar", sort_by(0, &[S32], lt, &[counting(&[])]), "is not one of the 0 dimensions");
    assert_refused("sizes", sort_by(0, &[S32, S32], lt, &[x.clone(), y]), "must have the same dimensions");
    assert_refused("parameters", sort_by(0, &[F32], lt, std::slice::from_ref(&x)), "is called with (s32[], s32[])");
    assert_refused("count", sort_by(0, &[S32], lt, &[x.clone(), x.clone()]), "is called with");
    assert_refused("result", sort_by(0, &[S32], |_, p| Ok(p[0]), std::slice::from_ref(&x)), "must return pred[]");
    let best = |k, x: &Literal| run(|_| TopK { k, largest: true, is_stable: false }, None, std::slice::from_ref(x));
    assert_refused("k", best(4, &x), "k=4 must not exceed the size 3");
    assert_refused("scalar", best(0, &counting(&[])), "at least one dimension");
    assert_refused("complex", best(1, &array(C64, &[2], &[0.0, 1.0])), "complex numbers have no order");
}
