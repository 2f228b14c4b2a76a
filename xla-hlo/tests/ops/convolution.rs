//! Tests of convolutions: text, shapes, and comparison with known values and with sums over a padded input.

use ElementType::*;
use xla_hlo::ops::{Convolution, ConvolutionDims, Precision, Sparsity, SparsityConfig, Window, WindowDim};
use xla_hlo::text::{PrintOptions, parse_module, print_module};
use xla_hlo::verify::VerifiedModule;
use xla_hlo::{ArrayShape, ElementType, IndexIter, Literal, Result, linear_index};

use crate::testing::{array, assert_refused, numbers, run};

fn dim(size: usize) -> WindowDim {
    WindowDim { size, ..WindowDim::UNIT }
}

/// Returns labels in the order of `bf_io->bf` with the spatial dimensions in between: `b01f_01io->b01f`.
fn channels_last(spatial: usize) -> ConvolutionDims {
    let places: Vec<usize> = (1..=spatial).collect();
    ConvolutionDims {
        input_batch: 0,
        input_feature: spatial + 1,
        input_spatial: places.clone(),
        kernel_input_feature: spatial,
        kernel_output_feature: spatial + 1,
        kernel_spatial: (0..spatial).collect(),
        output_batch: 0,
        output_feature: spatial + 1,
        output_spatial: places,
    }
}

fn over(window: &[WindowDim]) -> Convolution {
    Convolution::new(Window { dims: window.to_vec() }, channels_last(window.len()))
}

/// Writes a module with one convolution of two parameters.
fn module(line: &str, input: &str, kernel: &str) -> String {
    format!(
        "HloModule m\n\nENTRY main {{\n  x = {input} parameter(0)\n  w = {kernel} parameter(1)\n  ROOT c = {line}\n}}\n"
    )
}

fn printed(line: &str, input: &str, kernel: &str) -> Result<String> {
    let module = VerifiedModule::new(parse_module(&module(line, input, kernel))?)?;
    let text = print_module(&module, &PrintOptions { layouts: false, ..PrintOptions::short_parsable() });
    let root = text.lines().find(|l| l.contains("ROOT")).unwrap_or_default();
    Ok(root.trim().trim_start_matches("ROOT c = ").to_string())
}

#[test]
fn text_prints_back_as_it_was_read() {
    let window = "window={size=3x2 stride=2x1 pad=1_1x-1_2 lhs_dilate=2x1 rhs_dilate=1x2 rhs_reversal=0x1}";
    for line in [
        "f32[1,3,3,8] convolution(x, w), window={size=3x3}, dim_labels=b01f_01io->b01f",
        "f32[1,3,3,8] convolution(x, w), window={size=3x3}, dim_labels=b10f_10io->b10f",
        "f32[3,8,3,1] convolution(x, w), window={size=3x3}, dim_labels=b01f_01io->1f0b",
        "bf16[1,3,3,8] convolution(x, w), window={size=3x3}, dim_labels=b01f_01io->b01f, convolution_kind=dgrad, \
            operand_precision={high,default}, algorithm=dot_bf16_bf16_f32",
        "f32[1,3,3,8] convolution(x, w), window={size=3x3}, dim_labels=b01f_01io->b01f, convolution_kind=wgrad, \
            sparsity_config={lhs={sparsity=2x4 dimension=1 stride=1} rhs={sparsity=1x4 dimension=0 stride=2}}",
    ] {
        assert_eq!(printed(line, "f32[1,5,5,4]", "f32[3,3,4,8]").unwrap(), line);
    }
    let grouped =
        format!("f32[1,5,4,6] convolution(x, w), {window}, dim_labels=b01f_01io->b01f, feature_group_count=3");
    assert_eq!(printed(&grouped, "f32[1,5,5,6]", "f32[3,2,2,6]").unwrap(), grouped);
    let batches = "s32[2,3,3,8] convolution(x, w), window={size=3x3}, dim_labels=fb01_io01->b01f, batch_group_count=2";
    assert_eq!(printed(batches, "s8[4,4,5,5]", "s8[4,8,3,3]").unwrap(), batches);
    let matrices = "f32[2,4] convolution(x, w), dim_labels=bf_io->bf";
    assert_eq!(printed(matrices, "f32[2,3]", "f32[3,4]").unwrap(), matrices);
}

