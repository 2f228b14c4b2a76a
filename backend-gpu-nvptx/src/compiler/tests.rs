//! Unit tests of the compiler for GPUs.

use std::collections::BTreeMap;

use xla_hlo::text::parse_module;
use xla_hlo::{Computation, Instruction, Module};
use xla_service::thunks::LibraryOp;

use super::*;
use crate::program::commands::{Command, KernelArgument, LibraryCommand};
use crate::program::launches::LaunchFacts;
use crate::program::library_call::LibraryCall;
use crate::program::library_call::matmul::{Activation, Precision};

/// Runs the passes for a GPU, with or without cuFFT.
fn optimized(text: &str, has_transforms: bool) -> OptimizedModule {
    optimized_with(text, has_transforms, &CompileOptions::default())
}

fn optimized_with(text: &str, has_transforms: bool, options: &CompileOptions) -> OptimizedModule {
    let module = VerifiedModule::new(parse_module(text).unwrap()).unwrap();
    optimize(module, &passes_for(&GpuProfile::usual(), options, has_transforms), options, None).unwrap().0
}

/// Compiles for sm_90 and returns the library calls. Checks that the program can be serialised and loaded.
fn library_commands(module: &OptimizedModule) -> (Vec<LibraryCommand>, DeviceProgram) {
    let target = Target::nvptx("sm_90").unwrap();
    let device = Arc::unwrap_or_clone(
        compile(module, (&target, GpuProfile::usual()), ModuleSize::Fixed, &CompileOptions::default()).unwrap().device,
    );
    let bytes = device.write(NAME, module).unwrap();
    assert_eq!(DeviceProgram::read(NAME, &bytes).unwrap().1, device);
    let commands = device.command_sequences.iter().flat_map(|sequence| &sequence.commands);
    let calls = commands.filter_map(|command| match command {
        Command::Library(library) => Some((**library).clone()),
        Command::Launch { .. } | Command::Copy { .. } | Command::Choice(_) => None,
    });
    (calls.collect(), device)
}

/// Returns the only library call of a program.
fn library_command(module: &OptimizedModule) -> (LibraryCommand, DeviceProgram) {
    let (calls, device) = library_commands(module);
    let [call] = <[LibraryCommand; 1]>::try_from(calls).expect("one call of a library");
    (call, device)
}

/// Temporaries are slices of one allocation; only slices that overlap conflict.
#[test]
fn products_of_temporaries_are_calls() {
    let module = optimized(include_str!("programs/products_of_temporaries_are_calls.hlo"), false);
    assert_eq!(library_commands(&module).0.len(), 4);
}

#[test]
fn a_convolution_is_prepared_called_and_gone_on_with() {
    let module = optimized(include_str!("programs/a_convolution_is_prepared_called_and_gone_on_with.hlo"), false);
    let (call, device) = library_command(&module);
    let LibraryCall::Convolution(convolution) = &call.call else { panic!("{call:?}") };
    assert_eq!((convolution.element.name(), convolution.batch), ("f32", 8));
    // The image is padded below and on the right; the filter is transposed to output channels first.
    assert!(convolution.has_bias);
    assert_eq!((call.before.len(), call.then.len(), call.otherwise.len()), (2, 0, 1));
    use KernelArgument::{Array, Scratch};
    assert_eq!(call.arrays, [Scratch(0), Scratch(1), Array(2), Array(3)]);
    // Without a cuDNN plan for the bias: the convolution alone, then a kernel. Without cuDNN: our own kernel.
    let [Command::Library(apart)] = &call.otherwise[..] else { panic!("{:?}", call.otherwise) };
    assert!(matches!(&apart.call, LibraryCall::Convolution(convolution) if !convolution.has_bias));
    assert_eq!((apart.before.len(), apart.then.len(), apart.otherwise.len()), (2, 1, 1));
    assert_eq!(apart.arrays, [Scratch(0), Scratch(1), Array(3)]);
    assert_eq!(device.command_sequences[0].scratch, [8 * 57 * 57 * 64 * 4, 3 * 3 * 64 * 128 * 4]);
}

