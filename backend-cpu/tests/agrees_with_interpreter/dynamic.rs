//! Tests of arrays with dynamic sizes, at every relevant size: none, one, all but one, all.

use serde_json::Value;
use xla_hlo::Literal;
use xla_service::AotCompilationOptions;

use crate::ahead_of_time::{compile, driver, evaluated, file, link, run};
use crate::native;

/// Computations that the programs below call.
const CALLED: &str = "
    add { a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = f32[] add(a, b) }
    ge { a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = pred[] compare(a, b), direction=GE }
    gt { a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT c = pred[] compare(a, b), direction=GT }
    by_second { a = s8[] parameter(0)
      b = s8[] parameter(1)
      i = f32[] parameter(2)
      j = f32[] parameter(3)
      ROOT c = pred[] compare(i, j), direction=LT }
    more { s = (s32[], f32[3,<=8]) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      n = s32[] constant(3)
      ROOT c = pred[] compare(i, n), direction=LT }
    step { s = (s32[], f32[3,<=8]) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      one = s32[] constant(1)
      j = s32[] add(i, one)
      v = f32[3,<=8] get-tuple-element(s), index=1
      n = s32[] get-dimension-size(v), dimensions={1}
      m = s32[] subtract(n, i)
      w = f32[3,<=8] set-dimension-size(v, m), dimensions={1}
      d = f32[3,<=8] add(w, w)
      ROOT r = (s32[], f32[3,<=8]) tuple(j, d) }
    turned { v = f32[3,<=8] parameter(0)
      ROOT r = f32[3,<=8] reverse(v), dimensions={1} }
    two { v = f32[3,<=8] parameter(0)
      t = s32[] constant(2)
      n = s32[] get-dimension-size(v), dimensions={1}
      m = s32[] minimum(n, t)
      ROOT r = f32[3,<=8] set-dimension-size(v, m), dimensions={1} }";

/// Runs a program on `x` (`f32[3,8]`), on `y`, which is `x` with the first `k` columns (`f32[3,<=8]`), and on `i`,
/// which is 4.
fn at_every_size(instructions: &str) {
    for size in [0, 1, 7, 8] {
        let less = size - 4;
        native(&format!(
            "HloModule m
            {CALLED}
            ENTRY main {{
              x = f32[3,8] parameter(0)
              i = s32[] parameter(1)
              less = s32[] constant({less})
              k = s32[] add(i, less)
              zero = f32[] constant(0)
              y = f32[3,<=8] set-dimension-size(x, k), dimensions={{1}}
              {instructions}
            }}"
        ));
    }
}

#[test]
fn results_are_at_their_sizes() {
    at_every_size("ROOT r = f32[3,<=8] negate(y)");
    at_every_size(
        "n = s32[] get-dimension-size(y), dimensions={1}
         t = f32[<=8,3] transpose(y), dimensions={1,0}
         inner = (f32[<=8,3], s32[]) tuple(t, n)
         ROOT r = (f32[3,<=8], (f32[<=8,3], s32[])) tuple(y, inner)",
    );
}