#[test]
fn defaults_are_not_printed() {
    let line = "f32[1,3,3,8] convolution(x, w), window={size=3x3 stride=1x1 pad=0_0x0_0 rhs_reversal=0x0}, \
        dim_labels=b01f_01io->b01f, feature_group_count=1, batch_group_count=1, operand_precision={default,default}, \
        convolution_kind=unset, sparsity_config={}";
    let plain = "f32[1,3,3,8] convolution(x, w), window={size=3x3}, dim_labels=b01f_01io->b01f";
    assert_eq!(printed(line, "f32[1,5,5,4]", "f32[3,3,4,8]").unwrap(), plain);
    let line = "f32[2,4] convolution(x, w), window={}, dim_labels=bf_io->bf";
    assert_eq!(printed(line, "f32[2,3]", "f32[3,4]").unwrap(), "f32[2,4] convolution(x, w), dim_labels=bf_io->bf");
}

#[test]
fn labels_that_say_nothing_are_refused() {
    for (labels, message) in [
        ("bb01f_01io->b01f", "have `b` twice"),
        ("b01_01io->b01f", "lack `f`"),
        ("b12f_12io->b12f", "lack `0`"),
        ("b0f_01io->b01f", "they have 1, 2 and 2"),
        ("?01f_01io->b01f", "which only custom calls may do"),
        ("b01f_01ii->b01f", "have `i` twice"),
        ("bf012345678910_io012345678910->bf012345678910", "`0` twice"),
    ] {
        let line = format!("f32[1,3,3,8] convolution(x, w), window={{size=3x3}}, dim_labels={labels}");
        let error = printed(&line, "f32[1,5,5,4]", "f32[3,3,4,8]").unwrap_err();
        assert!(error.to_string().contains(message), "{labels}: {error}");
    }
}

#[test]
fn shapes_that_do_not_fit_are_refused() {
    let ones = |dims: &[usize]| array(F32, dims, &vec![1.0; dims.iter().product()]);
    let (input, kernel) = (ones(&[3, 5, 4]), ones(&[3, 4, 6]));
    let plain = || over(&[dim(3)]);
    let feature_groups = |n| Convolution { feature_group_count: n, ..plain() };
    let batch_groups = |n| Convolution { batch_group_count: n, ..plain() };
    let labels = |f: fn(&mut ConvolutionDims)| {
        let mut op = plain();
        f(&mut op.dims);
        op
    };
    for (op, message) in [
        (feature_groups(0), "feature_group_count must be at least 1"),
        (batch_groups(0), "batch_group_count must be at least 1"),
        (feature_groups(2), "4 channels in 2 groups, but the kernel takes 4 channels"),
        (feature_groups(3), "4 channels in 3 groups"),
        (batch_groups(2), "3 images cannot be divided by batch_group_count=2"),
        (Convolution { feature_group_count: 3, ..batch_groups(3) }, "cannot both be more than 1"),
        (over(&[dim(2)]), "the window has size 2 along spatial dimension 0, but the kernel f32[3,4,6]{2,1,0} has 3"),
        (over(&[dim(3), dim(3)]), "dim_labels name 4 dimensions, but the input is f32[3,5,4]{2,1,0}"),
        (Convolution { window: Window::default(), ..plain() }, "the window has 0 dimensions"),
        (over(&[WindowDim { stride: 0, ..dim(3) }]), "stride 0"),
        (over(&[WindowDim { pad_low: i64::MAX, pad_high: i64::MAX, ..dim(3) }]), "too large"),
        (labels(|d| d.output_batch = 1), "dimension 1 twice"),
        (labels(|d| d.output_feature = 7), "names dimension 7"),
        (labels(|d| d.kernel_spatial.clear()), "these numbers must be equal"),
        (Convolution { precision: vec![Precision::High], ..plain() }, "operand_precision must have one entry for each"),
    ] {
        let what = format!("{op:?}");
        assert_refused(&what, run(|_| op, None, &[input.clone(), kernel.clone()]), message);
    }
    let refused = run(|_| batch_groups(4), None, &[ones(&[4, 5, 4]), kernel.clone()]);
    assert_refused("output channels", refused, "6 output channels cannot be divided by batch_group_count=4");
    let whole = array(S32, &[3, 4, 6], &[1.0; 72]);
    assert_refused("mixed types", run(|_| plain(), None, &[input.clone(), whole]), "neither element type holds");
    let sparse = SparsityConfig { lhs: Some(Sparsity { kept: 2, block: 4, dimension: 1, stride: 1 }), rhs: None };
    assert_refused(
        "sparsity",
        run(|_| Convolution { sparsity: sparse, ..plain() }, None, &[input, kernel]),
        "sparsity_config",
    );
}

