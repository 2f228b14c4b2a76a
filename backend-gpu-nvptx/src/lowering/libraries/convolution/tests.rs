//! Tests that convolutions are recognised as the cuDNN call with the same sum.

use proptest::prelude::*;
use xla_hlo::Module;

use super::super::reference::{agrees, program, root};
use super::*;

fn text(types: &str, arrays: [&str; 3], attributes: &str) -> String {
    let [lhs, rhs, result] = arrays.map(|dims| format!("{types}[{dims}]"));
    format!(
        "HloModule m\nENTRY main {{\n x = {lhs} parameter(0)\n w = {rhs} parameter(1)\n \
         ROOT r = {result} convolution(x, w), {attributes}\n}}"
    )
}

fn recognised(module: &Module) -> Option<RecognizedCall> {
    let (op, arrays) = root(module);
    let xla_hlo::Op::Convolution(op) = op else { panic!("no convolution") };
    recognise(op, [arrays[0], arrays[1], arrays[2]], (9, 0))
}

/// Returns the recognised call as a line: kind, order, sizes, and the rearranged arrays. Compares it with the
/// evaluator.
fn told(arrays: [&str; 3], attributes: &str) -> String {
    let module = program(&text("f32", arrays, attributes));
    let Some(found) = recognised(&module) else { return "nothing".to_string() };
    agrees(&module, &found);
    let LibraryCall::Convolution(call) = &found.call else { panic!("{found:?}") };
    let spatial = call.spatial.iter().map(|d| {
        format!("{}*{}={} pad {} by {} holes {}", d.input, d.filter, d.output, d.padding, d.stride, d.dilation)
    });
    let rearranged = ["lhs", "rhs", "result"].into_iter().zip(&found.arrays).filter(|(_, how)| how.is_some());
    format!(
        "{:?} {:?} {}x{}->{} groups {} [{}] {}",
        call.kind,
        call.channels,
        call.batch,
        call.input_channels,
        call.output_channels,
        call.groups,
        spatial.collect::<Vec<_>>().join(", "),
        rearranged.map(|(name, _)| name).collect::<Vec<_>>().join(" ")
    )
    .trim_end()
    .to_string()
}

