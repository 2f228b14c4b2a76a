//! Tests of affine index expressions, and of loops over lists of dimensions.

use xla_llvm::fused::loops::affine::{
    AffineExpr, Division, Index, Symbol, SymbolId, Symbols, position, reshape_groups, reverse,
};
use xla_llvm::internals::Axis;

fn loops(extents: &[u64]) -> (Symbols, Index) {
    let mut symbols = Symbols::default();
    let add = |(level, &extent): (usize, &u64)| {
        AffineExpr::symbol(symbols.add(Symbol { extent: Some(extent), level: level + 1 }))
    };
    let index = extents.iter().enumerate().map(add).collect();
    (symbols, index)
}

#[test]
fn merged_dimensions_divide_exactly() {
    let (symbols, index) = loops(&[4, 128]);
    let merged = position(&index, &[128, 1]);
    assert_eq!(merged.divide(128, &symbols), Division::Exact(index[0].clone(), index[1].clone()));
}

#[test]
fn a_dimension_that_must_split_says_how() {
    let (symbols, index) = loops(&[512]);
    assert_eq!(index[0].divide(128, &symbols), Division::IfSplit(SymbolId(0), 128));
    assert_eq!(index[0].divide(100, &symbols), Division::Runtime);
}

#[test]
fn positions_of_large_arrays_have_64_bits() {
    let (symbols, index) = loops(&[1 << 16, 1 << 15]);
    let last = position(&index, &[1 << 15, 1]);
    assert!(!last.fits_32_bits(&symbols));
    assert!(!last.clone().shifted(1 - (1 << 16)).fits_32_bits(&symbols));
    assert!(last.clone().shifted(-(1 << 16)).fits_32_bits(&symbols));
    assert!(!last.scaled(-2).fits_32_bits(&symbols));
}

#[test]
fn the_rest_of_a_division_is_what_is_no_multiple() {
    let (_, index) = loops(&[4, 3]);
    let place = position(&index, &[12, 5]).shifted(31);
    let (multiple, rest) = place.multiples(6);
    assert_eq!(multiple, index[0].clone().scaled(2).shifted(5));
    assert_eq!(rest, index[1].clone().scaled(5).shifted(1));
}

#[test]
fn reversal_keeps_bounds() {
    let (symbols, index) = loops(&[5]);
    let reversed = reverse(&index, &[0], &[5]);
    assert_eq!(reversed[0].bounds(&symbols), Some((0, 4)));
}

#[test]
fn reshape_groups_are_minimal() {
    let groups = reshape_groups(&[4, 128, 768], &[512, 3, 256]);
    assert_eq!(groups, vec![(0..2, 0..1), (2..3, 1..3)]);
    assert_eq!(reshape_groups(&[6], &[1, 6]), vec![(0..1, 0..2)]);
    assert_eq!(reshape_groups(&[6, 5], &[2, 3, 5]), vec![(0..1, 0..2), (1..2, 2..3)]);
    assert_eq!(reshape_groups(&[2, 3, 5], &[6, 5]), vec![(0..2, 0..1), (2..3, 1..2)]);
    assert_eq!(reshape_groups(&[], &[1, 1]), vec![(0..0, 0..1), (0..0, 1..2)]);
}

#[test]
fn the_innermost_loop_is_over_more_than_one_element() {
    let inner = |axis: Axis| (axis.outer, axis.extent);
    assert_eq!(inner(Axis::apart(&[7, 5, 1])), (vec![7, 1], 5));
    assert_eq!(inner(Axis::longest_apart(&[7, 5, 1])), (vec![5, 1], 7));
    assert_eq!(inner(Axis::apart(&[1, 1])), (vec![1], 1));
    assert_eq!(inner(Axis::apart(&[])), (vec![], 1));
}
