//! Tests of target profiles that lack operations and floats.

use std::collections::BTreeSet;

use xla_hlo::{ElementType, Opcode};
use xla_passes::TargetProfile;

#[test]
fn targets_lack_operations_and_floats_by_name() {
    let poor = TargetProfile::generic().without(["cholesky", "bf16", "tanh"]).expect("what a target may lack");
    assert_eq!(poor.lacks, BTreeSet::from([Opcode::Cholesky, Opcode::Tanh]));
    assert_eq!(poor.floats.storage_only, BTreeSet::from([ElementType::BF16]));
    assert_eq!(poor.floats.computed_in(ElementType::BF16), ElementType::F32);
    // Types that are not storage-only are computed in their own type.
    for ty in [ElementType::F16, ElementType::F32, ElementType::F64, ElementType::S8, ElementType::C64] {
        assert_eq!(poor.floats.computed_in(ty), ty);
    }
}

#[test]
fn what_programs_cannot_do_without_is_refused() {
    for name in ["add", "f32", "f64", "s8", "tan_h", ""] {
        let error = TargetProfile::generic().without([name]).expect_err(name).to_string();
        assert!(error.contains("a target cannot lack") && error.contains("cholesky"), "{error}");
    }
}
