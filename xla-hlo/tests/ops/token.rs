//! Tests of tokens and transfers: text, shapes, errors.

use xla_hlo::ElementType::F32;
use xla_hlo::eval::evaluate;
use xla_hlo::text::parse_module;
use xla_hlo::verify::VerifiedModule;
use xla_hlo::{Literal, Result};

use crate::testing::{assert_refused, scalar};

/// Runs a program of the given instructions, with `x: f32[2]` and the token `t` defined, for x = 7.
fn run(instructions: &str) -> Result<Literal> {
    let text = format!(
        "ENTRY main {{\n x = f32[] parameter(0)\n t = token[] after-all()\n {instructions}\n ROOT r = f32[] negate(x)\n}}"
    );
    let module = parse_module(&text)?;
    let printed = module.to_string();
    assert_eq!(parse_module(&printed)?.to_string(), printed, "printing is a fixed point");
    evaluate(&*VerifiedModule::new(module)?, vec![scalar(F32, 7.0)])
}

#[test]
fn tokens_pass_values_on() {
    let text = include_str!("programs/tokens_pass_values_on.hlo");
    let module = VerifiedModule::new(parse_module(text).unwrap()).unwrap();
    assert_eq!(evaluate(&module, vec![scalar(F32, 3.0)]).unwrap(), scalar(F32, 3.0));
    assert_eq!(run("u = token[] after-all(t)\n y = f32[] add-dependency(x, u)").unwrap(), scalar(F32, -7.0));
}

#[test]
fn transfers_are_verified_and_printed_but_not_run() {
    for (instructions, name) in [
        ("i = ((f32[3]{0}, pred[]), token[]) infeed(t), infeed_config=\"a \\\"b\\\"\"", "infeed"),
        ("o = token[] outfeed(x, t), outfeed_shape=f32[], outfeed_config=\"bar\"", "outfeed"),
        ("o = token[] outfeed(x, t)", "outfeed"),
        (
            "s = (f32[], u32[], token[]) send(x, t), channel_id=3, is_host_transfer=true\n d = token[] send-done(s), \
          channel_id=3, is_host_transfer=true",
            "send",
        ),
        (
            "s = (f32[2,3]{0,1}, u32[], token[]) recv(t), channel_id=4\n d = (f32[2,3], token[]) recv-done(s), channel_id=4",
            "recv",
        ),
    ] {
        assert_refused(instructions, run(instructions), &format!("{name} cannot be run"));
    }
}

#[test]
fn broken_rules() {
    for (instructions, message) in [
        ("u = token[] after-all(x)", "operand 0 must be a token, it is f32[]"),
        ("u = f32[] add-dependency(x, x)", "operand 1 must be a token"),
        ("u = token[] add-dependency(x, t)", "add-dependency has shape f32[], but the instruction has token[]"),
        ("i = (f32[3], f32[]) infeed(t)", "the result of infeed must be (data, token[])"),
        ("i = (f32[3], token[]) infeed(x)", "operand 0 must be a token"),
        ("o = token[] outfeed(x, t), outfeed_shape=f32[1]", "outfeed_shape is f32[1]{0}, but operand 0 is f32[]"),
        (
            "s = (f32[1], u32[], token[]) send(x, t)\n d = token[] send-done(s)",
            "send has shape (f32[], u32[], token[])",
        ),
        (
            "s = (f32[], u32[], token[]) send(x, t), channel_id=-1\n d = token[] send-done(s)",
            "channel_id must not be negative",
        ),
        ("s = (f32[], token[]) recv(t)\n d = (f32[], token[]) recv-done(s)", "must be (data, u32[], token[])"),
        ("d = token[] send-done(x)", "operand 0 must be a transfer"),
        ("s = (f32[], u32[], token[]) recv(t)\n d = f32[] recv-done(s)", "recv-done has shape (f32[], token[])"),
    ] {
        assert_refused(instructions, run(instructions), message);
    }
}

#[test]
fn transfers_come_in_pairs() {
    for (instructions, message) in [
        ("s = (f32[], u32[], token[]) send(x, t)", "send must be used once, by send-done or tuple"),
        (
            "s = (f32[], u32[], token[]) recv(t)\n d = (f32[], token[]) recv-done(s)\n e = (f32[], token[]) recv-done(s)",
            "recv must be used once, by recv-done or tuple",
        ),
        (
            "s = (f32[], u32[], token[]) send(x, t)\n d = (f32[], token[]) recv-done(s)",
            "send must be used once, by send-done or tuple",
        ),
        (
            "s = (f32[], u32[], token[]) send(x, t), channel_id=1\n d = token[] send-done(s), channel_id=2",
            "has channel_id 2 and is_host_transfer false, but %s has channel_id 1",
        ),
        (
            "s = (f32[], u32[], token[]) send(x, t), is_host_transfer=true\n d = token[] send-done(s)",
            "is_host_transfer",
        ),
    ] {
        assert_refused(instructions, run(instructions), message);
    }
}
