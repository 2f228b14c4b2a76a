//! Tests of LAPACK's decompositions of general matrices, which check residuals.

use super::*;
use ElementType::{C64, C128, F32, F64};

const TYPES: [ElementType; 4] = [F32, F64, C64, C128];

/// Returns the tolerance for elements of size 1.
fn tolerance(ty: ElementType) -> f64 {
    if matches!(ty, F32 | C64) { 1e-5 } else { 1e-12 }
}

/// Returns the results of a routine on one or more literals. `results` are their shapes, with `?` in place of `ty`.
pub fn routine(
    name: &str,
    ty: ElementType,
    config: &str,
    results: &[&str],
    operands: &[Literal],
) -> Result<Vec<Literal>> {
    let letter = match ty {
        F32 => "s",
        F64 => "d",
        C64 => "c",
        _ => "z",
    };
    let real = ty.real_part().to_string();
    let results: Vec<String> =
        results.iter().map(|shape| shape.replace('?', &ty.to_string()).replace('!', &real)).collect();
    let result = if results.len() == 1 { results[0].clone() } else { format!("({})", results.join(", ")) };
    let text = format!(
        "{result} custom-call(), custom_call_target=\"lapack_{letter}{name}_ffi\", api_version=API_VERSION_TYPED_FFI, \
         backend_config={{{config}}}"
    );
    let result = call(&CustomCallRegistry::new(), &text, operands.to_vec())?;
    Ok(if results.len() == 1 { vec![result] } else { result.elements().to_vec() })
}

fn run(name: &str, ty: ElementType, config: &str, results: &[&str], operands: &[Literal]) -> Vec<Literal> {
    routine(name, ty, config, results, operands).unwrap_or_else(|e| panic!("{ty} {name}: {e}"))
}

/// Returns a literal of complex numbers, or of their real parts.
pub fn literal(ty: ElementType, dims: &[usize], values: &[Complex]) -> Literal {
    let element = |i: usize| match ty.is_complex() {
        true => Scalar::Complex(values[i].0, values[i].1),
        false => Scalar::Float(values[i].0),
    };
    Literal::from_fn(&ArrayShape::new(ty, dims), element).unwrap()
}

fn real(values: &[f64]) -> Vec<Complex> {
    values.iter().map(|&x| (x, 0.0)).collect()
}

/// Returns a matrix without structure.
fn random(ty: ElementType, rows: usize, columns: usize) -> Literal {
    let (mut seed, count) = (17_u64, rows * columns);
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 40) as f64 / f64::from(1 << 23) - 1.0
    };
    let values: Vec<Complex> = (0..count).map(|_| (next(), next())).collect();
    literal(ty, &[rows, columns], &values)
}

/// Returns square matrices: without structure, defective, singular, with eigenvalues of equal size or of very different
/// sizes, empty.
fn squares(ty: ElementType) -> Vec<(usize, Literal)> {
    let mut all: Vec<(usize, Literal)> = [0, 1, 2, 3, 7, 20].map(|n| (n, random(ty, n, n))).into();
    let jordan = |n: usize, value: f64| {
        (0..n * n).map(move |at| match at % n {
            j if j == at / n => value,
            j if j == at / n + 1 => 1.0,
            _ => 0.0,
        })
    };
    let cycle = (0..36).map(|at| f64::from(u8::from(at % 6 == (at / 6 + 1) % 6))).collect::<Vec<_>>();
    let turn = vec![0.0, -1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, -1.0, 0.0, 0.0, 1.0, 0.0];
    let far_apart = vec![1.0, 1e3, 1e5, 1e-3, 1.0, 1e2, 1e-5, 1e-2, 1.0];
    let double = vec![2.0, 1.0, 1.0, 0.0, 2.0, 1.0, 0.0, 1e-20, 2.0];
    for (n, values) in [
        (4, jordan(4, 0.0).collect()),
        (3, jordan(3, -2.0).collect()),
        (6, cycle),
        (4, turn),
        (3, vec![0.0; 9]),
        (3, far_apart),
        (3, double),
        (5, vec![1.0; 25]),
    ] {
        all.push((n, literal(ty, &[n, n], &real(&values))));
    }
    all
}

fn greatest(values: &[Complex]) -> f64 {
    values.iter().map(|x| x.0.hypot(x.1)).fold(1.0, f64::max)
}