#[test]
fn a_constant_filter_is_laid_out_when_it_is_compiled() {
    let nested = |inner: String, times| format!("{{{}}}", vec![inner; times].join(","));
    let row = format!("{{{}}}", (0..32).map(|i| i.to_string()).collect::<Vec<_>>().join(","));
    let filter = nested(nested(nested(row, 16), 3), 3);
    let module = optimized(
        &format!(
            "HloModule m
            ENTRY main {{
              x = f32[8,28,28,16] parameter(0)
              w = f32[3,3,16,32] constant({filter})
              ROOT c = f32[8,28,28,32] convolution(x, w), window={{size=3x3 pad=1_1x1_1}}, dim_labels=b01f_01io->b01f
            }}"
        ),
        false,
    );
    let (call, _) = library_command(&module);
    assert!(matches!(call.call, LibraryCall::Convolution(_)), "{call:?}");
    assert_eq!((call.before.len(), call.then.len()), (0, 0));
}

#[test]
fn the_filter_of_a_loop_is_laid_out_before_it() {
    let module = optimized(include_str!("programs/the_filter_of_a_loop_is_laid_out_before_it.hlo"), false);
    let (call, _) = library_command(&module);
    assert!(matches!(call.call, LibraryCall::Convolution(_)), "{call:?}");
    assert_eq!((call.before.len(), call.then.len()), (0, 0));
}

#[test]
fn attention_as_jax_writes_it_is_one_kernel() {
    let options = CompileOptions { excess_precision: true, ..CompileOptions::default() };
    let dots = |graph: &Computation| graph.iter().filter(|(_, i)| i.opcode() == Opcode::Dot).count();
    for text in [
        include_str!("../../tests/agrees/dot_product_attention.hlo"),
        include_str!("../../tests/agrees/dot_product_attention_of_groups.hlo"),
    ] {
        let module = optimized_with(text, false, &options);
        assert!(module.iter().any(|(id, graph)| id != module.entry_id() && dots(graph) == 2));
        let exact = optimized_with(text, false, &CompileOptions::default());
        assert_eq!(dots(exact.entry()), 2);
    }
}

#[test]
fn gradients_of_attention_as_jax_writes_them_need_no_scores_in_memory() {
    let options = CompileOptions { excess_precision: true, ..CompileOptions::default() };
    let text = include_str!("../../tests/agrees/dot_product_attention_gradients.hlo");
    let module = optimized_with(text, false, &options);
    let elements = |i: &Instruction| i.shape().as_array().map_or(0, |array| array.element_count());
    let scores = 2 * 36 * 70;
    assert!(module.entry().iter().all(|(_, i)| elements(i) < scores && i.opcode() != Opcode::Dot));
}

#[test]
fn thunks_name_library_calls() {
    let module = optimized(include_str!("programs/thunks_name_library_calls.hlo"), false);
    let target = Target::nvptx("sm_90").unwrap();
    let sequence = compile(&module, (&target, GpuProfile::usual()), ModuleSize::Fixed, &CompileOptions::default())
        .unwrap()
        .program
        .sequence;
    assert_eq!(sequence.coverage().library_calls, BTreeMap::from([(LibraryOp::Matmul, 1)]));
    assert!(sequence.to_string().contains("library call: matmul f32 128x256x192, "), "{sequence}");
}

/// The program that JAX emits for `jax.nn.gelu(x @ w + b)`.
#[test]
fn gelu_is_the_librarys() {
    let module = optimized(include_str!("programs/gelu_is_the_librarys.hlo"), false);
    let (command, _) = library_command(&module);
    let LibraryCall::Matmul(matmul) = &command.call else { panic!("{command:?}") };
    assert_eq!((matmul.activation, matmul.has_bias), (Activation::GeluTanh, true));
    // cuBLASLt computes the whole expression; our own kernel is the fallback.
    assert_eq!((command.before.len(), command.then.len(), command.otherwise.len()), (0, 0, 1));
}

