//! Tests of custom calls: text, rules, typed attributes, registered and built-in handlers.

mod ffi;
mod lapack;
mod systems;

use std::sync::Arc;

use ElementType::{C128, F32, F64, S32};
use xla_hlo::eval::Evaluator;
use xla_hlo::ops::{CustomCallContext, CustomCallRegistry, FfiAttributes, FfiValue};
use xla_hlo::text::{parse_literal, parse_module};
use xla_hlo::{ArrayShape, ElementType, Error, Literal, Result, Scalar, VerifiedModule};

use crate::testing::{Complex, array, assert_refused, complex_numbers, matrix_product, numbers, scalar, times};

/// Writes a module around one custom call, `ROOT r`, of operands x and y.
fn module(call: &str) -> String {
    format!(
        "HloModule m\nf {{ a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }}\n\
         g {{ a = f32[] parameter(0)\n ROOT c = f32[] negate(a) }}\n\
         ENTRY e {{\n x = f32[2,3] parameter(0)\n y = f32[3,4] parameter(1)\n ROOT r = {call}\n}}"
    )
}

fn printed(call: &str) -> String {
    let text = parse_module(&module(call)).unwrap_or_else(|e| panic!("{call}: {e}")).to_string();
    assert_eq!(parse_module(&text).unwrap().to_string(), text, "printing is no fixed point");
    let root = text.lines().find(|line| line.contains("ROOT %r")).expect("the root is printed");
    root.trim().trim_start_matches("ROOT %r = ").to_string()
}