#[test]
fn known_values() {
    let x = array(F32, &[1, 5, 1], &[1.0, 2.0, 3.0, 4.0, 5.0]);
    let w = array(F32, &[3, 1, 1], &[1.0, 10.0, 100.0]);
    for (window, expected) in [
        (dim(3), vec![321.0, 432.0, 543.0]),
        (WindowDim { pad_low: 1, pad_high: 1, ..dim(3) }, vec![210.0, 321.0, 432.0, 543.0, 54.0]),
        (WindowDim { pad_low: -1, pad_high: 2, ..dim(3) }, vec![432.0, 543.0, 54.0, 5.0]),
        (WindowDim { stride: 2, ..dim(3) }, vec![321.0, 543.0]),
        (WindowDim { window_dilation: 2, ..dim(3) }, vec![531.0]),
        (WindowDim { base_dilation: 2, stride: 3, ..dim(3) }, vec![201.0, 30.0, 504.0]),
        (WindowDim { reversal: true, ..dim(3) }, vec![123.0, 234.0, 345.0]),
        (WindowDim { pad_high: -3, ..dim(3) }, vec![]),
    ] {
        let sums = run(|_| over(&[window]), None, &[x.clone(), w.clone()]).unwrap();
        assert_eq!(numbers(&sums), expected, "{window:?}");
    }
}

