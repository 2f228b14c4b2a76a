//! Tests of asynchronous operations: both forms of text, values, chains.

use xla_hlo::ElementType::F32;
use xla_hlo::eval::evaluate;
use xla_hlo::text::parse_module;
use xla_hlo::verify::VerifiedModule;
use xla_hlo::{Literal, Result};

use crate::testing::{array, assert_refused, numbers};

/// Runs a program over `x, y: f32[2]` that is preceded by `computations`; printing it must be a fixpoint.
fn run(computations: &str, instructions: &str) -> Result<(String, Literal)> {
    let text = format!(
        "HloModule m\n{computations}\nENTRY main {{\n x = f32[2] parameter(0)\n y = f32[2] parameter(1)\n {instructions}\n}}"
    );
    let module = parse_module(&text)?;
    let printed = module.to_string();
    assert_eq!(parse_module(&printed)?.to_string(), printed, "printing is a fixed point");
    let arguments = vec![array(F32, &[2], &[5.0, 7.0]), array(F32, &[2], &[1.0, 2.0])];
    Ok((printed, evaluate(&*VerifiedModule::new(module)?, arguments)?))
}

const START: &str = "((f32[2], f32[2]), f32[2], s32[])";
const SWAPPED: &str = "c { a = f32[2] parameter(0) b = f32[2] parameter(1) ROOT r = f32[2] subtract(b, a) }";
const PLAIN: &str = "c { a = f32[2] parameter(0) b = f32[2] parameter(1) ROOT r = f32[2] subtract(a, b) }";

#[test]
fn the_short_form_is_read_and_printed() {
    let (printed, value) = run(
        "",
        &format!(
            "s = {START} subtract-start(x, y), async_execution_thread=\"side\", metadata={{op_name=\"n\"}}\n \
             u = {START} subtract-update(s)\n ROOT d = f32[2] subtract-done(u)"
        ),
    )
    .unwrap();
    assert!(printed.contains("subtract-start(%x, %y), async_execution_thread=\"side\", metadata="), "{printed}");
    assert!(printed.contains("subtract-update(%s)\n") && printed.contains("subtract-done(%u)\n"), "{printed}");
    assert!(!printed.contains("async_wrapped"), "{printed}");
    assert_eq!(numbers(&value), [4.0, 5.0]);
}

#[test]
fn one_operation_on_the_parameters_in_order_has_a_short_form() {
    let steps = format!(
        "s = {START} async-start(x, y), calls=c\n u = {START} async-update(s), calls=c\n ROOT d = f32[2] async-done(u)"
    );
    let (printed, value) = run(PLAIN, &steps).unwrap();
    assert!(printed.contains("subtract-start(%x, %y)\n"), "{printed}");
    assert_eq!(numbers(&value), [4.0, 5.0]);
    let (printed, value) = run(SWAPPED, &steps).unwrap();
    assert!(printed.contains("async-start(%x, %y), calls=%c\n"), "{printed}");
    assert!(printed.contains("async-done(%u)\n"), "{printed}");
    assert_eq!(numbers(&value), [-4.0, -5.0]);
}

#[test]
fn attributes_and_computations_of_async_starts() {
    let (printed, value) = run(
        "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }",
        "zero = f32[] constant(0)\n s = ((f32[2], f32[]), f32[], u32[], (token[])) reduce-start(x, zero), dimensions={0}, \
         to_apply=add\n ROOT d = f32[] reduce-done(s)",
    )
    .unwrap();
    assert!(printed.contains("reduce-start(%x, %zero), dimensions={0}, to_apply=%add\n"), "{printed}");
    assert_eq!(numbers(&value), [12.0]);
}

#[test]
fn threads_belong_to_computations() {
    let steps =
        format!("s = {START} async-start(x, y), calls=c, async_execution_thread=\"t\"\n ROOT d = f32[2] async-done(s)");
    let (printed, _) = run(SWAPPED, &steps).unwrap();
    assert!(printed.contains("}, execution_thread=\"t\"\n"), "{printed}");
    assert!(printed.contains("async-start(%x, %y), async_execution_thread=\"t\", calls=%c\n"), "{printed}");
}

#[test]
fn copies() {
    let (printed, value) = run(
        "",
        "s = (f32[2]{0:S(1)}, f32[2], u32[]) copy-start(x), cross_program_prefetch_index=2\n ROOT d = f32[2] copy-done(s)",
    )
    .unwrap();
    assert!(printed.contains("copy-start(%x), cross_program_prefetch_index=2\n"), "{printed}");
    assert_eq!(numbers(&value), [5.0, 7.0]);
}

#[test]
fn broken_rules() {
    let wrong_state = "s = ((f32[2]), f32[2], s32[]) async-start(x, y), calls=c\n ROOT d = f32[2] async-done(s)";
    let wrong_result = "s = ((f32[2], f32[2]), f32[], s32[]) async-start(x, y), calls=c\n ROOT d = f32[] async-done(s)";
    let start = format!("s = {START} subtract-start(x, y)");
    for (instructions, message) in [
        (wrong_state, "element 0 of async-start must be the operands (f32[2]"),
        (wrong_result, "element 1 of async-start must be f32[2]"),
        ("s = f32[2] async-start(x, y), calls=c\n ROOT d = f32[2] negate(s)", "must be ((operands), result, state...)"),
        ("s = f32[2] subtract-start(x, y)\n ROOT d = f32[2] negate(x)", "the shape of a start must be written"),
        ("ROOT d = f32[2] subtract-done(x)", "the operand of async-done must be the result of a start operation"),
        ("ROOT d = f32[2] async-done(x)", "operand 0 must be the result of a start operation"),
        (&format!("{start}\n ROOT d = f32[2] add-done(s)"), "this instruction does not continue s"),
        (&format!("{start}\n ROOT d = f32[2] subtract-done(s), calls=c"), "this instruction does not continue s"),
        (
            &format!("{start}\n ROOT d = f32[2] negate(x)"),
            "async-start must be used once, by async-update or async-done",
        ),
        (&format!("{start}\n e = f32[2] subtract-done(s)\n ROOT d = f32[2] subtract-done(s)"), "must be used once"),
        (
            &format!(
                "s = {START} async-start(x, y), calls=c\n e = f32[2] async-done(s)\n ROOT d = f32[2] call(x, y), to_apply=c"
            ),
            "an asynchronous computation must have one caller",
        ),
        ("s = (f32[2], f32[2], u32[]) copy-start(x)\n ROOT d = f32[3] copy-done(s)", "copy-done has shape f32[2]"),
        (
            "s = ((f32[2]), f32[2], s32[]) subtract-start(x)\n ROOT d = f32[2] subtract-done(s)",
            "subtract takes 2 operands",
        ),
        ("s = ((f32[2]), f32[2], s32[]) nothing-start(x)\n ROOT d = f32[2] nothing-done(s)", "unknown operation"),
    ] {
        assert_refused(instructions, run(PLAIN, instructions).map(|r| r.1), message);
    }
}