#[test]
fn attributes_are_printed_as_xla_prints_them() {
    for (call, expected) in [
        (r#"f32[2] custom-call(x, y), custom_call_target="foo \"q\" \n""#, None),
        (r#"f32[2] custom-call(), custom_call_target="""#, None),
        (r#"token[] custom-call(x), custom_call_target="foo""#, None),
        (r#"f32[2] custom-call(), window={}, custom_call_target="foo""#, None),
        (
            r#"f32[2] custom-call(), custom_call_target="foo", dim_labels=b01f_01io->b01f, window={size=2x2 pad=0_0x1_1},
            batch_group_count=3, feature_group_count=2, operand_precision={high,default}, padding_type=PADDING_SAME"#,
            Some(
                r#"f32[2]{0} custom-call(), window={size=2x2 pad=0_0x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=2, batch_group_count=3, operand_precision={high,default}, padding_type=PADDING_SAME, custom_call_target="foo""#,
            ),
        ),
        (
            r#"f32[2] custom-call(x), custom_call_target="foo", feature_group_count=1, batch_group_count=1,
            operand_precision={default}, custom_call_has_side_effect=false, schedule=SCHEDULE_NONE,
            api_version=API_VERSION_ORIGINAL, called_computations={}, output_to_operand_aliasing={}"#,
            Some(r#"f32[2]{0} custom-call(%x), custom_call_target="foo""#),
        ),
        (
            r#"(f32[2,3], f32[]) custom-call(x, y), api_version=API_VERSION_STATUS_RETURNING, to_apply=f,
            schedule=SCHEDULE_LATEST, output_to_operand_aliasing={{0}: (0, {})}, literal=s32[] 5,
            custom_call_has_side_effect=true, operand_layout_constraints={f32[2,3]{0,1}, f32[3,4]},
            custom_call_target="foo""#,
            Some(
                r#"(f32[2,3]{1,0}, f32[]) custom-call(%x, %y), custom_call_target="foo", operand_layout_constraints={f32[2,3]{0,1}, f32[3,4]{1,0}}, custom_call_has_side_effect=true, literal=s32[] 5, output_to_operand_aliasing={{0}: (0, {})}, schedule=SCHEDULE_LATEST, api_version=API_VERSION_STATUS_RETURNING, called_computations={%f}"#,
            ),
        ),
        (
            r#"f32[2] custom-call(x), custom_call_target="foo", literal=f32[2]{0} {1, 2}, called_computations={f, g},
            schedule=SCHEDULE_EARLIEST, api_version=API_VERSION_TYPED_FFI, backend_config={dim = 4 : i64, name = "x}"}"#,
            Some(
                r#"f32[2]{0} custom-call(%x), custom_call_target="foo", literal=f32[2]{0} {1, 2}, schedule=SCHEDULE_EARLIEST, api_version=API_VERSION_TYPED_FFI, called_computations={%f, %g}, backend_config={dim = 4 : i64, name = "x}"}"#,
            ),
        ),
    ] {
        let (found, again) = (printed(call), expected.unwrap_or(call));
        match expected {
            Some(expected) => assert_eq!(found, expected),
            None => assert_eq!(printed(&found), found, "{again}"),
        }
    }
}

#[test]
fn broken_rules_are_named() {
    for (call, message) in [
        ("f32[2] custom-call(x)", "needs the attribute custom_call_target"),
        (r#"custom-call(x), custom_call_target="foo""#, "shape must be written"),
        (r#"f32[2] custom-call(x), custom_call_target="foo", to_apply=f, called_computations={f}"#, "not both"),
        (r#"f32[2] custom-call(x), custom_call_target="foo", api_version=API_VERSION_UNSPECIFIED"#, "api_version"),
        (
            r#"f32[2] custom-call(x), custom_call_target="foo", operand_layout_constraints={}"#,
            "must have one shape for each of the 1 operands, not 0",
        ),
        (
            r#"f32[2] custom-call(x), custom_call_target="foo", operand_layout_constraints={f32[3,2]{1,0}}"#,
            "give operand 0 the shape f32[3,2]{1,0}",
        ),
        (
            r#"f32[2,3] custom-call(x), custom_call_target="foo", output_to_operand_aliasing={{}: (1, {})}"#,
            "operand 1 is missing",
        ),
        (
            r#"f32[2] custom-call(x), custom_call_target="foo", output_to_operand_aliasing={{}: (0, {})}"#,
            "of custom-call cannot alias operand 0",
        ),
    ] {
        let error = parse_module(&module(call)).and_then(VerifiedModule::new).expect_err(call);
        assert!(error.message().contains(message), "{call}: {:?} lacks {message:?}", error.message());
    }
}

#[test]
fn typed_attributes() {
    let text = r#"{a = 4 : i64, b = 76 : ui8, c = "x\22\\}", d, e = [1, -2 : i8, {f = true}], g = array<i32: 1, -2>,
        h = 1.500000e+00 : f32, i = 0x7FC00000 : f32, j = false, "k k" = unit, l = array<f64>, m = -1e3, n = array<i1: true, false>,
        o = 3 : index, p = 1 : si16}"#;
    let attributes = FfiAttributes::parse(text).unwrap();
    assert_eq!(attributes.integer("a").unwrap(), 4);
    assert_eq!(attributes.get("b"), Some(&FfiValue::Number(ElementType::U8, Scalar::Unsigned(76))));
    assert_eq!(attributes.text("c").unwrap(), "x\"\\}");
    assert_eq!(attributes.get("d"), Some(&FfiValue::Unit));
    let Some(FfiValue::List(list)) = attributes.get("e") else { panic!("{attributes:?}") };
    assert_eq!(list[0], FfiValue::Number(ElementType::S64, Scalar::Signed(1)));
    assert_eq!(list[1], FfiValue::Number(ElementType::S8, Scalar::Signed(-2)));
    assert!(matches!(&list[2], FfiValue::Dictionary(inner) if inner.boolean("f").unwrap()));
    assert_eq!(attributes.get("g"), Some(&FfiValue::Numbers(S32, vec![Scalar::Signed(1), Scalar::Signed(-2)])));
    assert_eq!(attributes.float("h").unwrap(), 1.5);
    assert!(attributes.float("i").unwrap().is_nan());
    assert!(!attributes.boolean("j").unwrap());
    assert_eq!(attributes.get("k k"), Some(&FfiValue::Unit));
    assert_eq!(attributes.get("l"), Some(&FfiValue::Numbers(F64, Vec::new())));
    assert_eq!(attributes.float("m").unwrap(), -1000.0);
    let truths = FfiValue::Numbers(ElementType::Pred, vec![Scalar::Pred(true), Scalar::Pred(false)]);
    assert_eq!(attributes.get("n"), Some(&truths));
    assert_eq!((attributes.integer("o").unwrap(), attributes.integer("p").unwrap()), (3, 1));
    assert_eq!(attributes.iter().count(), 15);
    assert_eq!(FfiAttributes::parse(" ").unwrap(), FfiAttributes::parse("{}").unwrap());
    for (text, message) in [
        ("dim = 4", "expected `{` at byte 0"),
        ("{dim = 4", "expected `}`"),
        ("{dim = 4} x", "expected the end of the text"),
        ("{dim = }", "expected a value"),
        ("{dim = sparse<1>}", "expected a number, a string"),
        ("{dim = 300 : ui8}", "`300` before byte"),
        ("{dim = 1.5 : i64}", "is not of type s64"),
        ("{dim = 1 : i9000}", "expected a type"),
        ("{dim = 1, dim = 2}", "given twice"),
        ("{dim = \"x", "the string at byte 7"),
        ("{dim = \"\\q\"}", "the string at byte 7"),
        (&"{a = [".repeat(100), "nest deeper"),
    ] {
        let error = FfiAttributes::parse(text).expect_err(text);
        assert!(error.message().contains(message), "{text}: {:?} lacks {message:?}", error.message());
    }
    assert!(
        attributes.integer("zz").unwrap_err().message().contains("attribute zz is missing; the attributes are: a, b")
    );
    assert!(attributes.integer("c").unwrap_err().message().contains("attribute c must be an integer"));
}

/// Runs a custom call with a registry.
fn call(registry: &CustomCallRegistry, call: &str, operands: Vec<Literal>) -> Result<Literal> {
    let parameters: Vec<String> =
        (0..operands.len()).map(|i| format!("p{i} = {} parameter({i})", operands[i].shape())).collect();
    let names: Vec<String> = (0..operands.len()).map(|i| format!("p{i}")).collect();
    let text = format!(
        "ENTRY e {{ {}\n ROOT r = {} }}",
        parameters.join("\n"),
        call.replace("()", &format!("({})", names.join(", ")))
    );
    let module = VerifiedModule::new(parse_module(&text)?)?;
    registry.check(&module)?;
    Evaluator::new(&module).with_custom_calls(registry).call(module.entry_id(), operands)
}

fn builtin(text: &str, operands: &[Literal]) -> Literal {
    call(&CustomCallRegistry::new(), text, operands.to_vec()).unwrap_or_else(|e| panic!("{text}: {e}"))
}

#[test]
fn registered_handlers_are_called() {
    let one = scalar(F32, 1.0);
    let registry = CustomCallRegistry::new();
    let unknown = call(&registry, r#"f32[] custom-call(), custom_call_target="no_such""#, vec![one.clone()]);
    assert!(matches!(&unknown, Err(Error::Unimplemented(_))), "{unknown:?}");
    assert_refused("unknown", unknown, "%r of e: no handler is registered for the custom call target \"no_such\"");
    let opaque = |cx: &CustomCallContext<'_>, operands: Vec<Literal>| match cx.config_text()? {
        "same" => Ok(operands[0].clone()),
        "wrong" => Ok(scalar(F64, 1.0)),
        other => Err(Error::invalid_argument(format!("no {other}"))),
    };
    assert!(registry.register("echo", Arc::new(opaque)).is_none());
    let echo = |config: &str| {
        call(
            &registry,
            &format!(r#"f32[] custom-call(), custom_call_target="echo", backend_config="{config}""#),
            vec![one.clone()],
        )
    };
    assert_eq!(echo("same").unwrap(), one);
    assert_refused("wrong", echo("wrong"), "the handler returned f64[], but the instruction has shape f32[]");
    assert_refused("fails", echo("luck"), "custom call \"echo\": no luck");
    let replaced = |_: &CustomCallContext<'_>, _: Vec<Literal>| Ok(scalar(F32, 7.0));
    assert!(registry.register("echo", Arc::new(replaced)).is_some());
    let seven = call(&registry, r#"f32[] custom-call(), custom_call_target="echo""#, vec![one]).unwrap();
    assert_eq!(numbers(&seven), [7.0]);
}

/// A configuration is arbitrary bytes; handlers that require text or typed values fail with one error.
#[test]
fn configuration_of_bytes_reaches_its_handler() {
    let registry = CustomCallRegistry::new();
    let bytes =
        |cx: &CustomCallContext<'_>, _: Vec<Literal>| Ok(scalar(F32, cx.config().iter().map(|&b| f64::from(b)).sum()));
    let text = |cx: &CustomCallContext<'_>, operands: Vec<Literal>| cx.config_text().map(|_| operands[0].clone());
    let typed = |cx: &CustomCallContext<'_>, operands: Vec<Literal>| cx.attributes().map(|_| operands[0].clone());
    registry.register("bytes", Arc::new(bytes));
    registry.register("text", Arc::new(text));
    registry.register("typed", Arc::new(typed));
    let called = |target: &str| {
        let text = format!(r#"f32[] custom-call(), custom_call_target="{target}", backend_config="A\377\x80\000""#);
        call(&registry, &text, vec![scalar(F32, 1.0)])
    };
    assert_eq!(numbers(&called("bytes").unwrap()), [448.0]);
    assert_refused("text", called("text"), "backend_config must be text here, but is not UTF-8 at byte 1");
    assert_refused("typed", called("typed"), "backend_config must be text here, but is not UTF-8 at byte 1");
}

/// Multiplies an n by k and a k by m matrix.
fn product((n, k, m): (usize, usize, usize), x: &[Complex], y: &[Complex]) -> Vec<Complex> {
    matrix_product((n, k, m), |i, l| x[i * k + l], |l, j| y[l * m + j])
}

fn adjoint((rows, columns): (usize, usize), x: &[Complex]) -> Vec<Complex> {
    (0..rows * columns).map(|at| x[at % rows * columns + at / rows]).map(|x| (x.0, -x.1)).collect()
}

fn identity(n: usize) -> Vec<Complex> {
    (0..n * n).map(|at| (f64::from(u8::from(at / n == at % n)), 0.0)).collect()
}

fn assert_close(what: &str, found: &[Complex], expected: &[Complex]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a.0 - b.0).hypot(a.1 - b.1) <= 1e-12, "{what}: element {i} is {a:?}, not {b:?}");
    }
}

/// Returns a matrix without structure.
fn matrix(ty: ElementType, dims: &[usize]) -> Literal {
    let at = |i: usize, k: usize| ((i * 7919 + k) % 101) as f64 / 50.0 - 1.0;
    Literal::from_fn(&ArrayShape::new(ty, dims), |i| match ty.is_complex() {
        true => Scalar::Complex(at(i, 13), at(i, 59)),
        false => Scalar::Float(at(i, 13)),
    })
    .unwrap()
}

#[test]
fn orthogonal_factors() {
    for (ty, product_name) in [(F64, "lapack_dorgqr_ffi"), (C128, "lapack_zungqr_ffi")] {
        for (rows, columns) in [(6, 4), (4, 4), (1, 1), (3, 5)] {
            let least = rows.min(columns);
            let a = matrix(ty, &[rows, columns]);
            let qr = builtin(
                &format!(r#"({ty}[{rows},{columns}], {ty}[{least}]) custom-call(), custom_call_target="Qr""#),
                std::slice::from_ref(&a),
            );
            let [packed, scales] = qr.elements() else { panic!("{qr:?}") };
            let first = (0..rows * least).map(|at| packed.get(at / least * columns + at % least));
            let first: Vec<Scalar> = first.collect();
            let vectors = Literal::from_fn(&ArrayShape::new(ty, [rows, least]), |i| first[i]).unwrap();
            let targets = ["ProductOfElementaryHouseholderReflectors", product_name];
            let q = targets.map(|target| {
                builtin(
                    &format!(r#"{ty}[{rows},{least}] custom-call(), custom_call_target="{target}""#),
                    &[vectors.clone(), scales.clone()],
                )
            });
            assert_eq!(q[0], q[1]);
            let (q, packed) = (complex_numbers(&q[0]), complex_numbers(packed));
            let r: Vec<Complex> = (0..least * columns)
                .map(|at| if at / columns <= at % columns { packed[at] } else { (0.0, 0.0) })
                .collect();
            let what = format!("{ty} {rows} {columns}");
            assert_close(&what, &product((rows, least, columns), &q, &r), &complex_numbers(&a));
            assert_close(&what, &product((least, rows, least), &adjoint((rows, least), &q), &q), &identity(least));
        }
    }
}

#[test]
fn eigenvectors() {
    for (ty, target, config) in [
        (F64, "Eigh", "backend_config=\"1,1,100,1e-6\""),
        (
            C128,
            "lapack_zheevd_ffi",
            "api_version=API_VERSION_TYPED_FFI, backend_config={mode = 86 : ui8, uplo = 76 : ui8}",
        ),
    ] {
        for n in [0, 1, 2, 5, 12] {
            let g = complex_numbers(&matrix(ty, &[n, n]));
            let a: Vec<Complex> = g.iter().zip(adjoint((n, n), &g)).map(|(x, y)| (x.0 + y.0, x.1 + y.1)).collect();
            // Only the lower triangle may have an effect.
            let a_literal =
                Literal::from_fn(&ArrayShape::new(ty, [n, n]), |at| match (ty.is_complex(), at / n < at % n) {
                    (true, true) => Scalar::Complex(9.0, 9.0),
                    (false, true) => Scalar::Float(9.0),
                    (true, false) => Scalar::Complex(a[at].0, a[at].1),
                    (false, false) => Scalar::Float(a[at].0),
                });
            let info = if target == "Eigh" { "" } else { ", s32[]" };
            let text =
                format!(r#"({ty}[{n},{n}], f64[{n}]{info}) custom-call(), custom_call_target="{target}", {config}"#);
            let result = builtin(&text, &[a_literal.unwrap()]);
            let (v, w) = (complex_numbers(&result.elements()[0]), numbers(&result.elements()[1]));
            assert!(w.is_sorted(), "{w:?}");
            let scaled: Vec<Complex> = v.iter().enumerate().map(|(at, x)| (x.0 * w[at % n], x.1 * w[at % n])).collect();
            assert_close(&format!("{ty} {n}"), &product((n, n, n), &a, &v), &scaled);
            assert_close(&format!("{ty} {n}"), &product((n, n, n), &adjoint((n, n), &v), &v), &identity(n));
        }
    }
    let nan = builtin(
        r#"(f32[2,2], f32[2]) custom-call(), custom_call_target="Eigh""#,
        &[array(F32, &[2, 2], &[f64::NAN; 4])],
    );
    assert!(nan.elements().iter().all(|part| numbers(part).iter().all(|x| x.is_nan())));
}

#[test]
fn singular_values() {
    for (ty, real, routine) in
        [(F64, F64, "dgesdd"), (C128, F64, "zgesdd"), (F64, F64, "dgesvd"), (C128, F64, "zgesvd")]
    {
        for (rows, columns, rank) in [(5, 3, 3), (3, 5, 3), (4, 4, 2), (1, 1, 0), (0, 2, 0)] {
            // The last rows and columns are copies of others, or 0.
            let whole = complex_numbers(&matrix(ty, &[rows, rank.max(1)]));
            let other = complex_numbers(&matrix(ty, &[rank.max(1), columns]));
            let a = match rank {
                0 => vec![(0.0, 0.0); rows * columns],
                _ => product((rows, rank, columns), &whole, &other),
            };
            let operand = Literal::from_fn(&ArrayShape::new(ty, [rows, columns]), |i| match ty.is_complex() {
                true => Scalar::Complex(a[i].0, a[i].1),
                false => Scalar::Float(a[i].0),
            });
            let least = rows.min(columns);
            let text = format!(
                r#"({ty}[{rows},{columns}], {real}[{least}], {ty}[{rows},{rows}], {ty}[{columns},{columns}], s32[]) custom-call(),
                custom_call_target="lapack_{routine}_ffi", api_version=API_VERSION_TYPED_FFI, backend_config={{mode = 65 : ui8}}"#
            );
            let result = builtin(&text, &[operand.unwrap()]);
            let [_, s, u, v, _] = result.elements() else { panic!("{result:?}") };
            let (s, u, v) = (numbers(s), complex_numbers(u), complex_numbers(v));
            let what = format!("{ty} {rows} {columns} {rank}");
            assert!(s.iter().rev().is_sorted() && s.iter().skip(rank).all(|&x| x < 1e-12), "{what}: {s:?}");
            let scaled: Vec<Complex> = (0..rows * columns)
                .map(|at| match s.get(at / columns) {
                    Some(s) => (s * v[at].0, s * v[at].1),
                    None => (0.0, 0.0),
                })
                .collect();
            assert_close(&what, &product((rows, rows, columns), &u, &scaled), &a);
            assert_close(&what, &product((rows, rows, rows), &adjoint((rows, rows), &u), &u), &identity(rows));
            assert_close(
                &what,
                &product((columns, columns, columns), &v, &adjoint((columns, columns), &v)),
                &identity(columns),
            );
        }
    }
}

#[test]
fn lapack_routines() {
    let f32s = |dims: &[usize], values: &[f64]| array(F32, dims, values);
    let typed = |shape: &str, routine: &str, config: &str| {
        format!(
            r#"{shape} custom-call(), custom_call_target="lapack_{routine}_ffi", api_version=API_VERSION_TYPED_FFI, backend_config={{{config}}}"#
        )
    };
    let a = f32s(&[2, 2, 2], &[4.0, 9.0, 2.0, 5.0, 1.0, 9.0, 2.0, 1.0]);
    let result = builtin(&typed("(f32[2,2,2], s32[2])", "spotrf", "uplo = 76 : ui8"), &[a]);
    assert_eq!(numbers(&result.elements()[0]), [2.0, 9.0, 1.0, 2.0, 1.0, 9.0, 2.0, 1.0], "the upper triangle stays");
    assert_eq!(numbers(&result.elements()[1]), [0.0, 2.0]);
    let a = f32s(&[2, 2], &[4.0, 2.0, 9.0, 5.0]);
    let result = builtin(&typed("(f32[2,2], s32[])", "spotrf", "uplo = 85 : ui8"), &[a]);
    assert_eq!(numbers(&result.elements()[0]), [2.0, 1.0, 9.0, 2.0], "the lower triangle stays");
    let a = f32s(&[3, 2], &[1.0, 2.0, 4.0, 8.0, 2.0, 5.0]);
    let result = builtin(&typed("(f32[3,2], s32[2], s32[])", "sgetrf", ""), &[a]);
    assert_eq!(numbers(&result.elements()[0]), [4.0, 8.0, 0.5, 1.0, 0.25, 0.0]);
    assert_eq!((numbers(&result.elements()[1]), numbers(&result.elements()[2])), (vec![2.0, 3.0], vec![0.0]));
    let singular = f32s(&[2, 2], &[0.0, 1.0, 0.0, 2.0]);
    let result = builtin(&typed("(f32[2,2], s32[2], s32[])", "sgetrf", ""), &[singular]);
    assert_eq!(numbers(&result.elements()[2]), [1.0]);
    let (a, b) = (f32s(&[2, 2], &[2.0, 9.0, 1.0, 4.0]), f32s(&[2, 1], &[2.0, 9.0]));
    let config = "diag = 78 : ui8, side = 76 : ui8, trans_x = 78 : ui8, uplo = 76 : ui8";
    assert_eq!(numbers(&builtin(&typed("f32[2,1]", "strsm", config), &[a, b])), [1.0, 2.0]);
    let refused = |routine: &str, config: &str, shape: &str, operand: Literal| {
        call(&CustomCallRegistry::new(), &typed(shape, routine, config), vec![operand])
    };
    let square = || f32s(&[2, 2], &[1.0; 4]);
    assert_refused(
        "uplo",
        refused("spotrf", "uplo = 1 : ui8", "(f32[2,2], s32[])", square()),
        "the code of L or U, it is 1",
    );
    assert_refused("missing", refused("spotrf", "", "(f32[2,2], s32[])", square()), "attribute uplo is missing");
    assert_refused(
        "result",
        refused("sgetrf", "", "(f32[2,2], s32[3], s32[])", square()),
        "result 1 must be an array of 2",
    );
    assert_refused(
        "vector",
        refused("sgetrf", "", "(f32[2], s32[1], s32[])", f32s(&[2], &[1.0; 2])),
        "must be matrices",
    );
    assert_refused(
        "integers",
        refused("sgeqrf", "", "(s32[1,1], s32[1])", array(S32, &[1, 1], &[1.0])),
        "must be matrices",
    );
    assert!(parse_literal("f32[2] {1, 2}").is_ok());
}

#[test]
fn annotations_and_top_k_need_no_handler() {
    let registry = CustomCallRegistry::new();
    let x = array(F32, &[2, 3], &[1.0, 5.0, 5.0, f64::NAN, -1.0, 2.0]);
    for target in ["Sharding", "SPMDFullToShardShape", "MoveToHost", "LayoutConstraint", "xla.sdy.FuncResultSharding"] {
        let text =
            format!(r#"f32[2,3] custom-call(), custom_call_target="{target}", custom_call_has_side_effect=true"#);
        assert_eq!(numbers(&builtin(&text, std::slice::from_ref(&x)))[..3], [1.0, 5.0, 5.0], "{target}");
    }
    let top = builtin(r#"(f32[2,2], s32[2,2]) custom-call(), custom_call_target="TopK""#, std::slice::from_ref(&x));
    assert_eq!(numbers(&top.elements()[1]), [1.0, 2.0, 0.0, 2.0]);
    let refused = |text: &str| call(&registry, text, vec![x.clone()]);
    for (text, message) in [
        (
            r#"f32[3,2] custom-call(), custom_call_target="Sharding""#,
            "it has shape f32[2,3] on one device, not f32[3,2]",
        ),
        (r#"(f32[2,4], s32[2,4]) custom-call(), custom_call_target="TopK""#, "k=4 must not exceed the size 3"),
        (r#"(f32[2,2], s64[2,2]) custom-call(), custom_call_target="TopK""#, "it has shape (f32[2,2], s32[2,2])"),
        (
            r#"f32[2,3] custom-call(), custom_call_target="X""#,
            "no handler is registered for the custom call target \"X\"",
        ),
    ] {
        assert_refused(text, refused(text), message);
    }
}

#[test]
fn annotations_for_several_devices_are_refused_by_name() {
    let text = "HloModule m, num_partitions=2\nENTRY e { x = f32[4] parameter(0)\n \
                ROOT r = f32[2] custom-call(x), custom_call_target=\"SPMDFullToShardShape\" }";
    let module = VerifiedModule::new(parse_module(text).unwrap()).unwrap();
    let refused = CustomCallRegistry::new().check(&module);
    assert!(matches!(&refused, Err(Error::Unimplemented(_))), "{refused:?}");
    assert_refused(
        "partitions",
        refused.map(|()| Literal::token()),
        "%r of e: custom call \"SPMDFullToShardShape\" among several devices cannot be run (1 replicas and 2 partitions)",
    );
}

#[test]
fn placements_return_their_operands_among_several_devices() {
    for target in ["MoveToHost", "MoveToDevice", "annotate_device_placement", "LayoutConstraint"] {
        let text = format!(
            "HloModule m, replica_count=2\nENTRY e {{ x = f32[4] parameter(0)\n \
             ROOT r = f32[4] custom-call(x), custom_call_target=\"{target}\" }}"
        );
        let module = VerifiedModule::new(parse_module(&text).unwrap()).unwrap();
        CustomCallRegistry::new().check(&module).unwrap();
    }
}

#[test]
fn a_dead_call_needs_no_handler() {
    let text = include_str!("../programs/a_dead_call_needs_no_handler.hlo");
    let module = VerifiedModule::new(parse_module(text).unwrap()).unwrap();
    CustomCallRegistry::new().check(&module).unwrap();
    let result = Evaluator::new(&module).call(module.entry_id(), vec![scalar(F32, 1.0)]).unwrap();
    assert_eq!(numbers(&result), [-1.0]);
    let effect = text.replace("target=\"unknown\"\n}", "target=\"unknown\", custom_call_has_side_effect=true\n}");
    let module = VerifiedModule::new(parse_module(&effect).unwrap()).unwrap();
    let refused = CustomCallRegistry::new().check(&module).map(|()| Literal::token());
    assert_refused("effect", refused, "%b of f: no handler");
}
