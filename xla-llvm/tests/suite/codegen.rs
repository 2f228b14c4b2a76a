//! Tests that a fatal error of LLVM is an error of one compilation: the process survives, and compiles the next module.

use inkwell::memory_buffer::MemoryBuffer;
use xla_hlo::{Error, Result};
use xla_llvm::codegen::{CodeKind, generate};
use xla_llvm::emitter::{EmitOptions, Emitter};
use xla_llvm::target::{CodeGenerators, MachineOptions, Target, TargetSpec};

fn x86(ir: &'static str) -> Result<Vec<u8>> {
    let triple = Some("x86_64-unknown-linux-gnu".to_string());
    let target = Target::of(&TargetSpec { triple, ..TargetSpec::default() }, CodeGenerators::all())?;
    let generated = generate(&target, &MachineOptions::default(), CodeKind::Object, |context| {
        let text = MemoryBuffer::create_from_memory_range_copy(ir.as_bytes(), "test");
        let module = context.create_module_from_ir(text).map_err(|reason| Error::internal(reason.to_string()))?;
        Ok((module, ()))
    });
    generated.map(|(object, ())| object)
}

/// AVX-512 instruction on a machine without it: LLVM reports a fatal error.
const UNSELECTABLE: &str = r#"
target triple = "x86_64-unknown-linux-gnu"
declare <16 x float> @llvm.x86.avx512.mask.scalef.ps.512(<16 x float>, <16 x float>, <16 x float>, i16, i32)
define void @f(ptr %p) {
  %a = load <16 x float>, ptr %p
  %b = call <16 x float> @llvm.x86.avx512.mask.scalef.ps.512(<16 x float> %a, <16 x float> %a, <16 x float> %a, i16 -1, i32 4)
  store <16 x float> %b, ptr %p
  ret void
}
"#;

/// Assembly that requests a register that does not exist: LLVM calls the diagnostic handler, or exits.
const UNALLOCATABLE: &str = r#"
target triple = "x86_64-unknown-linux-gnu"
define i32 @f(<4 x i1> %m) {
  %a = call <4 x i1> asm "", "=k,0"(<4 x i1> %m)
  %b = extractelement <4 x i1> %a, i32 0
  %c = zext i1 %b to i32
  ret i32 %c
}
"#;

const FINE: &str = "define i32 @f(i32 %x) {\n  ret i32 %x\n}\n";

#[test]
fn a_fatal_error_of_llvm_is_an_error() {
    for _ in 0..3 {
        let error = x86(UNSELECTABLE).unwrap_err().to_string();
        assert!(error.contains("LLVM cannot generate code"), "{error}");
    }
    assert!(!x86(FINE).unwrap().is_empty());
}

#[test]
fn a_diagnostic_of_llvm_is_an_error() {
    let error = x86(UNALLOCATABLE).unwrap_err().to_string();
    assert!(error.contains("allocate"), "{error}");
    assert!(!x86(FINE).unwrap().is_empty());
}

#[test]
fn malformed_modules_are_refused() {
    let target = Target::host().unwrap();
    let generated = generate(&target, &MachineOptions::default(), CodeKind::Object, |context| {
        let emitter = Emitter::new(context, "malformed", &target, EmitOptions::default());
        // A block without a terminator.
        emitter.kernel("kernel", 1);
        Ok((emitter.finish()?, ()))
    });
    let error = generated.unwrap_err().to_string();
    assert!(error.contains("terminator"), "{error}");
}

#[test]
fn what_the_emission_fails_with_is_passed_on() {
    let target = Target::host().unwrap();
    let generated: Result<(Vec<u8>, ())> =
        generate(&target, &MachineOptions::default(), CodeKind::Object, |_| Err(Error::unimplemented("this")));
    assert!(matches!(generated, Err(Error::Unimplemented(_))));
}
