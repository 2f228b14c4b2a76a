//! Tests of matmuls of bf16 and of 8-bit integers on this machine, by its dot-product instructions if it has them.

use std::fmt::Write;

use xla_hlo::VerifiedModule;
use xla_hlo::text::parse_module;
use xla_llvm::target::Target;
use xla_service::thunks::ThunkKind;
use xla_service::{AotCompilationOptions, Client, CompileOptions, PlatformRegistry};
use xla_tests::agreement::assert_agrees_with;

use crate::ahead_of_time::agrees_with;

/// M, N and K: vectors, few rows, sizes that are no multiple of a tile, and several blocks of K.
const SIZES: &[[usize; 3]] =
    &[[1, 70, 130], [4, 256, 512], [16, 100, 63], [33, 45, 37], [128, 128, 128], [31, 9, 1536], [300, 150, 70]];

/// Operands and result.
const TYPES: &[[&str; 3]] = &[
    ["bf16", "bf16", "bf16"],
    ["bf16", "bf16", "f32"],
    ["s8", "s8", "s32"],
    ["u8", "u8", "s32"],
    ["s8", "u8", "s32"],
    ["u8", "s8", "u32"],
    ["s8", "s8", "s8"],
];

fn flushing() -> CompileOptions {
    CompileOptions { flush_denormals: true, ..CompileOptions::default() }
}

/// Returns dots of all sizes and of types, in one program; the right operand is contiguous along N or K.
fn dots([left, right, result]: [&str; 3], right_along_k: bool) -> String {
    let (mut lines, mut shapes, mut names) = (String::new(), Vec::new(), Vec::new());
    for (number, [m, n, k]) in SIZES.iter().enumerate() {
        let (first, second) = (2 * number, 2 * number + 1);
        let (dims, contracting) = if right_along_k { ([n, k], 1) } else { ([k, n], 0) };
        let _ = write!(
            lines,
            "x{number} = {left}[{m},{k}] parameter({first})
             y{number} = {right}[{},{}] parameter({second})
             d{number} = {result}[{m},{n}] dot(x{number}, y{number}), lhs_contracting_dims={{1}}, \
             rhs_contracting_dims={{{contracting}}}
            ",
            dims[0], dims[1]
        );
        shapes.push(format!("{result}[{m},{n}]"));
        names.push(format!("d{number}"));
    }
    let (shapes, names) = (shapes.join(", "), names.join(", "));
    format!("HloModule dots\nENTRY main {{\n{lines}ROOT all = ({shapes}) tuple({names})\n}}")
}

#[test]
fn every_size_of_every_type() {
    for &types in TYPES {
        for right_along_k in [false, true] {
            let text = dots(types, right_along_k);
            assert_agrees_with(backend_cpu::platform(), &text, &flushing());
            let options = AotCompilationOptions {
                cpus: vec!["native".to_string()],
                compile: flushing(),
                ..AotCompilationOptions::default()
            };
            agrees_with(&text, &options);
        }
    }
}

/// Convolutions with channels that fill groups, and with fewer, which the library computes.
#[test]
fn convolutions_of_images() {
    for (input, kernel, result, window) in [
        ([2, 9, 7, 33], [3, 2, 33, 40], [2, 9, 8, 40], "size=3x2 pad=1_1x1_1"),
        ([1, 11, 12, 64], [3, 3, 64, 32], [1, 6, 6, 32], "size=3x3 stride=2x2 pad=1_1x1_1"),
        ([3, 5, 6, 34], [1, 1, 34, 47], [3, 5, 6, 47], "size=1x1"),
        ([2, 8, 8, 3], [3, 3, 3, 40], [2, 6, 6, 40], "size=3x3"),
    ] {
        let array = |dims: [usize; 4]| dims.map(|d| d.to_string()).join(",");
        for (ty, sum) in [("bf16", "bf16"), ("bf16", "f32"), ("s8", "s32")] {
            let text = format!(
                "HloModule convolution
                ENTRY main {{
                  x = {ty}[{}] parameter(0)
                  w = {ty}[{}] parameter(1)
                  ROOT c = {sum}[{}] convolution(x, w), window={{{window}}}, dim_labels=b01f_01io->b01f
                }}",
                array(input),
                array(kernel),
                array(result)
            );
            assert_agrees_with(backend_cpu::platform(), &text, &flushing());
        }
    }
}

/// A kernel computes the matmul if the processor has the instruction and subnormals may be flushed; otherwise the
/// library does, which converts the operands to f32.
#[test]
fn kernels_replace_the_library_where_flushing_is_allowed() {
    let text = dots(TYPES[0], false);
    let mut registry = PlatformRegistry::new();
    registry.register(backend_cpu::platform());
    let client = Client::new(&registry, "cpu").unwrap();
    let calls_library = |options: &CompileOptions| {
        let module = VerifiedModule::new(parse_module(&text).unwrap()).unwrap();
        let program = client.compile(&module, options).unwrap();
        program.thunks().unwrap().walk().any(|thunk| matches!(thunk.kind, ThunkKind::LibraryCall(_)))
    };
    assert!(calls_library(&CompileOptions::default()));
    assert_eq!(calls_library(&flushing()), !Target::host().unwrap().abilities().dots.bf16);
}