fn assert_near(what: &str, found: &[Complex], expected: &[Complex], tolerance: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let tolerance = tolerance * greatest(expected);
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a.0 - b.0).hypot(a.1 - b.1) <= tolerance, "{what}: element {i} is {a:?}, not {b:?}");
    }
}

/// Splits results into the eigenvalues, which come first, and the others.
fn eigenvalues(ty: ElementType, results: &[Literal]) -> (Vec<Complex>, &[Literal]) {
    if ty.is_complex() {
        return (complex_numbers(&results[0]), &results[1..]);
    }
    let pairs = numbers(&results[0]).into_iter().zip(numbers(&results[1]));
    (pairs.collect(), &results[2..])
}

fn eigenvalue_shapes(ty: ElementType, n: usize) -> Vec<String> {
    vec![format!("?[{n}]"); if ty.is_complex() { 1 } else { 2 }]
}

#[test]
fn schur_forms() {
    for ty in TYPES {
        for (n, a) in squares(ty) {
            let what = format!("{ty} {a}");
            let square = format!("?[{n},{n}]");
            let values = eigenvalue_shapes(ty, n);
            let mut shapes = vec![&*square, &*square];
            shapes.extend(values.iter().map(|shape| &**shape));
            shapes.extend(["s32[]", "s32[]"]);
            let results = run("gees", ty, "mode = 86 : ui8, sort = 78 : ui8", &shapes, std::slice::from_ref(&a));
            let (t, z) = (complex_numbers(&results[0]), complex_numbers(&results[1]));
            let (values, rest) = eigenvalues(ty, &results[2..]);
            assert_eq!([numbers(&rest[0]), numbers(&rest[1])], [[0.0], [0.0]], "{what}");
            let size = (n, n, n);
            let again = product(size, &product(size, &z, &t), &adjoint((n, n), &z));
            assert_near(&what, &again, &complex_numbers(&a), tolerance(ty));
            assert_near(&what, &product(size, &adjoint((n, n), &z), &z), &identity(n), tolerance(ty));
            let zero = (0.0, 0.0);
            for (i, j) in (0..n).flat_map(|i| (0..i).map(move |j| (i, j))) {
                let is_block = i == j + 1 && !ty.is_complex() && values[j].1 > 0.0;
                assert_eq!(t[i * n + j] != zero, is_block, "{what}: element {i},{j} of {t:?}");
                if is_block {
                    assert_eq!(t[i * n + i], t[j * n + j], "{what}");
                    assert_eq!(values[i], (values[j].0, -values[j].1), "{what}");
                }
            }
            assert!((0..n).all(|i| values[i].0 == t[i * n + i].0), "{what}: {values:?}");
            let without = run("gees", ty, "mode = 78 : ui8, sort = 78 : ui8", &shapes, std::slice::from_ref(&a));
            assert!(without[0] == results[0] && complex_numbers(&without[1]).iter().all(|&x| x == zero), "{what}");
        }
    }
    let sorted = routine("gees", F64, "mode = 86 : ui8, sort = 83 : ui8", &["?[1,1]"], &[random(F64, 1, 1)]);
    assert!(matches!(sorted, Err(Error::Unimplemented(_))), "{sorted:?}");
}