#[test]
fn launches_know_their_arrays() {
    let facts = |text: &str| {
        let target = Target::nvptx("sm_90").unwrap();
        let compiled = compile(
            &optimized(text, false),
            (&target, GpuProfile::usual()),
            ModuleSize::Fixed,
            &CompileOptions::default(),
        )
        .unwrap();
        LaunchFacts::of_kernels(&compiled.program, &compiled.device)
    };
    let added = facts(include_str!("programs/launch_of_a_sum.hlo"));
    let [LaunchFacts { elements_read, bytes_read, elements_written, bytes_written, .. }] = added[..] else {
        panic!("{added:?}")
    };
    assert_eq!((elements_read, bytes_read, elements_written, bytes_written), (4096, 32768, 4096, 16384));
    let summed = facts(include_str!("programs/launch_of_a_reduction.hlo"));
    let [LaunchFacts { blocks, elements_read, elements_written, bytes_written, .. }] = summed[..] else {
        panic!("{summed:?}")
    };
    assert_eq!((blocks > 0, elements_read, elements_written, bytes_written), (true, 65536, 64, 256));
    // Results are sorted in place.
    let sorted = facts(include_str!("programs/launch_of_a_sort.hlo"));
    assert!(sorted.iter().all(|facts| facts.bytes_read >= 16384 && facts.bytes_written >= 16384), "{sorted:?}");
}

#[test]
fn libraries_use_tf32_where_it_is_allowed() {
    let square = ["256,256"; 3];
    let dot = "dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}";
    let images = ["8,28,28,64", "3,3,64,64", "8,28,28,64"];
    let convolution = "convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f";
    let precision = |[x, w, r]: [&str; 3], operation: &str, allow_tf32: bool| {
        let text = format!(
            "HloModule m
            ENTRY main {{
              x = f32[{x}] parameter(0)
              w = f32[{w}] parameter(1)
              ROOT r = f32[{r}] {operation}
            }}"
        );
        let options = CompileOptions { allow_tf32, ..CompileOptions::default() };
        let (call, _) = library_command(&optimized_with(&text, false, &options));
        match call.call {
            LibraryCall::Matmul(matmul) => matmul.precision,
            LibraryCall::Convolution(convolution) => convolution.precision,
            LibraryCall::Fourier(_) => panic!("{text}"),
        }
    };
    for (dims, operation) in [(square, dot), (images, convolution)] {
        assert_eq!(precision(dims, operation, true), Precision::Tf32);
        assert_eq!(precision(dims, operation, false), Precision::Exact);
        let high = format!("{operation}, operand_precision={{high,high}}");
        assert_eq!(precision(dims, &high, true), Precision::Exact);
        let named = format!("{operation}, algorithm=dot_tf32_tf32_f32");
        assert_eq!(precision(dims, &named, false), Precision::Tf32);
    }
}

#[test]
fn transforms_stay_where_there_is_a_library_and_are_put_in_other_terms_for_files() {
    let text = "HloModule m
        ENTRY main {
          x = c64[4,32] parameter(0)
          n = c64[4,32] negate(x)
          ROOT y = c64[4,32] fft(n), fft_type=IFFT, fft_length={32}
        }";
    let module = optimized(text, true);
    let (call, _) = library_command(&module);
    assert!(matches!(call.call, LibraryCall::Fourier(_)), "{call:?}");
    assert_eq!((call.before.len(), call.then.len(), call.otherwise.len()), (0, 1, 0));
    let has_one = |module: &Module| module.iter().any(|(_, g)| g.iter().any(|(_, i)| i.opcode() == Opcode::Fft));
    assert!(has_one(&module) && !has_one(&optimized(text, false)));
    let verified = VerifiedModule::new(parse_module(text).unwrap()).unwrap();
    assert!(!has_one(&optimize_for_files(verified, &GpuProfile::usual(), &CompileOptions::default()).unwrap()));
    let empty = optimized(&text.replace("4,32", "0,32"), true);
    compile(
        &empty,
        (&Target::nvptx("sm_90").unwrap(), GpuProfile::usual()),
        ModuleSize::Fixed,
        &CompileOptions::default(),
    )
    .unwrap();
}
