//! Tests of StableHLO programs with dynamic dimensions: their arguments get shapes from an option, or from the inputs.

use crate::support::{Folder, array, floats};

const DYNAMIC: &str = "\
module @dynamic {
  func.func public @main(%arg0: tensor<?x4xf32>, %arg1: tensor<4xf32>) -> (tensor<?x4xf32>, tensor<?xi32>) {
    %n = stablehlo.get_dimension_size %arg0, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
    %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %four = stablehlo.constant dense<4> : tensor<1xi32>
    %dims = stablehlo.concatenate %n1, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %rows = stablehlo.dynamic_broadcast_in_dim %arg1, %dims, dims = [1] : (tensor<4xf32>, tensor<2xi32>) -> tensor<?x4xf32>
    %sum = stablehlo.add %arg0, %rows : tensor<?x4xf32>
    %iota = stablehlo.dynamic_iota %n1, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
    return %sum, %iota : tensor<?x4xf32>, tensor<?xi32>
  }
}
";

/// Returns a folder with the program in it.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("dynamic.mlir", DYNAMIC);
    folder
}

#[test]
fn the_option_gives_arguments_shapes() {
    let folder = folder();
    for rows in [1, 3] {
        let shapes = format!("--shapes arg0=f32[{rows},4]");
        let run = folder.xla(&format!("run dynamic.mlir --platform interpreter --inputs-seed 0 {shapes}"));
        assert_eq!((run.code, run.err.as_str()), (0, ""));
        assert!(
            run.out.contains(&format!("out0: f32[{rows},4]")) && run.out.contains(&format!("s32[{rows}]")),
            "{}",
            run.out
        );
        let bench =
            folder.xla(&format!("bench dynamic.mlir --platform interpreter --json --reps 1 --compiles 1 {shapes}"));
        assert_eq!(bench.code, 0, "{}", bench.err);
        let opt = folder.xla(&format!("opt dynamic.mlir --platform interpreter --passes dead-code {shapes}"));
        assert!(opt.code == 0 && opt.out.contains(&format!("f32[{rows},4]")), "{opt:?}");
    }
    let converted = folder.xla("convert dynamic.mlir --to hlo --shapes arg0=f32[3,4],arg1=f32[4]");
    assert_eq!((converted.code, converted.err.as_str()), (0, ""));
    insta::assert_snapshot!(converted.out);
}

#[test]
fn inputs_say_the_shapes_of_arguments() {
    let folder = folder();
    let x: Vec<f32> = (0..8).map(|i| i as f32).collect();
    folder.archive("in.npz", &[("arg0", floats(&[2, 4], &x)), ("arg1", floats(&[4], &[0.5; 4]))]);
    let sums: Vec<f32> = x.iter().map(|x| x + 0.5).collect();
    let iota: Vec<u8> = [0i32, 1].iter().flat_map(|i| i.to_le_bytes()).collect();
    folder.archive("expected.npz", &[("out0", floats(&[2, 4], &sums)), ("out1", array("<i4", &[2], &iota))]);
    let run = folder.xla("run dynamic.mlir --platform interpreter --inputs in.npz --expect expected.npz");
    assert_eq!((run.code, run.err.as_str()), (0, ""));
    folder.archive("flat.npz", &[("arg0", floats(&[8], &x)), ("arg1", floats(&[4], &[0.5; 4]))]);
    let error = folder.fails(2, "run dynamic.mlir --platform interpreter --inputs flat.npz");
    assert_eq!(error, "dynamic.mlir: argument 0 is f32[?,4], and cannot be f32[8]: it has 2 dimensions");
}

#[test]
fn a_dimension_without_a_size_is_named_with_the_option() {
    let folder = folder();
    let error = folder.fails(2, "run dynamic.mlir --platform interpreter --inputs-seed 0");
    let wanted = "dynamic.mlir: argument 0 is f32[?,4]: dimension 0 has no size; give the argument a shape, such as \
                  --shapes arg0=f32[8,4]";
    assert_eq!(error, wanted);
    for words in
        ["run dynamic.mlir --inputs-seed 0 --shapes x=3", "convert dynamic.mlir --to hlo --shapes arg0=f32[?,4]"]
    {
        assert!(folder.fails(2, words).contains("such as arg0=f32[8,4]"), "{words}");
    }
    let hlo = folder.fails(2, "convert module.hlo --to hlo --shapes arg0=f32[2]");
    assert!(hlo.contains("only those of StableHLO programs can be given shapes"), "{hlo}");
    #[cfg(feature = "cpu")]
    {
        let twice = folder.fails(2, "compile dynamic.mlir -o out --shapes arg0=f32[2,4] --shapes arg0=f32[3,4]");
        assert!(twice.contains("--shapes is given 2 times for 1 modules"), "{twice}");
        assert_eq!(folder.xla("compile dynamic.mlir -o out --shapes arg0=f32[2,4]").code, 0);
    }
}

/// Form that TensorFlow writes for `tf.image.rot90`; the size of the result is known only at run time.
const BOUNDED: &str = "\
func.func @main(%x: tensor<2x3xf32>, %n: tensor<i32>) -> tensor<2x?xf32, #stablehlo.bounds<?, 3>> {
  %y = \"stablehlo.set_dimension_size\"(%x, %n) <{dimension = 1 : i64}> : (tensor<2x3xf32>, tensor<i32>) -> tensor<2x?xf32, #stablehlo.bounds<?, 3>>
  return %y : tensor<2x?xf32, #stablehlo.bounds<?, 3>>
}
";

#[test]
fn a_result_with_a_bound_comes_at_its_size() {
    let folder = folder();
    folder.write("bounded.mlir", BOUNDED);
    let x: Vec<f32> = (0..6).map(|i| i as f32).collect();
    let size = |n: i32| array("<i4", &[], &n.to_le_bytes());
    folder.archive("in.npz", &[("arg0", floats(&[2, 3], &x)), ("arg1", size(2))]);
    folder.archive("expected.npz", &[("out0", floats(&[2, 2], &[0.0, 1.0, 3.0, 4.0]))]);
    folder.archive("bound.npz", &[("out0", floats(&[2, 3], &[0.0, 1.0, 0.0, 3.0, 4.0, 0.0]))]);
    let platforms: &[&str] = if cfg!(feature = "cpu") { &["interpreter", "cpu"] } else { &["interpreter"] };
    for platform in platforms {
        let words = format!("run bounded.mlir --platform {platform} --inputs in.npz");
        let run = folder.xla(&words);
        assert_eq!((run.code, run.err.as_str()), (0, ""));
        assert_eq!(run.out, "out0: f32[2,2] { { 0, 1 }, { 3, 4 } }\n");
        let run = folder.xla(&format!("{words} --expect expected.npz"));
        assert_eq!((run.code, run.out.as_str()), (0, "1 outputs agree with expected.npz\n"));
        folder.fails(2, &format!("{words} --expect bound.npz"));
    }
}
