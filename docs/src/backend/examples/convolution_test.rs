#[test]
fn convolutions() {
    for (input, kernel, result, how) in [
        ("2,9,5", "3,5,11", "2,7,11", "window={size=3}, dim_labels=b0f_0io->b0f"),
        ("5,3,6,7", "2,3,3,4", "5,3,4,4", "window={size=2x3 stride=2x1 pad=0_0x1_-2}, dim_labels=bf01_01io->b01f"),
        (
            "1,8,8,6",
            "3,3,2,9",
            "1,8,4,9",
            "window={size=3x3 stride=1x2 pad=1_1x1_1 rhs_reversal=1x0}, dim_labels=b01f_01io->b01f, feature_group_count=3",
        ),
        (
            "2,10,4",
            "3,1,4",
            "2,8,4",
            "window={size=3 pad=1_1 rhs_dilate=2}, dim_labels=b0f_0io->b0f, feature_group_count=4",
        ),
    ] {
        each_tame(
            &format!(
                "HloModule m
                ENTRY main {{
                  x = T[{input}] parameter(0)
                  k = T[{kernel}] parameter(1)
                  ROOT r = T[{result}] convolution(x, k), {how}
                }}"
            ),
            is_number,
        );
    }
}
