//! Integration tests of the whole crate in one binary, so that LLVM is linked once.

#[path = "suite/accuracy.rs"]
mod accuracy;
#[path = "suite/affine.rs"]
mod affine;
#[path = "suite/codegen.rs"]
mod codegen;
#[path = "suite/concatenations.rs"]
mod concatenations;
#[path = "suite/contractions.rs"]
mod contractions;
#[cfg(target_arch = "x86_64")]
#[path = "suite/decisions.rs"]
mod decisions;
#[path = "suite/dirt.rs"]
mod dirt;
#[cfg(target_arch = "x86_64")]
#[path = "suite/dot_instructions.rs"]
mod dot_instructions;
#[path = "suite/elements.rs"]
mod elements;
#[path = "suite/fft_radices.rs"]
mod fft_radices;
#[path = "suite/flushed.rs"]
mod flushed;
#[path = "suite/gpu_accuracy.rs"]
mod gpu_accuracy;
#[path = "suite/guarded.rs"]
mod guarded;
#[path = "suite/jit.rs"]
mod jit;
#[path = "suite/kernel.rs"]
mod kernel;
#[path = "suite/kernel_table.rs"]
mod kernel_table;
#[path = "suite/kinds.rs"]
mod kinds;
#[cfg(target_arch = "x86_64")]
#[path = "suite/loops.rs"]
mod loops;
#[path = "suite/manifest/mod.rs"]
mod manifest;
#[path = "suite/masked.rs"]
mod masked;
#[path = "suite/outlined.rs"]
mod outlined;
#[path = "suite/overwrites.rs"]
mod overwrites;
#[path = "suite/own_thread.rs"]
mod own_thread;
#[path = "suite/pads.rs"]
mod pads;
#[path = "suite/plans.rs"]
mod plans;
#[path = "suite/programs.rs"]
mod programs;
#[path = "suite/radix_sort.rs"]
mod radix_sort;
#[path = "suite/scalar_computations.rs"]
mod scalar_computations;
#[path = "suite/scalar_loops.rs"]
mod scalar_loops;
#[path = "suite/scatter_plan.rs"]
mod scatter_plan;
#[cfg(target_arch = "x86_64")]
#[path = "suite/strategies.rs"]
mod strategies;
#[path = "suite/target_names.rs"]
mod target_names;
#[path = "suite/targets.rs"]
mod targets;
#[path = "suite/transforms.rs"]
mod transforms;
