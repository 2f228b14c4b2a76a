//! Tests of results of dynamic size: their shapes, copies, uses as arguments, errors.

use super::launches::QUEUED;
use super::*;
use crate::host::HostOrder;

/// Compiles `(x, k, l) -> (x[..k, ..l], (x[..k], k))` of `f32[2,3]`; the first result is column-major.
fn cut(client: &Client) -> LoadedExecutable {
    let text = include_str!("programs/cut.hlo");
    let module = VerifiedModule::new(xla_hlo::text::parse_module(text).unwrap()).unwrap();
    client.compile(&module, &CompileOptions::default()).unwrap()
}

/// Returns `f32[rows,columns]` whose elements are their own linear indices in `f32[2,3]`.
fn places(rows: usize, columns: usize) -> Literal {
    let shape = ArrayShape::new(F32, [rows, columns]);
    Literal::from_fn(&shape, |i| Scalar::Float((i / columns * 3 + i % columns) as f64)).unwrap()
}

fn s32(value: i64) -> Literal {
    Literal::scalar(ElementType::S32, Scalar::Signed(value))
}

fn cut_at(client: &Client, sizes: [i64; 2], options: &ExecuteOptions) -> Vec<Buffer> {
    let [x, k, l] = [places(2, 3), s32(sizes[0]), s32(sizes[1])].map(|literal| client.buffer(&literal).unwrap());
    cut(client).execute_with(&[&x, &k, &l], options).unwrap()
}

#[test]
fn results_have_their_sizes() {
    let client = client();
    for (k, l, rows, columns) in [(1, 2, 1, 2), (2, 3, 2, 3), (0, 2, 0, 2), (2, 0, 2, 0), (7, -1, 2, 0), (2, 1, 2, 1)] {
        for options in [ExecuteOptions::default(), QUEUED] {
            let results = cut_at(&client, [k, l], &options);
            assert_eq!(results.len(), 3);
            assert_eq!(results[0].shape().to_string(), "f32[<=2,<=3]{0,1}");
            assert_eq!(results[0].real_shape().unwrap().to_string(), format!("f32[{rows},{columns}]{{0,1}}"));
            assert_eq!(results[0].to_literal().unwrap(), places(rows, columns));
            assert_eq!(results[1].to_literal().unwrap(), places(rows, 3));
            assert_eq!(results[2].to_literal().unwrap(), s32(k));
            assert!(results[0].is_dynamic() && results[1].is_dynamic() && !results[2].is_dynamic());
        }
        let value = cut(&client).run(vec![places(2, 3), s32(k), s32(l)]).unwrap();
        let inner = Literal::tuple(vec![places(rows, 3), s32(k)]);
        assert_eq!(value, Literal::tuple(vec![places(rows, columns), inner]));
    }
}

#[test]
fn elements_are_dense_in_the_order_of_the_layout() {
    let client = client();
    let results = cut_at(&client, [2, 2], &ExecuteOptions::default());
    let bytes: Vec<u8> = [0.0_f32, 3.0, 1.0, 4.0, 0.0, 0.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    assert_eq!(results[0].to_bytes().unwrap(), bytes);
    let mut target = [9_u8; 16];
    results[0].copy_to_host(HostOrder::RowMajor, &mut target).unwrap();
    assert_eq!(target, places(2, 2).bytes());
}

#[test]
fn copies_keep_the_sizes() {
    let client = client_of(2);
    let results = cut_at(&client, [1, 2], &ExecuteOptions::default());
    let copy = results[0].copy_to_device(&client.device(1).unwrap()).unwrap();
    results[0].delete();
    assert_eq!(copy.to_literal().unwrap(), places(1, 2));
    let read = copy.read_when_ready(|array| {
        assert_eq!(array?.real_shape()?.dims(), [1, 2]);
        Ok(())
    });
    read.wait().unwrap();
    // The sizes of a deleted array are still known.
    assert_eq!(results[0].real_shape().unwrap().dims(), [1, 2]);
}

#[test]
fn a_program_takes_a_result_that_has_the_size_of_its_parameter() {
    let client = client();
    let negate = |rows: usize| {
        let text = format!(
            "HloModule n\nENTRY main {{\n x = f32[{rows},3] parameter(0)\n ROOT y = f32[{rows},3] negate(x)\n}}"
        );
        let module = VerifiedModule::new(xla_hlo::text::parse_module(&text).unwrap()).unwrap();
        client.compile(&module, &CompileOptions::default()).unwrap()
    };
    for donate in [Donate::These(Vec::new()), Donate::These(vec![0])] {
        let rows = cut_at(&client, [1, 3], &ExecuteOptions::default()).swap_remove(1);
        let options = ExecuteOptions { donate: donate.clone(), ..ExecuteOptions::default() };
        let result = negate(1).execute_with(&[&rows], &options).unwrap();
        let negated = Literal::from_fn(&ArrayShape::new(F32, [1, 3]), |i| Scalar::Float(-(i as f64))).unwrap();
        assert_eq!(result[0].to_literal().unwrap(), negated);
        assert_eq!(rows.is_donated(), donate.takes(0, &negate(1).signature().arguments()[0]));
    }
    let rows = cut_at(&client, [1, 3], &ExecuteOptions::default()).swap_remove(1);
    let error = message(negate(2).execute_with(&[&rows], &QUEUED).unwrap()[0].to_literal());
    assert!(
        error.contains("an argument of dynamic size, f32[<=2,3]{1,0}, is f32[1,3]; the program takes f32[2,3]"),
        "{error}"
    );
    assert!(message(negate(3).execute(&[&rows])).contains("must be f32[3,3]{1,0}, it is f32[<=2,3]{1,0}"));
}

#[test]
fn a_failed_run_has_no_sizes() {
    let client = client();
    let error = Error::failed_precondition("no x");
    let x = client.first_device().errored_buffer(&ArrayShape::new(F32, [2, 3]), error).unwrap();
    let k = client.buffer(&s32(1)).unwrap();
    let results = cut(&client).execute_with(&[&x, &k, &k], &QUEUED).unwrap();
    assert!(message(results[0].real_shape()).contains("no x"));
    assert!(message(results[1].to_literal()).contains("no x"));
}
