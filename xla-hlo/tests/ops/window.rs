//! Tests of the window family: geometry against its definition, reductions against each other and against known values.

use ElementType::{BF16, F32, S32};
use xla_hlo::builder::ModuleBuilder;
use xla_hlo::ops::{BinaryOp, CompareDirection, Cumulative, ReduceWindow, SelectAndScatter, Window, WindowDim};
use xla_hlo::{CompId, ElementType, Literal, Result};

use crate::testing::{append_digit, array, assert_refused, combiner, disguised_add, function, numbers, run, scalar};

fn dim(size: usize) -> WindowDim {
    WindowDim { size, ..WindowDim::UNIT }
}

fn window(dims: &[WindowDim]) -> Window {
    Window { dims: dims.to_vec() }
}

/// Returns windows of small sizes in all combinations.
fn small_windows() -> Vec<WindowDim> {
    let mut all = Vec::new();
    for size in 1..=3 {
        for stride in 1..=2 {
            for (pad_low, pad_high) in [(0, 0), (1, 2), (-1, 0), (3, -2)] {
                for (window_dilation, base_dilation) in [(1, 1), (2, 1), (1, 3), (2, 3)] {
                    for reversal in [false, true] {
                        all.push(WindowDim {
                            size,
                            stride,
                            pad_low,
                            pad_high,
                            window_dilation,
                            base_dilation,
                            reversal,
                        });
                    }
                }
            }
        }
    }
    all
}

/// Returns a dimension after dilation and padding: the element index at each position, or `None`.
fn padded(window: &WindowDim, base: usize) -> Vec<Option<usize>> {
    let mut places: Vec<Option<usize>> = Vec::new();
    for i in 0..base {
        if i > 0 {
            places.extend(std::iter::repeat_n(None, window.base_dilation - 1));
        }
        places.push(Some(i));
    }
    for (pad, front) in [(window.pad_low, true), (window.pad_high, false)] {
        for _ in 0..pad.unsigned_abs() {
            match (pad > 0, front) {
                (true, true) => places.insert(0, None),
                (true, false) => places.push(None),
                (false, true) if !places.is_empty() => drop(places.remove(0)),
                (false, true) => {}
                (false, false) => drop(places.pop()),
            }
        }
    }
    places
}

#[test]
fn geometry_is_that_of_a_window_over_padded_places() {
    for window in small_windows() {
        for base in [0, 1, 2, 5] {
            let places = padded(&window, base);
            let reach = (window.size - 1) * window.window_dilation + 1;
            let positions: Vec<usize> =
                (0..places.len()).step_by(window.stride).filter(|p| p + reach <= places.len()).collect();
            assert_eq!(window.output_size(base).unwrap(), positions.len(), "{window:?} over {base}");
            for (output, position) in positions.into_iter().enumerate() {
                let mut held: Vec<Option<usize>> =
                    (0..window.size).map(|k| places[position + k * window.window_dilation]).collect();
                if window.reversal {
                    held.reverse();
                }
                let found: Vec<_> = (0..window.size).map(|k| window.base_index(output, k, base)).collect();
                assert_eq!(found, held, "{window:?} over {base} at {output}");
                let mut held: Vec<usize> = held.into_iter().flatten().collect();
                assert_eq!(window.base_indices(output, base), held, "{window:?} over {base} at {output}");
                if let Some(range) = window.base_range(output, base) {
                    held.sort_unstable();
                    assert_eq!(range.collect::<Vec<_>>(), held, "{window:?} over {base} at {output}");
                }
            }
        }
    }
}

#[test]
fn geometry_does_not_overflow() {
    let huge = usize::MAX;
    let cases = [
        (WindowDim { size: huge, window_dilation: huge, ..dim(1) }, 5, None),
        (WindowDim { stride: huge, ..dim(1) }, 5, Some(1)),
        (WindowDim { base_dilation: huge, ..dim(1) }, 5, None),
        (WindowDim { pad_low: i64::MAX, pad_high: i64::MAX, stride: 1 << 62, ..dim(2) }, 5, Some(5)),
        (WindowDim { pad_low: i64::MIN, pad_high: i64::MIN, ..dim(1) }, huge, Some(0)),
        (WindowDim { base_dilation: huge, ..dim(1) }, huge, None),
    ];
    for (window, base, expected) in cases {
        assert_eq!(window.output_size(base).ok(), expected, "{window:?} over {base}");
    }
    let far = WindowDim { size: 1 << 60, pad_low: 1 << 60, window_dilation: 2, ..dim(1) };
    assert_eq!(far.base_indices(0, 3), [0, 2], "found without visiting the padding");
}