#[test]
fn without_spatial_dimensions_it_is_a_matrix_product() {
    let x = array(F64, &[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let w = array(F64, &[3, 1], &[1.0, 10.0, 100.0]);
    assert_eq!(numbers(&run(|_| over(&[]), None, &[x, w]).unwrap()), [321.0, 654.0]);
}

#[test]
fn types_of_sums() {
    let product = |operands: [ElementType; 2], to: ElementType, x: &[f64], w: &[f64]| {
        let (x, w) = (array(operands[0], &[1, x.len(), 1], x), array(operands[1], &[w.len(), 1, 1], w));
        let shape = ArrayShape::new(to, [1, x.array_shape().dims()[1] - w.array_shape().dims()[0] + 1, 1]);
        let op = over(&[dim(w.array_shape().dims()[0])]);
        numbers(&run(|_| op, Some(shape.into()), &[x, w]).unwrap())
    };
    // Expected values are results of jaxlib 0.10.2.
    assert_eq!(product([S8, S8], S32, &[1., 2., 3., 100., 100.], &[1., 1., -2.]), [-3., -195., -97.]);
    assert_eq!(product([S8, S8], S8, &[1., 2., 3., 100., 100.], &[1., 1., -2.]), [-3., 61., -97.]);
    assert_eq!(product([S4, S4], S4, &[1., 2., 3., 5., -1.], &[1., 1., -2.]), [-3., -5., -6.]);
    assert_eq!(product([S32, S32], F32, &[100_000.], &[100_000.]), [1e10]);
    assert_eq!(product([S32, S32], S8, &[100.], &[2.]), [-56.]);
    assert_eq!(product([U32, U32], S32, &[2_147_483_648.], &[1.]), [-2_147_483_648.]);
    assert_eq!(product([F32, F32], S32, &[0.5, 0.5], &[1., 1.]), [1.]);
    assert_eq!(product([F32, F32], S8, &[200.5], &[1.]), [127.]);
    assert_eq!(product([Pred, Pred], Pred, &[1., 0., 1., 0., 0.], &[1., 1.]), [1., 1., 1., 0.]);
    assert_eq!(product([Pred, Pred], S32, &[1., 0., 1., 1., 1.], &[1., 1., 1.]), [2., 2., 3.]);
    assert_eq!(product([Pred, S8], Pred, &[1., 1.], &[2., -2.]), [0.]);
    assert_eq!(product([F16, F16], F16, &[60_000., 60_000., -60_000.], &[1., 1., 1.]), [60_000.]);
    assert_eq!(product([F16, F16], F16, &[60_000.], &[60_000.]), [f64::INFINITY]);
    assert_eq!(product([BF16, BF16], F32, &[1.007_812_5], &[1.007_812_5]), [1.015_686_035_156_25]);
    assert_eq!(product([BF16, BF16], BF16, &[256., 1., 1., 1.], &[1.; 4]), [260.]);
    assert_eq!(product([F8E4M3FN, F8E4M3FN], F8E4M3FN, &[16., 1., 1., 1.], &[1.; 4]), [20.]);
    assert_eq!(product([S8, F16], F32, &[1., 2.], &[1.5, 1.]), [3.5]);
    assert_eq!(product([F32, C64], C64, &[1., 2.], &[3., 4.]), [11.]);
    assert_eq!(product([C64, C64], F32, &[1., 2.], &[3., 4.]), [11.]);
}

/// Returns the input's number at a position of the dilated and padded spatial dimensions, or 0 for holes and padding.
fn at_place(x: &Literal, op: &Convolution, image: usize, channel: usize, places: &[i64]) -> f64 {
    let mut index = vec![0; places.len() + 2];
    (index[op.dims.input_batch], index[op.dims.input_feature]) = (image, channel);
    for (d, window) in op.window.dims.iter().enumerate() {
        let (place, step) = (places[d] - window.pad_low, window.base_dilation as i64);
        let size = x.array_shape().dims()[op.dims.input_spatial[d]] as i64;
        if place < 0 || place % step != 0 || place / step >= size {
            return 0.0;
        }
        index[op.dims.input_spatial[d]] = (place / step) as usize;
    }
    numbers(x)[linear_index(x.array_shape().dims(), &index)]
}

/// Computes one result by its definition.
fn written_out(op: &Convolution, x: &Literal, w: &Literal, result: &[usize]) -> f64 {
    let dims = &op.dims;
    let (sizes, base) = (w.array_shape().dims(), x.array_shape().dims());
    let output = result[dims.output_feature];
    let group = output / (sizes[dims.kernel_output_feature] / op.groups());
    let image_group =
        if op.batch_group_count > 1 { group * (base[dims.input_batch] / op.batch_group_count) } else { 0 };
    let channel_group = if op.feature_group_count > 1 { group * sizes[dims.kernel_input_feature] } else { 0 };
    let mut taps = IndexIter::new(sizes);
    let mut sum = 0.0;
    let mut number = 0;
    while let Some(tap) = taps.next_index() {
        if tap[dims.kernel_output_feature] == output {
            let place = |d: usize| {
                let window = &op.window.dims[d];
                let k = tap[dims.kernel_spatial[d]];
                let k = if window.reversal { window.size - 1 - k } else { k };
                (result[dims.output_spatial[d]] * window.stride + k * window.window_dilation) as i64
            };
            let places: Vec<i64> = (0..op.window.dims.len()).map(place).collect();
            let channel = channel_group + tap[dims.kernel_input_feature];
            let image = image_group + result[dims.output_batch];
            sum += at_place(x, op, image, channel, &places) * numbers(w)[number];
        }
        number += 1;
    }
    sum
}

#[test]
fn every_arrangement_is_the_sum_written_out() {
    let counted = |dims: &[usize], step: usize| {
        let values: Vec<f64> = (0..dims.iter().product()).map(|i: usize| ((i * step) % 7) as f64 - 3.0).collect();
        array(F32, dims, &values)
    };
    let strided = WindowDim { stride: 2, pad_low: 1, pad_high: 2, ..dim(2) };
    let holes = WindowDim { window_dilation: 2, base_dilation: 3, pad_low: -1, reversal: true, ..dim(2) };
    let labels = |text: &str| {
        let line = format!("f32[1,1,1,1] convolution(x, w), window={{size=1x1}}, dim_labels={text}");
        let module = parse_module(&module(&line, "f32[1,1,1,1]", "f32[1,1,1,1]")).unwrap();
        let root = module.entry().root();
        match module.entry()[root].op() {
            xla_hlo::ops::Op::Convolution(op) => op.dims.clone(),
            other => panic!("{other:?}"),
        }
    };
    for (text, feature_groups, batch_groups) in [
        ("b01f_01io->b01f", 1, 1),
        ("bf01_oi01->bf01", 2, 1),
        ("f1b0_i0o1->10bf", 1, 2),
        ("0b1f_oi10->fb10", 4, 1),
        ("fb01_io01->fb01", 1, 4),
    ] {
        let dims = labels(text);
        let mut input = [0; 4];
        (input[dims.input_batch], input[dims.input_feature]) = (2 * batch_groups, 2 * feature_groups);
        (input[dims.input_spatial[0]], input[dims.input_spatial[1]]) = (5, 4);
        let mut kernel = [0; 4];
        (kernel[dims.kernel_input_feature], kernel[dims.kernel_output_feature]) = (2, 4);
        (kernel[dims.kernel_spatial[0]], kernel[dims.kernel_spatial[1]]) = (2, 2);
        let (x, w) = (counted(&input, 5), counted(&kernel, 3));
        let window = Window { dims: vec![strided, holes] };
        let (feature_group_count, batch_group_count) = (feature_groups, batch_groups);
        let op = Convolution { feature_group_count, batch_group_count, ..Convolution::new(window, dims) };
        let sums = run(|_| op.clone(), None, &[x.clone(), w.clone()]).unwrap();
        let mut results = IndexIter::new(sums.array_shape().dims());
        let mut i = 0;
        while let Some(result) = results.next_index() {
            assert_eq!(numbers(&sums)[i], written_out(&op, &x, &w, result), "{text} at {result:?}");
            i += 1;
        }
        assert!(i > 0);
    }
}

#[test]
fn empty_arrays() {
    let none = |dims: &[usize]| array(F32, dims, &[]);
    let w = array(F32, &[1, 2, 3], &[1.0; 6]);
    for (x, w, dims) in [
        (none(&[0, 4, 2]), w.clone(), [0, 4, 3]),
        (none(&[2, 0, 2]), w, [2, 0, 3]),
        (none(&[2, 4, 0]), none(&[1, 0, 3]), [2, 4, 3]),
        (array(F32, &[1, 1, 2], &[1.0; 2]), none(&[1, 2, 0]), [1, 1, 0]),
    ] {
        let sums = run(|_| over(&[dim(1)]), None, &[x, w]).unwrap();
        assert_eq!(sums.array_shape().dims(), dims);
        assert!(numbers(&sums).iter().all(|&sum| sum == 0.0));
    }
}