#[test]
fn eigenvectors_of_general_matrices() {
    for ty in TYPES {
        for (n, a) in squares(ty) {
            let what = format!("{ty} {a}");
            let complex = if matches!(ty, F32 | C64) { C64 } else { C128 };
            let square = format!("{complex}[{n},{n}]");
            let values = eigenvalue_shapes(ty, n);
            let mut shapes: Vec<&str> = values.iter().map(|shape| &**shape).collect();
            shapes.extend([&*square, &*square, "s32[]"]);
            let config = "compute_left = 86 : ui8, compute_right = 86 : ui8";
            let results = run("geev", ty, config, &shapes, std::slice::from_ref(&a));
            let (values, rest) = eigenvalues(ty, &results);
            let (left, right, a) = (complex_numbers(&rest[0]), complex_numbers(&rest[1]), complex_numbers(&a));
            assert_eq!(numbers(&rest[2]), [0.0], "{what}");
            let sizes = (n, n, n);
            let scaled = |v: &[Complex], of: &dyn Fn(usize) -> Complex| {
                (0..n * n).map(|at| times(v[at], of(at % n))).collect::<Vec<_>>()
            };
            let bound = tolerance(ty) * greatest(&a);
            let residual = product(sizes, &a, &right);
            assert_near(&what, &residual, &scaled(&right, &|j| values[j]), bound);
            let residual = product(sizes, &adjoint((n, n), &a), &left);
            assert_near(&what, &residual, &scaled(&left, &|j| (values[j].0, -values[j].1)), bound);
            for (j, vectors) in (0..n).flat_map(|j| [(j, &left), (j, &right)]) {
                let column: Vec<Complex> = (0..n).map(|i| vectors[i * n + j]).collect();
                let length = column.iter().map(|x| x.0 * x.0 + x.1 * x.1).sum::<f64>();
                assert!((length - 1.0).abs() < tolerance(ty), "{what}: vector {j} is {column:?}");
                if !ty.is_complex() && values[j].1 == 0.0 {
                    assert!(column.iter().all(|x| x.1 == 0.0), "{what}: vector {j} is {column:?}");
                }
                if !ty.is_complex() && values[j].1 > 0.0 {
                    let partner: Vec<Complex> = (0..n).map(|i| vectors[i * n + j + 1]).collect();
                    assert_eq!(adjoint((n, 1), &column), partner, "{what}");
                }
            }
        }
    }
    let shapes = ["?[2]", "?[2]", "c128[2,2]", "c128[2,2]", "s32[]"];
    let config = "compute_left = 78 : ui8, compute_right = 86 : ui8";
    let nan = run("geev", F64, config, &shapes, &[literal(F64, &[2, 2], &real(&[1.0, f64::NAN, 0.0, 1.0]))]);
    assert_eq!(numbers(&nan[4]), [-4.0]);
    let results = run("geev", F64, config, &shapes, &[literal(F64, &[2, 2], &real(&[2.0, 0.0, 0.0, 3.0]))]);
    assert_eq!((numbers(&results[0]), complex_numbers(&results[2])), (vec![2.0, 3.0], vec![(0.0, 0.0); 4]));
    assert_eq!(complex_numbers(&results[3]), real(&[1.0, 0.0, 0.0, 1.0]));
}

/// Returns the product of reflections whose vectors start `offset` rows below the diagonal of a matrix with `n` rows.
fn reflections(n: usize, offset: usize, vectors: &dyn Fn(usize, usize) -> Complex, taus: &[Complex]) -> Vec<Complex> {
    let mut q = identity(n);
    for (k, &tau) in taus.iter().enumerate() {
        let element = |i: usize| match i.cmp(&(k + offset)) {
            std::cmp::Ordering::Less => (0.0, 0.0),
            std::cmp::Ordering::Equal => (1.0, 0.0),
            std::cmp::Ordering::Greater => vectors(i, k),
        };
        let v: Vec<Complex> = (0..n).map(element).collect();
        let outer = product((n, 1, n), &v, &adjoint((n, 1), &v));
        let scaled = product((1, 1, n * n), &[tau], &outer);
        let reflection: Vec<Complex> = identity(n).iter().zip(&scaled).map(|(x, y)| (x.0 - y.0, x.1 - y.1)).collect();
        q = product((n, n, n), &q, &reflection);
    }
    q
}

#[test]
fn hessenberg_forms() {
    for ty in TYPES {
        for (n, a) in squares(ty).into_iter().filter(|(n, _)| *n > 0) {
            let what = format!("{ty} {a}");
            let shapes = [&*format!("?[{n},{n}]"), &*format!("?[{}]", n - 1), "s32[]"];
            let results =
                run("gehrd", ty, &format!("low = 1 : i32, high = {n} : i32"), &shapes, std::slice::from_ref(&a));
            let (packed, taus) = (complex_numbers(&results[0]), complex_numbers(&results[1]));
            let q = reflections(n, 1, &|i, k| packed[i * n + k], &taus);
            let h: Vec<Complex> =
                (0..n * n).map(|at| if at / n > at % n + 1 { (0.0, 0.0) } else { packed[at] }).collect();
            let sizes = (n, n, n);
            let again = product(sizes, &product(sizes, &q, &h), &adjoint((n, n), &q));
            assert_near(&what, &again, &complex_numbers(&a), tolerance(ty));
            assert_near(&what, &product(sizes, &q, &adjoint((n, n), &q)), &identity(n), tolerance(ty));
        }
    }
    let a = random(F64, 4, 4);
    let shapes = ["?[4,4]", "?[3]", "s32[]"];
    let part = run("gehrd", F64, "low = 2 : i32, high = 3 : i32", &shapes, std::slice::from_ref(&a));
    assert_eq!((&part[0], numbers(&part[1])), (&a, vec![0.0; 3]), "two rows are in the form already");
    let wrong = routine("gehrd", F64, "low = 2 : i32, high = 5 : i32", &shapes, &[a]);
    assert!(wrong.is_err_and(|e| e.message().contains("rows from 1 to 4, they are 2 and 5")));
}

