//! Tests of convolutions of every kind.

use crate::native;

/// Minimum number of multiplications for which a convolution of real numbers uses the library.
const LIBRARY: usize = (1 << 16) + 1;

/// Checks a convolution of two parameters: as given, which is a kernel, and with a batch large enough for the library,
/// which supports only equal types.
fn convolution(result: &str, input: &str, kernel: &str, attributes: &str) {
    let labels = attributes.split("dim_labels=").nth(1).unwrap().split([',', ' ']).next().unwrap();
    let (of_input, rest) = labels.split_once('_').unwrap();
    let (of_kernel, of_result) = rest.split_once("->").unwrap();
    let features = dims(kernel)[of_kernel.find('o').unwrap()];
    let multiplications: usize = dims(result).iter().chain(&dims(kernel)).product::<usize>() / features;
    let types = [result, input, kernel].map(|shape| shape.split('[').next());
    let is_one_type = types.iter().all(|ty| *ty == types[0]);
    let large = is_one_type.then(|| LIBRARY.div_ceil(multiplications.max(1)));
    for factor in [1].into_iter().chain(large) {
        let [result, input] = [(result, of_result), (input, of_input)].map(|(s, l)| with_batch(s, l, factor));
        native(&format!(
            "HloModule m
            ENTRY main {{
              x = {input} parameter(0)
              w = {kernel} parameter(1)
              ROOT r = {result} convolution(x, w), {attributes}
            }}"
        ));
    }
}

/// Returns the sizes of a shape's dimensions.
fn dims(shape: &str) -> Vec<usize> {
    let inside = shape.split(['[', ']']).nth(1).unwrap();
    inside.split(',').map(|size| size.parse().unwrap()).collect()
}

/// Returns a shape with its batch multiplied by `factor`.
fn with_batch(shape: &str, labels: &str, factor: usize) -> String {
    let mut dims = dims(shape);
    dims[labels.find('b').unwrap()] *= factor;
    let (before, rest) = shape.split_once('[').unwrap();
    let dims = dims.iter().map(ToString::to_string).collect::<Vec<String>>().join(",");
    format!("{before}[{dims}]{}", rest.split_once(']').unwrap().1)
}

#[test]
fn convolutions_of_every_element_type() {
    let window = "window={size=3x2 stride=1x2 pad=1_1x0_1}, dim_labels=b01f_01io->b01f";
    for (from, to) in [
        ("f32", "f32"),
        ("f64", "f64"),
        ("f16", "f16"),
        ("bf16", "bf16"),
        ("bf16", "f32"),
        ("f8e4m3fn", "f8e4m3fn"),
        ("f8e5m2", "f32"),
        ("f4e2m1fn", "f4e2m1fn"),
        ("c64", "c64"),
        ("c128", "c128"),
        ("c64", "f32"),
        ("pred", "pred"),
        ("pred", "s32"),
        ("s2", "s2"),
        ("s4", "s4"),
        ("u4", "s32"),
        ("s8", "s32"),
        ("s8", "s8"),
        ("u8", "u8"),
        ("s16", "s64"),
        ("u16", "u16"),
        ("s32", "s32"),
        ("u32", "u32"),
        ("s32", "f32"),
        ("s64", "s64"),
        ("u64", "u64"),
        ("f32", "s32"),
    ] {
        convolution(&format!("{to}[2,5,3,19]"), &format!("{from}[2,5,6,5]"), &format!("{from}[3,2,5,19]"), window);
    }
}

