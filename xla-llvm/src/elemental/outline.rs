//! Outlined transcendental functions: a kernel that computes one of them often calls it.
//!
//! The code of a transcendental function is tens to hundreds of instructions. Kernels with many copies, such as long
//! chains of elementwise operations, take long to compile, spill registers and do not fit the instruction cache.

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum, ValueKind};
use xla_hlo::{Error, Opcode};

use super::value::Value;
use crate::emitter::Emitter;

/// Number of copies of a function in one kernel, for one element type and number of lanes, that are emitted inline. The
/// epilogue of a register tile has fewer: a call would spill its accumulators.
const INLINE_COPIES: usize = 32;

/// Applies `body` to the operands: inline, or by a call if the kernel already has [`INLINE_COPIES`] of the function.
/// Both compute the same bits. GPU kernels and cheap functions never call.
pub(super) fn apply<'e, 'ctx, const N: usize>(
    e: &'e Emitter<'ctx>,
    opcode: Opcode,
    operands: [Value<'e, 'ctx>; N],
    body: impl for<'f> FnOnce([Value<'f, 'ctx>; N]) -> Option<Value<'f, 'ctx>>,
) -> Option<Value<'e, 'ctx>> {
    if !is_transcendental(opcode) || e.target().simt().is_some() {
        return body(operands);
    }
    let (ty, width) = (operands[0].element_type(), operands[0].width());
    match e.count_copy((opcode, ty, width)) {
        ..=INLINE_COPIES => body(operands),
        _ => call(e, &format!("xla.{opcode}.{ty}.x{width}"), operands, body),
    }
}

/// Calls the helper function `name`, whose result has the type of the first operand.
fn call<'e, 'ctx, const N: usize>(
    e: &'e Emitter<'ctx>,
    name: &str,
    operands: [Value<'e, 'ctx>; N],
    body: impl for<'f> FnOnce([Value<'f, 'ctx>; N]) -> Option<Value<'f, 'ctx>>,
) -> Option<Value<'e, 'ctx>> {
    let ty = operands[0].element_type();
    let arguments = operands.map(|operand| operand.raws()).concat();
    let types: Vec<BasicTypeEnum<'ctx>> = arguments.iter().map(BasicValueEnum::get_type).collect();
    let parts = types.len() / N;
    let result = if parts == 1 { types[0] } else { e.context().struct_type(&types[..parts], false).into() };
    let function = e.helper(name, &types, result, |e, parameters| {
        let operands = std::array::from_fn(|i| Value::from_raws(e, ty, &parameters[i * parts..][..parts]));
        let Some(value) = body(operands) else {
            e.fail(Error::internal(format!("{name} is not defined")));
            return result.const_zero();
        };
        match result {
            BasicTypeEnum::StructType(fields) => {
                e.pack(fields, &[value.lanes(), value.imaginary().unwrap_or(value.lanes())])
            }
            _ => value.lanes().raw(),
        }
    });
    function.add_attribute(AttributeLoc::Function, no_inline(e));
    let arguments: Vec<BasicMetadataValueEnum<'ctx>> = arguments.into_iter().map(Into::into).collect();
    let call = e.record(e.builder().build_call(function, &arguments, ""))?;
    match call.try_as_basic_value() {
        ValueKind::Basic(BasicValueEnum::StructValue(fields)) => {
            let field = |i| e.record(e.builder().build_extract_value(fields, i, ""));
            Some(Value::from_raws(e, ty, &[field(0)?, field(1)?]))
        }
        ValueKind::Basic(value) => Some(Value::from_raws(e, ty, &[value])),
        ValueKind::Instruction(_) => None,
    }
}

fn no_inline(e: &Emitter<'_>) -> Attribute {
    e.context().create_enum_attribute(Attribute::get_named_enum_kind_id("noinline"), 0)
}

/// Whether the code of a function of floats or complex numbers is worth a call.
fn is_transcendental(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(
        opcode,
        Acos | Acosh
            | Asin
            | Asinh
            | Atan
            | Atan2
            | Atanh
            | Cbrt
            | Cosh
            | Cosine
            | Erf
            | Exponential
            | ExponentialMinusOne
            | Log
            | LogPlusOne
            | Logistic
            | Power
            | Remainder
            | Sine
            | Sinh
            | Tan
            | Tanh
    )
}