#[test]
fn layers() {
    let lines = [
        told(["2,3,5,6", "4,3,3,3", "2,4,5,6"], "window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01"),
        told(["2,5,6,3", "3,3,3,4", "2,5,6,4"], "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f"),
        told(
            ["2,5,6,4", "4,3,3,2", "2,3,3,4"],
            "window={size=3x3 stride=2x2 pad=1_1x1_1}, dim_labels=b01f_o01i->b01f, feature_group_count=2",
        ),
        told(["2,9,3", "3,3,4", "2,5,4"], "window={size=3 rhs_dilate=2}, dim_labels=b0f_0io->b0f"),
        told(["1,2,8,8", "3,2,3,3", "1,3,4,4"], "window={size=3x3 stride=2x2 pad=0_1x0_1}, dim_labels=bf01_oi01->bf01"),
        told(["1,2,8,8", "3,2,3,3", "1,3,6,6"], "window={size=3x3 rhs_reversal=1x0}, dim_labels=bf01_oi01->bf01"),
        told(["1,2,8,8", "3,2,3,3", "1,3,5,5"], "window={size=3x3 pad=-1_0x0_-1}, dim_labels=bf01_oi01->bf01"),
    ];
    insta::assert_snapshot!(lines.join("\n"), @r"
    Forward First 2x3->4 groups 1 [5*3=5 pad 1 by 1 holes 1, 6*3=6 pad 1 by 1 holes 1]
    Forward Last 2x3->4 groups 1 [5*3=5 pad 1 by 1 holes 1, 6*3=6 pad 1 by 1 holes 1] rhs
    Forward Last 2x4->4 groups 2 [5*3=3 pad 1 by 2 holes 1, 6*3=3 pad 1 by 2 holes 1]
    Forward Last 2x3->4 groups 1 [9*3=5 pad 0 by 1 holes 2] rhs
    Forward First 1x2->3 groups 1 [9*3=4 pad 0 by 2 holes 1, 9*3=4 pad 0 by 2 holes 1] lhs
    Forward First 1x2->3 groups 1 [8*3=6 pad 0 by 1 holes 1, 8*3=6 pad 0 by 1 holes 1] rhs
    Forward First 1x2->3 groups 1 [7*3=5 pad 0 by 1 holes 1, 7*3=5 pad 0 by 1 holes 1] lhs
    ");
}

/// Gradients of convolutions with stride 2 as JAX emits them, in both orders of channels.
#[test]
fn gradients() {
    let lines = [
        // y = conv(x[2,3,7,9], w[4,3,3,3], stride 2, padding 1): [2,4,4,5].
        told(
            ["2,4,4,5", "4,3,3,3", "2,3,7,9"],
            "window={size=3x3 pad=1_1x1_1 lhs_dilate=2x2 rhs_reversal=1x1}, dim_labels=bf01_io01->bf01",
        ),
        told(
            ["2,3,7,9", "2,4,4,5", "4,3,3,3"],
            "window={size=4x5 pad=1_1x1_1 rhs_dilate=2x2}, dim_labels=fb01_io01->fb01",
        ),
        // y = conv(x[2,7,9,3], w[3,3,3,4], stride 2, padding 0_1): [2,3,4,4], the filter reversed before.
        told(
            ["2,3,4,4", "3,3,3,4", "2,7,9,3"],
            "window={size=3x3 pad=2_2x2_2 lhs_dilate=2x2}, dim_labels=b01f_01oi->b01f",
        ),
        told(["2,7,9,3", "2,3,4,4", "3,3,3,4"], "window={size=3x4 rhs_dilate=2x2}, dim_labels=f01b_i01o->01bf"),
        told(
            ["2,5,5,4", "2,5,5,6", "3,3,2,6"],
            "window={size=5x5 pad=1_1x1_1}, dim_labels=f01b_i01o->01bf, batch_group_count=2",
        ),
    ];
    insta::assert_snapshot!(lines.join("\n"), @r"
    BackwardInput First 2x3->4 groups 1 [7*3=4 pad 1 by 2 holes 1, 9*3=5 pad 1 by 2 holes 1]
    BackwardFilter First 2x3->4 groups 1 [7*3=4 pad 1 by 2 holes 1, 9*3=5 pad 1 by 2 holes 1]
    BackwardInput Last 2x3->4 groups 1 [7*3=3 pad 0 by 2 holes 1, 9*3=4 pad 0 by 2 holes 1] rhs
    BackwardFilter Last 2x3->4 groups 1 [7*3=3 pad 0 by 2 holes 1, 9*3=4 pad 0 by 2 holes 1] result
    BackwardFilter Last 2x4->6 groups 2 [5*3=5 pad 1 by 1 holes 1, 5*3=5 pad 1 by 1 holes 1] result
    ");
}

#[test]
fn layers_of_every_type_and_of_three_dimensions() {
    let window = "window={size=3x3 stride=2x1 pad=1_1x1_1}, dim_labels=";
    let cube = "window={size=2x3x2 stride=1x2x1 pad=1_1x1_1x0_0}, dim_labels=";
    let turned = "window={size=2x3x2 pad=0_0x1_1x1_1 lhs_dilate=1x2x1 rhs_reversal=1x1x1}, dim_labels=";
    let far = "window={size=3x3 pad=2_2x2_2 rhs_dilate=2x2}, dim_labels=";
    for types in ["f16", "bf16", "f32", "f64"] {
        for (arrays, attributes) in [
            (["2,3,5,6", "4,3,3,3", "2,4,3,6"], format!("{window}bf01_oi01->bf01")),
            (["2,5,6,3", "4,3,3,3", "2,3,6,4"], format!("{window}b01f_o01i->b01f")),
            (["2,4,5,6", "4,2,3,3", "2,4,5,6"], format!("{far}bf01_oi01->bf01, feature_group_count=2")),
            (["2,3,4,5,3", "4,3,2,3,2", "2,4,5,3,2"], format!("{cube}bf012_oi012->bf012")),
            (["2,4,5,3,3", "4,2,3,2,3", "2,5,3,2,4"], format!("{cube}b012f_o012i->b012f")),
            (["2,4,5,3,2", "4,3,2,3,2", "2,3,4,5,3"], format!("{turned}bf012_io012->bf012")),
        ] {
            let module = program(&text(types, arrays, &attributes));
            let found = recognised(&module).unwrap_or_else(|| panic!("cuDNN has it: {types} {arrays:?} {attributes}"));
            agrees(&module, &found);
        }
    }
}

#[test]
fn what_no_layer_has() {
    let labels = "dim_labels=bf01_oi01->bf01";
    let both =
        told(["1,2,4,4", "3,2,2,2", "1,3,3,3"], &format!("window={{size=2x2 stride=2x2 lhs_dilate=2x2}}, {labels}"));
    assert_eq!(both, "nothing", "holes and steps");
    assert_eq!(told(["3,4", "4,5", "3,5"], "dim_labels=bf_io->bf"), "nothing", "no spatial dimension");
    assert_eq!(
        told(["0,2,4,4", "3,2,2,2", "0,3,3,3"], &format!("window={{size=2x2}}, {labels}")),
        "nothing",
        "no images"
    );
    let far = format!("window={{size=2x2 pad=90_0x90_0}}, {labels}");
    assert_eq!(told(["1,2,4,4", "3,2,2,2", "1,3,93,93"], &far), "nothing", "zeros, almost all");
    let window = format!("window={{size=2x2}}, {labels}");
    for types in ["s32", "c64"] {
        assert_eq!(recognised(&program(&text(types, ["1,2,4,4", "3,2,2,2", "1,3,3,3"], &window))), None, "{types}");
    }
}

#[test]
fn small_ones_stay_with_kernels() {
    let found = |dims: [&str; 3], attributes: &str| {
        let module = program(&text("f32", dims, attributes));
        let (op, arrays) = root(&module);
        super::super::find(op, &arrays[..2], arrays[2], (9, 0)).is_some()
    };
    let window = "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f";
    assert!(found(["8,28,28,32", "3,3,32,32", "8,28,28,32"], window));
    assert!(!found(["1,8,8,32", "3,3,32,32", "1,8,8,32"], window));
    let depthwise = format!("{window}, feature_group_count=256");
    assert!(!found(["8,56,56,256", "3,3,1,256", "8,56,56,256"], &depthwise));
}

/// Sizes and steps of a dimension: input, window, stride, window dilation, base dilation, padding, reversal.
type Line = (usize, usize, usize, usize, usize, (i64, i64), bool);

fn line() -> impl Strategy<Value = Line> {
    (1usize..6, 1usize..4, 1usize..4, 1usize..3, 1usize..4, (-1i64..4, -1i64..4), any::<bool>())
}

fn shuffled(letters: &str) -> impl Strategy<Value = String> {
    Just(letters.chars().collect::<Vec<char>>()).prop_shuffle().prop_map(|letters| letters.into_iter().collect())
}

/// Lists sizes in the order of labels.
fn sized(labels: &str, size: impl Fn(char) -> usize) -> String {
    labels.chars().map(|label| size(label).to_string()).collect::<Vec<_>>().join(",")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    /// Every recognised call computes the operation.
    #[test]
    fn the_librarys_sum_is_the_operations(
        (first, second) in (line(), line()),
        [lhs, kernel, result] in [shuffled("bf01"), shuffled("oi01"), shuffled("bf01")],
        (batch, channels, outputs) in (1usize..4, 1usize..4, 1usize..4),
        (groups, of_images) in (1usize..3, any::<bool>()),
    ) {
        let lines = [first, second];
        let size_of = |line: &Line| {
            let (input, window, stride, dilation, holes, (low, high), _) = *line;
            let base = ((input - 1) * holes + 1) as i64 + low + high - ((window - 1) * dilation + 1) as i64;
            (base >= 0).then(|| base as usize / stride + 1)
        };
        let (Some(rows), Some(columns)) = (size_of(&lines[0]), size_of(&lines[1])) else { return Ok(()) };
        let (images, features) = if of_images { (batch * groups, channels) } else { (batch, channels * groups) };
        let spatial = |label: char, sizes: [usize; 2]| sizes[label.to_digit(10).unwrap_or(0) as usize];
        let lhs_dims = sized(&lhs, |label| match label {
            'b' => images,
            'f' => features,
            _ => spatial(label, [first.0, second.0]),
        });
        let kernel_dims = sized(&kernel, |label| match label {
            'o' => outputs * groups,
            'i' => channels,
            _ => spatial(label, [first.1, second.1]),
        });
        let result_dims = sized(&result, |label| match label {
            'b' => batch,
            'f' => outputs * groups,
            _ => spatial(label, [rows, columns]),
        });
        let each = |of: &dyn Fn(&Line) -> String| format!("{}x{}", of(&lines[0]), of(&lines[1]));
        let attributes = format!(
            "window={{size={} stride={} pad={} lhs_dilate={} rhs_dilate={} rhs_reversal={}}}, dim_labels={lhs}_{kernel}->{result}, {}={groups}",
            each(&|l| l.1.to_string()),
            each(&|l| l.2.to_string()),
            each(&|l| format!("{}_{}", l.5.0, l.5.1)),
            each(&|l| l.4.to_string()),
            each(&|l| l.3.to_string()),
            each(&|l| u8::from(l.6).to_string()),
            if of_images { "batch_group_count" } else { "feature_group_count" },
        );
        let module = program(&text("f32", [&lhs_dims, &kernel_dims, &result_dims], &attributes));
        if let Some(found) = recognised(&module) {
            agrees(&module, &found);
        }
    }
}
