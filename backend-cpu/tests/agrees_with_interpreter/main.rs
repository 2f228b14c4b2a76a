//! Tests that programs in HLO text agree with the reference evaluator; one binary, so that LLVM is linked once.

mod ahead_of_time;
mod convolution;
mod custom_calls;
mod denormals;
mod dot_instructions;
mod dynamic;
mod excess_precision;
mod external_calls;
mod layouts;
mod libraries;
mod loops;
mod mapped_constants;
mod numerics;
mod persistent_cache;
mod processors;
mod scatter;
mod self_contained;
mod several_programs;
mod sorting;
mod systems;
mod threads;
mod turned_dots;
mod windows;

/// Runs a program on this backend and in the evaluator; host fallbacks are not allowed.
fn native(text: &str) {
    xla_tests::agreement::assert_agrees(backend_cpu::platform(), text);
}

#[test]
fn programs_of_every_platform_need_no_fallback() {
    xla_tests::agreement::assert_native(backend_cpu::platform());
}

#[test]
fn transposes_of_every_width() {
    for ty in ["pred", "s8", "bf16", "f32", "f64", "c64", "c128"] {
        native(&format!(
            "HloModule m
            ENTRY main {{
              x = {ty}[70,149] parameter(0)
              y = {ty}[3,64,128] parameter(1)
              z = {ty}[2,9,33,40] parameter(2)
              a = {ty}[149,70] transpose(x), dimensions={{1,0}}
              b = {ty}[128,64,3] transpose(y), dimensions={{2,1,0}}
              c = {ty}[3,128,64] transpose(y), dimensions={{0,2,1}}
              d = {ty}[2,33,40,9] transpose(z), dimensions={{0,2,3,1}}
              ROOT t = ({ty}[149,70], {ty}[128,64,3], {ty}[3,128,64], {ty}[2,33,40,9]) tuple(a, b, c, d)
            }}"
        ));
    }
}
