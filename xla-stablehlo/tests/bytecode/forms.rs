//! Tests of the tables of operations: names, versions and properties.

use xla_stablehlo::internals::{LEFT_OUT, PROPERTIES};
use xla_stablehlo::ir::Version;
use xla_stablehlo::ir::forms::{FORMS, Form, form};

#[test]
fn names_lead_to_forms() {
    assert_eq!(form(b"vhlo.add_v1").map(|form| form.since), Some(Version(0, 9, 0)));
    for unknown in ["vhlo.add_v9", "stablehlo.ad", "stablehlo.add_v1", "stablehlo.func", "func.add", "add_v1", "."] {
        assert_eq!(form(unknown.as_bytes()), None, "{unknown}");
    }
    for known in FORMS.iter().filter(|form| form.until.is_none()) {
        let dialect = if matches!(known.stem(), "func" | "call") { "func" } else { "stablehlo" };
        assert_eq!(form(format!("{dialect}.{}", known.stem()).as_bytes()), Some(known));
    }
}

#[test]
fn what_may_be_left_out_is_a_property() {
    assert!(LEFT_OUT.is_sorted());
    for name in LEFT_OUT {
        assert!(FORMS.iter().any(|form| form.properties.contains(name)), "{name}");
    }
}

#[test]
fn names_and_attributes_are_in_order() {
    assert!(PROPERTIES.is_sorted_by_key(|(name, _)| name));
    for (name, properties) in PROPERTIES {
        let own = properties.iter().map(|property| property.trim_start_matches('?'));
        assert!(own.filter(|property| !property.ends_with("SegmentSizes")).is_sorted(), "{name}");
    }
}

#[test]
fn names_and_properties_are_in_order() {
    assert!(FORMS.is_sorted_by_key(|form| form.name));
    for Form { name, properties, .. } in FORMS {
        assert!(properties.is_sorted(), "{name}");
    }
}

#[test]
fn forms_of_one_operation_follow_each_other() {
    for pair in FORMS.windows(2).filter(|pair| pair[0].stem() == pair[1].stem()) {
        let Some(until) = pair[0].until else { panic!("{} has no end", pair[0].name) };
        assert!(until < pair[1].since, "{}", pair[1].name);
    }
}
