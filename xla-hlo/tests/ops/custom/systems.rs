//! Tests of tridiagonal systems of equations and of sparse products.

use super::lapack::{literal, routine};
use super::*;
use ElementType::{C64, S64};

#[test]
fn tridiagonal_systems() {
    for (ty, bound) in [(F32, 1e-4), (F64, 1e-12), (C64, 1e-4), (C128, 1e-12)] {
        for (n, columns) in [(1, 1), (2, 3), (3, 1), (8, 2), (0, 1), (3, 0)] {
            // The first element of the lower diagonal and the last of the upper diagonal are not part of the matrix.
            let part = |start: f64| -> Vec<Complex> {
                (0..n).map(|i| ((start + 7.0 * i as f64) % 5.0 - 1.7, (start * i as f64) % 3.0 - 1.0)).collect()
            };
            let diagonals = [1.0, 0.3, 2.5].map(|start| literal(ty, &[n], &part(start)));
            let right =
                literal(ty, &[n, columns], &(0..n * columns).map(|i| (1.0 + i as f64, 0.5)).collect::<Vec<_>>());
            let operands = [&diagonals[..], std::slice::from_ref(&right)].concat();
            let (vector, matrix) = (format!("?[{n}]"), format!("?[{n},{columns}]"));
            let shapes = [&*vector, &*vector, &*vector, &*matrix, "s32[]"];
            let results = routine("gtsv", ty, "", &shapes, &operands).unwrap();
            assert_eq!(numbers(&results[4]), [0.0]);
            let [below, diagonal, above] = diagonals.map(|d| complex_numbers(&d));
            let a: Vec<Complex> = (0..n * n)
                .map(|at| match (at / n, at % n) {
                    (i, j) if i == j => diagonal[i],
                    (i, j) if i == j + 1 => below[i],
                    (i, j) if j == i + 1 => above[i],
                    _ => (0.0, 0.0),
                })
                .collect();
            let text = format!(
                "{ty}[{n},{columns}] custom-call(), custom_call_target=\"tridiagonal_solve_perturbed_ffi\", \
                 api_version=API_VERSION_TYPED_FFI"
            );
            for x in [&results[3], &builtin(&text, &operands)] {
                let again = product((n, n, columns), &a, &complex_numbers(x));
                for (found, expected) in again.iter().zip(complex_numbers(&right)) {
                    let error = (found.0 - expected.0).hypot(found.1 - expected.1);
                    assert!(error <= bound, "{ty} {n} {columns}: {found:?} {expected:?}");
                }
            }
        }
    }
}

/// Factors of systems with and without row exchanges, and of a singular one, equal LAPACK's.
#[test]
fn factors_of_tridiagonal_systems() {
    let solve = |below: &[f64], diagonal: &[f64], above: &[f64]| {
        let operands = [below, diagonal, above].map(|d| array(F64, &[4], d));
        let operands = [&operands[..], &[array(F64, &[4, 1], &[1.0; 4])]].concat();
        let shapes = ["?[4]", "?[4]", "?[4]", "?[4,1]", "s32[]"];
        routine("gtsv", F64, "", &shapes, &operands).unwrap().iter().map(numbers).collect::<Vec<_>>()
    };
    let found = solve(&[9.0, 1.0, 2.0, 3.0], &[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 9.0]);
    assert_eq!(found[..3], [[9.0, 0.0, 0.0, 3.0], [1.0, -3.0, 7.0, 1.0], [5.0, 6.0, 7.0, 9.0]]);
    let found = solve(&[9.0, 10.0, 20.0, 30.0], &[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 9.0]);
    assert_eq!(found[0], [9.0, 6.0, 7.0, 30.0]);
    assert_eq!(found[2], [2.0, 3.0, 4.0, 9.0]);
    let found = solve(&[0.0; 4], &[0.0; 4], &[0.0; 4]);
    assert_eq!((&found[3][..], &found[4][..]), (&[1.0; 4][..], &[1.0][..]));
}

/// Expected values are results of jaxlib's handler.
#[test]
fn singular_tridiagonal_systems_are_perturbed() {
    let solve = |ty: ElementType, below: &[f64], diagonal: &[f64], above: &[f64], right: &[f64]| {
        let n = diagonal.len();
        let operands = [below, diagonal, above].map(|d| array(ty, &[n], d));
        let operands = [&operands[..], &[array(ty, &[n, 1], right)]].concat();
        let text = format!("{ty}[{n},1] custom-call(), custom_call_target=\"tridiagonal_solve_perturbed_ffi\"");
        numbers(&builtin(&text, &operands))
    };
    let (singular, ones) = ([0.0, 1.0], [1.0, 1.0]);
    assert_eq!(solve(F64, &singular, &ones, &[1.0, 0.0], &[1.0, 2.0]), [1.0 - 2f64.powi(52), 2f64.powi(52)]);
    assert_eq!(solve(F32, &singular, &ones, &[1.0, 0.0], &[1.0, 2.0]), [-8_388_607.0, 8_388_608.0]);
    let (zero, right) = ([0.0; 3], [1.0, 2.0, 3.0]);
    let large = 1.0 / f64::MIN_POSITIVE;
    assert_eq!(solve(F64, &zero, &zero, &zero, &right), [large, large * 2.0 / 3.0, large]);
    assert_eq!(solve(F64, &zero, &[1e10, 1e-300, 1.0], &zero, &right), [1.0 / 1e10, 2.0 / 1e-300, 3.0]);
    assert_eq!(solve(F64, &[0.0], &[-0.0], &[0.0], &[1.0]), [-large]);
    assert!(solve(F64, &zero, &[f64::NAN; 3], &zero, &right).iter().all(|x| x.is_nan()));
}

#[test]
fn sparse_rows_times_dense_arrays() {
    let target =
        r#"custom_call_target="cpu_csr_sparse_dense_ffi", api_version=API_VERSION_TYPED_FFI, backend_config={}"#;
    for (ty, places) in [(F32, S32), (C128, S64), (S32, S32), (ElementType::BF16, S32), (ElementType::U8, S64)] {
        // The third entry is out of bounds of the columns, and the last of the rows, like padding.
        let data = array(ty, &[6], &[1.0, 2.0, 100.0, 3.0, 4.0, 9.0]);
        let starts = array(places, &[4], &[0.0, 3.0, 3.0, 5.0]);
        let columns = array(places, &[6], &[0.0, 3.0, 4.0, 1.0, 1.0, 0.0]);
        let dense = array(ty, &[4, 2], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        let operands = [data.clone(), starts.clone(), columns.clone(), dense];
        let found = builtin(&format!("{ty}[3,2] custom-call(), {target}"), &operands);
        assert_eq!(found, array(ty, &[3, 2], &[12.0, 15.0, 0.0, 0.0, 14.0, 21.0]), "{ty}");
        let operands = [data, starts, columns, array(ty, &[4], &[0.0, 1.0, 2.0, 3.0])];
        let found = builtin(&format!("{ty}[3] custom-call(), {target}"), &operands);
        assert_eq!(found, array(ty, &[3], &[6.0, 0.0, 7.0]), "{ty}");
        let wrong = call(&CustomCallRegistry::new(), &format!("{ty}[4] custom-call(), {target}"), operands.to_vec());
        assert!(wrong.is_err_and(|e| e.message().contains("4 row starts")));
    }
}