fn reduce_window(
    computation: fn(&mut ModuleBuilder, ElementType) -> CompId,
    window: &Window,
    x: &Literal,
    init: f64,
) -> Vec<f64> {
    let ty = x.array_shape().element_type();
    let op = |m: &mut ModuleBuilder| ReduceWindow { window: window.clone(), computation: computation(m, ty) };
    numbers(&run(op, None, &[x.clone(), scalar(ty, init)]).unwrap_or_else(|e| panic!("{window:?}: {e}")))
}

fn add(m: &mut ModuleBuilder, ty: ElementType) -> CompId {
    combiner(m, BinaryOp::Add, ty)
}

#[test]
fn known_sums() {
    let x = array(F32, &[5], &[1.0, 2.0, 3.0, 4.0, 5.0]);
    let cases: &[(WindowDim, &[f64])] = &[
        (WindowDim { stride: 2, pad_low: 1, pad_high: 1, ..dim(3) }, &[13.0, 19.0, 19.0]),
        (WindowDim { window_dilation: 2, pad_low: 1, ..dim(2) }, &[12.0, 14.0, 16.0, 18.0]),
        (
            WindowDim { base_dilation: 3, window_dilation: 2, pad_low: -1, pad_high: 2, ..dim(2) },
            &[12.0, 10.0, 12.0, 13.0, 10.0, 13.0, 14.0, 10.0, 14.0, 15.0, 10.0, 15.0],
        ),
        (WindowDim { pad_low: -1, pad_high: -1, ..dim(3) }, &[19.0]),
        (WindowDim { pad_low: 4, ..dim(5) }, &[11.0, 13.0, 16.0, 20.0, 25.0]),
        (WindowDim { pad_low: 9, pad_high: 9, stride: 8, ..dim(1) }, &[10.0, 10.0, 10.0]),
        (dim(6), &[]),
    ];
    for (window_dim, expected) in cases {
        assert_eq!(reduce_window(add, &window(&[*window_dim]), &x, 10.0), *expected, "{window_dim:?}");
    }
    assert_eq!(reduce_window(add, &Window::default(), &x, 10.0), [11.0, 12.0, 13.0, 14.0, 15.0], "no window written");
    assert_eq!(reduce_window(add, &Window::default(), &scalar(F32, 2.0), 10.0), [12.0]);
    let empty = array(F32, &[0], &[]);
    let padded = WindowDim { pad_low: 1, pad_high: 1, ..dim(2) };
    assert_eq!(reduce_window(add, &window(&[padded]), &empty, 10.0), [10.0], "nothing but padding");
}

#[test]
fn both_ways_of_reducing_agree() {
    let values: Vec<f64> = (0..30).map(|i| f64::from(i * i % 17 - 4)).collect();
    let x = array(S32, &[5, 6], &values);
    let windows = small_windows();
    for (i, &rows) in windows.iter().enumerate().step_by(7) {
        let columns = windows[(i * 5 + 3) % windows.len()];
        let window = window(&[rows, columns]);
        let separable = reduce_window(add, &window, &x, 3.0);
        assert_eq!(separable, reduce_window(disguised_add, &window, &x, 3.0), "{window:?}");
    }
}