/// The sizes have a separate pointer.
#[test]
fn results_ahead_of_time_are_at_their_bounds_with_their_sizes() {
    let text = include_str!("programs/results_ahead_of_time_are_at_their_bounds_with_their_sizes.hlo");
    let files = compile(text, &AotCompilationOptions::default()).unwrap();
    let description: Value = serde_json::from_slice(file(&files, ".json")).unwrap();
    let pointers = description["programs"][0]["pointers"].as_array().unwrap();
    let sizes = |name: &str| pointers.iter().find(|pointer| pointer["name"] == name).unwrap()["sizes"].to_string();
    assert_eq!(sizes("result_0"), r#"[{"dimension":1,"element":0}]"#);
    assert_eq!(sizes("result_1"), "null");
    assert_eq!(sizes("result_2"), r#"[{"dimension":0,"element":1},{"dimension":1,"element":2}]"#);
    let header = String::from_utf8_lossy(file(&files, ".h")).into_owned();
    for line in [
        "float *result_0; /* result 0, f32[3,<=8] of size result_sizes[0]: the elements without gaps, then zeros up to the \
         bound, f32[3,8]{1,0} */",
        "int32_t *result_sizes; /* result 3, the sizes of dimension 1 of result 0, of dimension 0 of result 2, of \
         dimension 1 of result 2, s32[3]{0} */",
    ] {
        assert!(header.contains(line), "{header}");
    }
    let folder = tempfile::tempdir().unwrap();
    let program = link(folder.path(), &files, "cc", &driver(&description));
    let (bytes, expected) = evaluated(text);
    assert_eq!(expected[0].array_shape().dims(), [3, 4]);
    assert_eq!(expected[2].array_shape().dims(), [2, 4]);
    let (status, output) = run(&program, &bytes);
    assert_eq!(status, Some(0));
    let at = |literal: &Literal, i: usize, j: usize| {
        let columns = literal.array_shape().dims()[1];
        literal.element_bytes(i * columns + j).to_vec()
    };
    let rows = (0..3).flat_map(|i| (0..4).map(move |j| (i, j)));
    let columns = (0..4).flat_map(|j| (0..2).map(move |i| (i, j)));
    let mut wanted: Vec<u8> = rows.flat_map(|(i, j)| at(&expected[0], i, j)).collect();
    wanted.resize(96, 0);
    wanted.extend(expected[1].bytes());
    wanted.extend(columns.flat_map(|(i, j)| at(&expected[2], i, j)));
    wanted.resize(96 + 4 + 96, 0);
    wanted.extend([4_i32, 2, 4].iter().flat_map(|size| size.to_le_bytes()));
    assert_eq!(output, wanted);
}

#[test]
fn reduces_and_contractions() {
    at_every_size("ROOT r = f32[3] reduce(y, zero), dimensions={1}, to_apply=add");
    at_every_size("ROOT r = f32[3,3] dot(y, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}");
    at_every_size("ROOT r = f32[<=8,<=8] dot(y, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}");
}

#[test]
fn movement() {
    at_every_size("ROOT r = f32[3,<=16] concatenate(y, y), dimensions={1}");
    at_every_size("ROOT r = f32[3,<=18] pad(y, zero), padding=0_0x1_2_1");
    at_every_size("ROOT r = f32[<=24] reshape(y)");
    at_every_size("three = s32[] constant(3)\n ROOT r = f32[<=8,3] dynamic-reshape(y, k, three)");
    at_every_size("ROOT r = f32[3,<=8] reverse(y), dimensions={0,1}");
    at_every_size("ROOT r = f32[2,<=3] slice(y), slice={[0:2], [1:7:2]}");
}

#[test]
fn order() {
    at_every_size("ROOT r = f32[3,<=8] sort(y), dimensions={1}, to_apply=ge");
    at_every_size("ROOT r = f32[3,<=8] sort(y), dimensions={0}, to_apply=gt");
    at_every_size(
        "s = s8[3,<=8] convert(y)
         ROOT r = (s8[3,<=8], f32[3,<=8]) sort(s, y), dimensions={1}, to_apply=by_second",
    );
    at_every_size("ROOT r = (f32[3,<=4], s32[3,<=4]) topk(y), k=4, largest=true");
    at_every_size("b = bf16[3,<=8] convert(y)\n ROOT r = (bf16[3,<=4], s32[3,<=4]) topk(b), k=4, largest=false");
}

#[test]
fn windows() {
    at_every_size("ROOT r = f32[3,<=7] reduce-window(y, zero), window={size=1x2}, to_apply=add");
    at_every_size(
        "ten = f32[] constant(10)
         ROOT r = f32[3,<=8] reduce-window(y, ten), window={size=1x3 stride=1x2 pad=0_0x1_2 lhs_dilate=1x2}, to_apply=add",
    );
    at_every_size("ROOT r = f32[3,<=5] reduce-window(y, zero), window={size=1x3 pad=0_0x1_-2}, to_apply=add");
    at_every_size(
        "s = f32[3,<=8] multiply(y, y)
         ROOT r = f32[3,<=8] select-and-scatter(y, s, zero), window={size=1x3 pad=0_0x1_1}, select=ge, scatter=add",
    );
}

#[test]
fn convolutions() {
    at_every_size(
        "image = f32[3,<=8,1] reshape(y)
         w = f32[2,1,2] constant({{{1,2}},{{3,4}}})
         ROOT r = f32[3,<=8,2] convolution(image, w), window={size=2 pad=0_1}, dim_labels=b0f_0io->b0f",
    );
    at_every_size(
        "image = f32[1,3,<=8] reshape(y)
         kernel = f32[2,3,<=8] broadcast(y), dimensions={1,2}
         t = f32[2,<=8,3] transpose(kernel), dimensions={0,2,1}
         ROOT r = f32[1,2,3] convolution(image, t), window={size=2}, dim_labels=b0f_0io->b0f",
    );
}

#[test]
fn boxes() {
    for start in ["i", "k"] {
        at_every_size(&format!("ROOT r = f32[2,<=3] dynamic-slice(y, i, {start}), dynamic_slice_sizes={{2,3}}"));
        at_every_size(&format!(
            "wide = f32[3,16] broadcast(zero), dimensions={{}}
             ROOT r = f32[3,16] dynamic-update-slice(wide, y, i, {start})"
        ));
    }
    at_every_size(
        "one = f32[3,0] slice(x), slice={[0:3], [0:0]}\n ROOT r = f32[3,<=8] dynamic-update-slice(y, one, i, k)",
    );
}

#[test]
fn gathers_and_scatters() {
    at_every_size(
        "p = s32[5] iota(), iota_dimension=0
         ROOT r = f32[5,<=8] gather(y, p), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, \
         index_vector_dim=1, slice_sizes={1,8}",
    );
    at_every_size(
        "p = s32[8] iota(), iota_dimension=0
         q = s32[<=8] set-dimension-size(p, k), dimensions={0}
         ROOT r = f32[3,<=8] gather(x, q), offset_dims={0}, collapsed_slice_dims={1}, start_index_map={1}, \
         index_vector_dim=1, slice_sizes={3,1}",
    );
    at_every_size(
        "p = s32[8] iota(), iota_dimension=0
         q = s32[<=8] set-dimension-size(p, k), dimensions={0}
         ROOT r = f32[3,8] scatter(x, q, y), update_window_dims={0}, inserted_window_dims={1}, \
         scatter_dims_to_operand_dims={1}, index_vector_dim=1, to_apply=add",
    );
    at_every_size(
        "p = u8[5] iota(), iota_dimension=0
         u = f32[3,5] slice(x), slice={[0:3], [2:7]}
         ROOT r = f32[3,<=8] scatter(y, p, u), update_window_dims={0}, inserted_window_dims={1}, \
         scatter_dims_to_operand_dims={1}, index_vector_dim=1, to_apply=add",
    );
}

#[test]
fn control_flow() {
    at_every_size(
        "one = s32[] constant(0)
         s = (s32[], f32[3,<=8]) tuple(one, y)
         ROOT w = (s32[], f32[3,<=8]) while(s), condition=more, body=step",
    );
    at_every_size("ROOT r = f32[3,<=8] conditional(k, y, y, x), branch_computations={turned, two, turned}");
    at_every_size("c = f32[3,<=8] call(y), to_apply=turned\n ROOT r = f32[3,<=8] call(c), to_apply=two");
}
