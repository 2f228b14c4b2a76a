//! Tests of the forms of programs for several devices: programs in `programs/forms.hlo`, their forms in a snapshot.

use xla_hlo::VerifiedModule;
use xla_hlo::text::parse_module;
use xla_passes::{ProgramForm, program_form};

#[test]
fn forms_of_programs() {
    let mut report = String::new();
    for case in include_str!("programs/forms.hlo").split("// === ").skip(1) {
        let (name, text) = case.split_once('\n').unwrap();
        let module = parse_module(text).and_then(VerifiedModule::new).unwrap_or_else(|e| panic!("case {name}: {e}"));
        let form = match program_form(&module) {
            ProgramForm::OneDevice => "one device".to_string(),
            ProgramForm::PerDevice => "per device".to_string(),
            ProgramForm::Global(values) => format!("global: {values}"),
        };
        report += &format!("{name}: {form}\n");
    }
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("forms", report);
    });
}