#[test]
fn other_combiners_reduce_in_the_window_order() {
    let x = array(S32, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let square = window(&[dim(2), dim(2)]);
    assert_eq!(reduce_window(append_digit, &square, &x, 0.0), [1245.0, 2356.0]);
    let backwards = window(&[dim(2), WindowDim { reversal: true, ..dim(2) }]);
    assert_eq!(reduce_window(append_digit, &backwards, &x, 0.0), [2154.0, 3265.0]);
}

#[test]
fn a_long_cumulative_sum_is_exact_enough_and_not_quadratic() {
    let n = 20_000;
    let x = array(F32, &[n], &vec![f64::from(0.1f32); n]);
    let cumulative = WindowDim { pad_low: n as i64 - 1, ..dim(n) };
    let sums = reduce_window(add, &window(&[cumulative]), &x, 0.0);
    for (i, sum) in sums.into_iter().enumerate().step_by(999) {
        let exact = f64::from(0.1f32) * (i + 1) as f64;
        assert!((sum - exact).abs() <= exact * 1e-6, "{sum} against {exact} at {i}");
    }
}

#[test]
fn several_arrays_and_other_precisions() {
    let op = |m: &mut ModuleBuilder| {
        let computation = function(m, &[F32, S32, F32, S32], |b, p| {
            let sum = b.add(p[0], p[2])?;
            let most = b.maximum(p[1], p[3])?;
            b.tuple([sum, most])
        });
        ReduceWindow { window: window(&[dim(2)]), computation }
    };
    let operands =
        [array(F32, &[3], &[1.0, 2.0, 3.0]), array(S32, &[3], &[5.0, 4.0, 9.0]), scalar(F32, 0.5), scalar(S32, 0.0)];
    let result = run(op, None, &operands).unwrap();
    assert_eq!(numbers(&result.elements()[0]), [3.5, 5.5]);
    assert_eq!(numbers(&result.elements()[1]), [5.0, 9.0]);
    let op = |m: &mut ModuleBuilder| ReduceWindow { window: window(&[dim(2)]), computation: add(m, F32) };
    let wide = run(op, None, &[array(BF16, &[2], &[256.0, 1.0]), scalar(BF16, 0.0)]).unwrap();
    assert_eq!(numbers(&wide), [257.0]);
    let op = |m: &mut ModuleBuilder| ReduceWindow { window: window(&[dim(2)]), computation: add(m, BF16) };
    let narrow = run(op, None, &[array(F32, &[3], &[257.0, 1.0, 0.0]), scalar(BF16, 0.0)]).unwrap();
    assert_eq!(numbers(&narrow), [256.0, 1.0], "elements are rounded before they are combined");
}

/// Adds a computation that selects the greater element, or the first of equal elements.
fn greatest(m: &mut ModuleBuilder, ty: ElementType) -> CompId {
    function(m, &[ty, ty], |b, p| b.compare(CompareDirection::Ge, p[0], p[1]))
}

fn select_and_scatter(window: Window, x: &Literal, source: &Literal, init: &Literal) -> Result<Literal> {
    let ty = x.array_shape().element_type();
    let op = |m: &mut ModuleBuilder| {
        let select = greatest(m, ty);
        SelectAndScatter { window: window.clone(), select, scatter: add(m, ty) }
    };
    run(op, None, &[x.clone(), source.clone(), init.clone()])
}

#[test]
fn sources_go_to_the_chosen_elements() {
    let f32s = |dims: &[usize], values: &[f64]| array(F32, dims, values);
    let scattered = |window, x: &Literal, source: &Literal| {
        numbers(&select_and_scatter(window, x, source, &scalar(F32, 100.0)).unwrap())
    };
    let matrix = f32s(
        &[4, 5],
        &[7.0, 2.0, 5.0, 3.0, 8.0, 3.0, 8.0, 9.0, 3.0, 4.0, 1.0, 5.0, 7.0, 5.0, 6.0, 0.0, 6.0, 2.0, 10.0, 2.0],
    );
    let stride = |size| WindowDim { stride: 2, ..dim(size) };
    let result = scattered(window(&[stride(2), stride(3)]), &matrix, &f32s(&[2, 2], &[2.0, 6.0, 3.0, 1.0]));
    let chosen: Vec<(usize, f64)> = result.into_iter().enumerate().filter(|(_, v)| *v != 100.0).collect();
    assert_eq!(chosen, [(7, 108.0), (12, 103.0), (18, 101.0)], "two windows chose the same element");
    let line = f32s(&[5], &[1.0; 5]);
    let around = WindowDim { pad_low: 1, pad_high: 1, ..dim(3) };
    let result = scattered(window(&[around]), &line, &f32s(&[5], &[1.0, 2.0, 3.0, 4.0, 5.0]));
    assert_eq!(result, [103.0, 103.0, 104.0, 105.0, 100.0], "the first of equals, padding never");
    let outside = WindowDim { stride: 4, pad_low: 2, pad_high: 2, ..dim(1) };
    let result = scattered(window(&[outside]), &f32s(&[3], &[1.0; 3]), &f32s(&[2], &[1.0, 2.0]));
    assert_eq!(result, [100.0, 100.0, 102.0], "a window of padding alone chooses nothing");
    let result = scattered(Window::default(), &f32s(&[2], &[3.0, 4.0]), &f32s(&[2], &[1.0, 2.0]));
    assert_eq!(result, [101.0, 102.0]);
    let result = scattered(window(&[dim(3)]), &f32s(&[2], &[3.0, 4.0]), &f32s(&[0], &[]));
    assert_eq!(result, [100.0, 100.0], "no window fits");
}

#[test]
fn every_real_type_selects() {
    for &ty in ElementType::ALL {
        if ty.is_complex() {
            continue;
        }
        let x = array(ty, &[2], &[1.0, 1.0]);
        let result = select_and_scatter(window(&[dim(2)]), &x, &array(ty, &[1], &[1.0]), &scalar(ty, 1.0)).unwrap();
        let expected = xla_hlo::Scalar::from_i64(ty, 2).rounded(ty);
        assert_eq!((result.get(0), result.get(1)), (expected, xla_hlo::Scalar::from_i64(ty, 1).rounded(ty)), "{ty}");
    }
}

#[test]
fn broken_rules_are_named() {
    let x = array(F32, &[4], &[0.0; 4]);
    let zero = scalar(F32, 0.0);
    for (window_dims, message) in [
        (vec![dim(0)], "dimension 0: the window has size 0"),
        (vec![WindowDim { stride: 0, ..dim(1) }], "stride 0"),
        (vec![WindowDim { window_dilation: 0, ..dim(1) }], "rhs_dilate 0"),
        (vec![WindowDim { base_dilation: 0, ..dim(1) }], "lhs_dilate 0"),
        (vec![dim(1), dim(1)], "the window has 2 dimensions"),
        (vec![WindowDim { pad_low: i64::MAX, pad_high: i64::MAX, ..dim(1) }], "too large"),
    ] {
        let op = |m: &mut ModuleBuilder| ReduceWindow { window: window(&window_dims), computation: add(m, F32) };
        assert_refused(&format!("{window_dims:?}"), run(op, None, &[x.clone(), zero.clone()]), message);
        let windowed = window(&window_dims);
        assert!(select_and_scatter(windowed, &x, &x, &zero).is_err(), "{window_dims:?}");
    }
    let source = |n: usize| array(F32, &[n], &vec![0.0; n]);
    assert_refused("source", select_and_scatter(window(&[dim(2)]), &x, &source(4), &zero), "dimensions [3]");
    assert_refused("init", select_and_scatter(window(&[dim(2)]), &x, &source(3), &source(1)), "must be a scalar");
    let op = |m: &mut ModuleBuilder| SelectAndScatter {
        window: window(&[dim(2)]),
        select: add(m, F32),
        scatter: add(m, F32),
    };
    assert_refused("select", run(op, None, &[x.clone(), source(3), zero.clone()]), "must return pred[]");
    let op = |m: &mut ModuleBuilder| {
        let select = greatest(m, F32);
        SelectAndScatter { window: window(&[dim(2)]), select, scatter: add(m, BF16) }
    };
    assert_refused("scatter", run(op, None, &[x, source(3), zero]), "must return f32[]");
}

#[test]
fn windows_that_grow_are_cumulative() {
    let grows = |pad_low, pad_high, reversal| WindowDim { pad_low, pad_high, reversal, ..dim(4) };
    let cumulative = |dims: &[WindowDim], base: &[usize]| window(dims).cumulative(base);
    let expected = |dimension, from_end, in_order| Some(Cumulative { dimension, from_end, in_order });
    assert_eq!(cumulative(&[grows(3, 0, false), dim(1)], &[4, 9]), expected(0, false, true));
    assert_eq!(cumulative(&[dim(1), grows(0, 3, false)], &[9, 4]), expected(1, true, false));
    assert_eq!(cumulative(&[grows(0, 3, true)], &[4]), expected(0, true, true));
    assert_eq!(cumulative(&[grows(3, 0, true)], &[4]), expected(0, false, false));
    for other in [
        grows(2, 1, false),
        grows(3, 3, false),
        grows(-3, 0, false),
        dim(1),
        WindowDim { stride: 2, ..grows(3, 0, false) },
        WindowDim { window_dilation: 2, ..grows(3, 0, false) },
        WindowDim { base_dilation: 2, ..grows(3, 0, false) },
    ] {
        assert_eq!(cumulative(&[other], &[4]), None, "{other:?}");
    }
    assert_eq!(cumulative(&[grows(3, 0, false)], &[5]), None);
    assert_eq!(cumulative(&[grows(3, 0, false), grows(3, 0, false)], &[4, 4]), None);
    assert_eq!(Window::default().cumulative(&[4]), None);
}
