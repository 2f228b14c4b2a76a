//! Outlined functions compute the bits of inline copies.

use xla_hlo::ops::{BinaryOp, UnaryOp};
use xla_hlo::{ElementType, Scalar};
use xla_llvm::elemental::{self, Value};
use xla_llvm::emitter::{EmitOptions, Emitter};
use xla_llvm::target::Target;

use crate::elements::{check_all, literal, plain_x86, samples};
use crate::kernel::{Kernel, Signature};

/// Function of floats and complex numbers.
#[derive(Clone, Copy, Debug)]
enum Function {
    Unary(UnaryOp),
    Binary(BinaryOp),
}

impl Function {
    fn apply<'e, 'ctx>(self, e: &'e Emitter<'ctx>, x: &[Value<'e, 'ctx>]) -> xla_hlo::Result<Value<'e, 'ctx>> {
        match self {
            Function::Unary(op) => elemental::unary(e, op, x[0]),
            Function::Binary(op) => elemental::binary(e, op, x[0], x[1]),
        }
    }
}

/// Returns the results of the last of `copies` copies; `None` if the function is not defined for the type.
fn last_copy(target: &Target, width: u32, copies: usize, function: Function, ty: ElementType) -> Option<Vec<u8>> {
    let signature = Signature { width, inputs: &[ty, ty], output: ty, masked: true, options: EmitOptions::default() };
    let prefix = match function {
        Function::Unary(op) => format!("xla.{}.", op.opcode()),
        Function::Binary(op) => format!("xla.{}.", op.opcode()),
    };
    let kernel = Kernel::new(target, &signature, |e, x| {
        (1..copies).try_for_each(|_| function.apply(e, x).map(|_| ()))?;
        let result = function.apply(e, x)?;
        let calls = e.module().get_functions().any(|f| f.get_name().to_string_lossy().starts_with(&prefix));
        assert_eq!(calls, copies > 1 && is_outlined(function), "{function:?} of {ty}");
        Ok(result)
    });
    let x = samples(ty, 301);
    let y: Vec<_> = x.iter().rev().copied().collect();
    let [x, y] = [literal(ty, &x), literal(ty, &y)];
    let mut out = vec![0; x.bytes().len()];
    kernel.ok()?.run_bytes(&[x.bytes(), y.bytes()], &mut out);
    Some(out)
}

/// Whether the function is transcendental. Lists the others, so that an operation that is added must decide.
fn is_outlined(function: Function) -> bool {
    use {BinaryOp as B, UnaryOp as U};
    match function {
        Function::Unary(op) => !matches!(
            op,
            U::Abs
                | U::Ceil
                | U::CountLeadingZeros
                | U::Floor
                | U::Imag
                | U::IsFinite
                | U::Negate
                | U::Not
                | U::Popcnt
                | U::Real
                | U::RoundNearestAfz
                | U::RoundNearestEven
                | U::Rsqrt
                | U::Sign
                | U::Sqrt
        ),
        Function::Binary(op) => matches!(op, B::Atan2 | B::Power | B::Remainder),
    }
}

/// Whether the bits of two arrays are equal, except for those of NaNs.
fn are_equal(ty: ElementType, a: &[u8], b: &[u8]) -> bool {
    let part = ty.real_part();
    let parts = |bytes: &[u8]| -> Vec<Option<Vec<u8>>> {
        let is_nan = |bytes: &[u8]| matches!(Scalar::read(part, bytes), Scalar::Float(x) if x.is_nan());
        bytes.chunks(part.byte_width()).map(|bytes| (!is_nan(bytes)).then(|| bytes.to_vec())).collect()
    };
    parts(a) == parts(b)
}

#[test]
fn outlined_functions_compute_the_bits_of_inline_copies() {
    use ElementType::{BF16, C64, F32, F64};
    let unary = UnaryOp::ALL.iter().map(|&op| Function::Unary(op));
    let functions: Vec<_> = unary.chain(BinaryOp::ALL.iter().map(|&op| Function::Binary(op))).collect();
    let types = [F32, F64, BF16, C64];
    let cases: Vec<_> =
        functions.iter().flat_map(|&f| types.map(|ty| (f, ty))).filter(|&(f, _)| is_outlined(f)).collect();
    let host = Target::host().unwrap();
    let targets: Vec<_> = [(host, 16)].into_iter().chain(plain_x86().map(|target| (target, 8))).collect();
    check_all(&cases, |&(function, ty)| {
        for (target, width) in &targets {
            let [inline, outlined] = [1, 33].map(|copies| last_copy(target, *width, copies, function, ty));
            if !inline.zip(outlined).is_none_or(|(a, b)| are_equal(ty, &a, &b)) {
                return Err(format!("{function:?} of {ty}, width {width}: other bits if it is outlined"));
            }
        }
        Ok(())
    });
}

#[test]
fn cheap_functions_stay_inline() {
    let target = Target::host().unwrap();
    for function in [Function::Unary(UnaryOp::Rsqrt), Function::Binary(BinaryOp::Multiply)] {
        assert!(last_copy(&target, 16, 40, function, ElementType::F32).is_some());
    }
}