#[test]
fn tridiagonal_forms_of_either_triangle() {
    for (ty, uplo) in TYPES.into_iter().flat_map(|ty| [(ty, 'L'), (ty, 'U')]) {
        for n in [1, 2, 3, 9] {
            let what = format!("{ty} {uplo} {n}");
            let a = random(ty, n, n);
            let shapes = [
                format!("?[{n},{n}]"),
                format!("![{n}]"),
                format!("![{}]", n - 1),
                format!("?[{}]", n - 1),
                "s32[]".into(),
            ];
            let routine = if ty.is_complex() { "hetrd" } else { "sytrd" };
            let config = format!("uplo = {} : ui8", uplo as u32);
            let results = run(routine, ty, &config, &shapes.each_ref().map(|s| &**s), std::slice::from_ref(&a));
            let [packed, taus] = [0, 3].map(|i| complex_numbers(&results[i]));
            let (d, e, a) = (numbers(&results[1]), numbers(&results[2]), complex_numbers(&a));
            let place = |i: usize, j: usize| match uplo {
                'L' => i * n + j,
                _ => (n - 1 - i) * n + n - 1 - j,
            };
            // The given triangle mirrored to the lower one, and the results converted accordingly.
            let conjugate = |x: Complex| (x.0, -x.1);
            let hermitian: Vec<Complex> = (0..n * n)
                .map(|at| match (at / n, at % n) {
                    (i, j) if i > j => a[place(i, j)],
                    (i, j) if i < j => conjugate(a[place(j, i)]),
                    (i, _) => (a[place(i, i)].0, 0.0),
                })
                .collect();
            let turned = |values: &[Complex]| match uplo {
                'L' => values.to_vec(),
                _ => values.iter().rev().copied().collect(),
            };
            let (d, e, taus) = (turned(&real(&d)), turned(&real(&e)), turned(&taus));
            let q = reflections(n, 1, &|i, k| packed[place(i, k)], &taus);
            let t: Vec<Complex> = (0..n * n)
                .map(|at| match (at / n, at % n) {
                    (i, j) if i == j => d[i],
                    (i, j) if i == j + 1 || j == i + 1 => e[i.min(j)],
                    _ => (0.0, 0.0),
                })
                .collect();
            let sizes = (n, n, n);
            let again = product(sizes, &product(sizes, &q, &t), &adjoint((n, n), &q));
            assert_near(&what, &again, &hermitian, tolerance(ty));
            for (i, j) in (0..n).flat_map(|i| (0..i).map(move |j| (i, j))) {
                assert_eq!(packed[place(j, i)], a[place(j, i)], "{what}: the other triangle stays");
            }
            assert!((1..n).all(|i| packed[place(i, i - 1)] == e[i - 1]), "{what}");
        }
    }
}