#[test]
fn convolutions_of_every_arrangement() {
    for (result, input, kernel, attributes) in [
        ("f32[2,7,5]", "f32[2,9,3]", "f32[3,3,5]", "window={size=3}, dim_labels=b0f_0io->b0f"),
        ("f32[4,6]", "f32[4,9]", "f32[9,6]", "dim_labels=bf_io->bf"),
        ("f32[2,33,6,5]", "f32[2,7,6,5]", "f32[33,7,3,3]", "window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01"),
        ("f32[1,4,4,4,8]", "f32[1,5,5,5,3]", "f32[2,2,2,3,8]", "window={size=2x2x2}, dim_labels=b012f_012io->b012f"),
        // Depthwise, with one and with several results for each channel, and grouped.
        (
            "f32[2,6,6,37]",
            "f32[2,6,6,37]",
            "f32[3,3,1,37]",
            "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=37",
        ),
        (
            "f32[2,4,4,32]",
            "f32[2,6,6,32]",
            "f32[3,3,1,32]",
            "window={size=3x3}, dim_labels=b01f_01io->b01f, feature_group_count=32",
        ),
        (
            "f32[1,15,6,6]",
            "f32[1,5,6,6]",
            "f32[15,1,3,3]",
            "window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01, feature_group_count=5",
        ),
        (
            "f32[1,6,6,40]",
            "f32[1,6,6,4]",
            "f32[3,3,2,40]",
            "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, feature_group_count=2",
        ),
        // Groups of the batch: gradients of grouped convolutions.
        (
            "f32[3,3,2,8]",
            "f32[4,6,6,4]",
            "f32[4,6,6,8]",
            "window={size=6x6 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf, batch_group_count=2",
        ),
        (
            "f32[3,3,1,24]",
            "f32[2,6,6,24]",
            "f32[2,6,6,24]",
            "window={size=6x6 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf, batch_group_count=24",
        ),
        // Gradients of a kernel, and of the input of a strided convolution.
        (
            "f64[3,3,3,20]",
            "f64[5,16,16,3]",
            "f64[5,16,16,20]",
            "window={size=16x16 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf",
        ),
        (
            "f32[2,12,12,5]",
            "f32[2,6,6,9]",
            "f32[3,3,5,9]",
            "window={size=3x3 pad=1_2x1_2 lhs_dilate=2x2}, dim_labels=b01f_01oi->b01f",
        ),
        (
            "f32[2,11,13,5]",
            "f32[2,6,5,9]",
            "f32[1,2,5,9]",
            "window={size=1x2 pad=0_0x1_0 lhs_dilate=2x3 rhs_reversal=1x1}, dim_labels=b01f_01oi->b01f",
        ),
        (
            "f32[1,4,6,3]",
            "f32[1,7,6,2]",
            "f32[3,2,2,3]",
            "window={size=3x2 stride=3x2 pad=2_1x-1_3 lhs_dilate=2x2 rhs_dilate=3x2 rhs_reversal=1x0}, \
                dim_labels=b01f_01io->b01f",
        ),
        // Extreme padding, and a window wider than its input.
        (
            "f32[1,2,1]",
            "f32[1,3,1]",
            "f32[2,1,1]",
            "window={size=2 stride=1000000 pad=1000000_1000000 rhs_dilate=1000000}, dim_labels=b0f_0io->b0f",
        ),
        ("f32[1,5,2]", "f32[1,0,3]", "f32[2,3,2]", "window={size=2 pad=3_3}, dim_labels=b0f_0io->b0f"),
        ("f32[0,2,2]", "f32[0,3,3]", "f32[2,3,2]", "window={size=2}, dim_labels=b0f_0io->b0f"),
        ("f32[1,2,2]", "f32[1,3,0]", "f32[2,0,2]", "window={size=2}, dim_labels=b0f_0io->b0f"),
    ] {
        convolution(result, input, kernel, attributes);
    }
}

#[test]
fn convolutions_for_several_threads() {
    let window = "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f";
    convolution("f32[3,28,28,40]", "f32[3,28,28,24]", "f32[3,3,24,40]", window);
    // In f32, sums of 900 products would differ by rounding.
    convolution("f64[1,7,7,200]", "f64[1,7,7,100]", "f64[3,3,100,200]", window);
    let gradient = "window={size=28x28 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf";
    convolution("f64[3,3,12,20]", "f64[16,28,28,12]", "f64[16,28,28,20]", gradient);
    let depthwise = format!("{window}, feature_group_count=72");
    convolution("f32[4,28,28,72]", "f32[4,28,28,72]", "f32[3,3,1,72]", &depthwise);
}
