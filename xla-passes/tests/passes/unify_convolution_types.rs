//! Tests of the element types of convolutions that depend on the target.

use std::collections::BTreeSet;

use xla_hlo::ElementType;
use xla_hlo::text::parse_module;
use xla_passes::{Pass, PassContext, TargetProfile, UnifyConvolutionTypes};

#[test]
fn what_a_target_sums_by_itself_stays() {
    let profile = TargetProfile { convolution_floats: BTreeSet::from([ElementType::BF16]), ..TargetProfile::generic() };
    let is_changed = |types: [&str; 3]| {
        let [x, w, r] = types;
        let text = format!(
            "ENTRY main {{\n x = {x}[2,3,6] parameter(0)\n w = {w}[3,3,2] parameter(1)\n \
             ROOT c = {r}[2,3,5] convolution(x, w), window={{size=2}}, dim_labels=bf0_oi0->bf0\n}}"
        );
        let mut module = parse_module(&text).unwrap();
        UnifyConvolutionTypes.run(&mut module, &PassContext::new(&profile)).unwrap().is_changed()
    };
    assert!(!is_changed(["bf16", "bf16", "bf16"]));
    assert!(is_changed(["bf16", "bf16", "f32"]));
    assert!(is_changed(["f16", "f16", "f16"]));
}