#[test]
fn orthogonal_factors_with_exchanged_columns() {
    for ty in TYPES {
        for (rows, columns) in [(6, 4), (4, 4), (3, 5), (1, 1), (0, 2), (2, 0)] {
            let (a, least) = (random(ty, rows, columns), rows.min(columns));
            for fixed in [vec![0; columns], (0..columns).map(|j| i64::from(j == 1 || j == 3)).collect()] {
                let what = format!("{ty} {rows} {columns} {fixed:?}");
                let order = array(S32, &[columns], &fixed.iter().map(|&j| j as f64).collect::<Vec<_>>());
                let shapes = [format!("?[{rows},{columns}]"), format!("s32[{columns}]"), format!("?[{least}]")];
                let results = run("geqp3", ty, "", &shapes.each_ref().map(|s| &**s), &[a.clone(), order]);
                let (packed, order, taus) =
                    (complex_numbers(&results[0]), numbers(&results[1]), complex_numbers(&results[2]));
                let q = reflections(rows, 0, &|i, k| packed[i * columns + k], &taus);
                let r: Vec<Complex> = (0..rows * columns)
                    .map(|at| if at / columns > at % columns { (0.0, 0.0) } else { packed[at] })
                    .collect();
                let a = complex_numbers(&a);
                let chosen: Vec<Complex> = (0..rows * columns)
                    .map(|at| a[at / columns * columns + order[at % columns] as usize - 1])
                    .collect();
                assert_near(&what, &product((rows, rows, columns), &q, &r), &chosen, tolerance(ty));
                let count = fixed.iter().filter(|&&j| j != 0).count();
                assert!(count == 0 || order[..count] == [2.0, 4.0][..count], "{what}: {order:?}");
                let sizes: Vec<f64> = (count..least).map(|k| r[k * columns + k].0.abs()).collect();
                assert!(sizes.iter().rev().is_sorted(), "{what}: {sizes:?}");
            }
        }
    }
    let zero = literal(F64, &[2, 2], &real(&[0.0; 4]));
    let results = run("geqp3", F64, "", &["?[2,2]", "s32[2]", "?[2]"], &[zero, array(S32, &[2], &[0.0; 2])]);
    assert_eq!((numbers(&results[1]), numbers(&results[2])), (vec![1.0, 2.0], vec![0.0; 2]));
}

#[test]
fn products_with_reflections() {
    for ty in TYPES {
        let (rows, count) = (5, 3);
        let factored = run("geqrf", ty, "", &["?[5,3]", "?[3]"], &[random(ty, rows, count)]);
        let (vectors, taus) = (complex_numbers(&factored[0]), complex_numbers(&factored[1]));
        let q = reflections(rows, 0, &|i, k| vectors[i * count + k], &taus);
        let routine = if ty.is_complex() { "unmqr" } else { "ormqr" };
        for (left, transpose) in [(true, true), (true, false), (false, true), (false, false)] {
            let (height, width) = if left { (5, 2) } else { (4, 5) };
            let c = random(ty, height, width);
            let config = format!("left = {left}, transpose = {transpose}");
            let shape = format!("?[{height},{width}]");
            let found = run(routine, ty, &config, &[&shape], &[factored[0].clone(), factored[1].clone(), c.clone()]);
            let factor = if transpose { adjoint((rows, rows), &q) } else { q.clone() };
            let expected = match left {
                true => product((5, 5, 2), &factor, &complex_numbers(&c)),
                false => product((4, 5, 5), &complex_numbers(&c), &factor),
            };
            assert_near(&format!("{ty} {config}"), &complex_numbers(&found[0]), &expected, tolerance(ty));
        }
    }
    let operands = [random(F64, 5, 3), random(F64, 1, 3), random(F64, 4, 2)];
    let wrong = routine("ormqr", F64, "left = true, transpose = false", &["?[4,2]"], &operands);
    assert!(wrong.is_err_and(|e| e.message().contains("must hold vectors of 4 elements")));
}

#[test]
fn batches_are_decomposed_one_by_one() {
    let [a, b] = [complex_numbers(&random(F64, 3, 3)), real(&[0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0])];
    let both = literal(F64, &[2, 1, 3, 3], &[a.clone(), b.clone()].concat());
    let shapes = ["?[2,1,3,3]", "?[2,1,3,3]", "?[2,1,3]", "?[2,1,3]", "s32[2,1]", "s32[2,1]"];
    let config = "mode = 86 : ui8, sort = 78 : ui8";
    let together = run("gees", F64, config, &shapes, &[both]);
    for (k, matrix) in [a, b].iter().enumerate() {
        let shapes = ["?[3,3]", "?[3,3]", "?[3]", "?[3]", "s32[]", "s32[]"];
        let alone = run("gees", F64, config, &shapes, &[literal(F64, &[3, 3], matrix)]);
        for (all, one) in together.iter().zip(&alone) {
            let one = numbers(one);
            assert_eq!(numbers(all)[k * one.len()..(k + 1) * one.len()], one);
        }
    }
}
