//! Lookup of arithmetic opcodes.

use super::convert::Conversion;
use super::{Run, Type, TypeKind, float, integer};

/// Arithmetic instruction: reads and writes slots only.
#[derive(Clone, Copy)]
pub(super) struct Alu {
    /// Function of one element; packed registers hold two elements.
    pub run: Run,
    /// Bits of an element, if registers hold two.
    pub packed: Option<u32>,
    /// Number of operands.
    pub operands: usize,
    /// Constant that is passed as an additional operand.
    pub extra: Option<u64>,
    /// Type of immediate operands.
    pub ty: Type,
}

/// Returns the instruction for an opcode such as `mad.lo.s32`, or `None` if the opcode is unknown.
pub(super) fn find(opcode: &str) -> Option<Alu> {
    let parts: Vec<&str> = opcode.split('.').collect();
    let (name, rest) = parts.split_first()?;
    if *name == "cvt" {
        let conversion = Conversion::parse(rest)?;
        let (run, how) = conversion.run();
        let ty = Type::parse(rest.last()?)?;
        return Some(Alu { run, packed: None, operands: 1, extra: Some(how), ty });
    }
    let (last, modifiers) = rest.split_last()?;
    let ty = Type::parse(last)?;
    let one = Type { count: 1, ..ty };
    let plain =
        |run, operands| Some(Alu { run, packed: (ty.count == 2).then_some(ty.bits), operands, extra: None, ty });
    match (*name, modifiers) {
        ("mov", []) if ty.kind == TypeKind::Predicate => plain(integer::predicate("mov")?, 1),
        ("mov", []) if ty.count == 1 => plain(|a, _, _| a, 1),
        ("selp", []) if ty.count == 1 => plain(|a, b, c| if c & 1 == 1 { a } else { b }, 3),
        ("and" | "or" | "xor" | "not", []) if ty.kind == TypeKind::Predicate => {
            plain(integer::predicate(name)?, if *name == "not" { 1 } else { 2 })
        }
        ("setp", [compare]) => plain(comparison(compare, ty)?, 2),
        ("fma" | "add" | "sub", ["rn", "f32"] | ["f32"]) if ty.bits == 16 && ty.count == 1 => {
            plain(mixed(name, ty)?, if *name == "fma" { 3 } else { 2 })
        }
        _ => {
            let is_pair = ty.count == 2 && matches!(*name, "add" | "min" | "max");
            let run = match one.is_integer() {
                true if ty.count == 1 || is_pair => integer::find(name, modifiers, one),
                true => None,
                false => float::find(name, modifiers, one),
            };
            plain(run?, operands_of(name))
        }
    }
}

/// Returns the scalar conversion that an opcode applies to both halves of a pair.
pub(super) fn halves_of_pair(opcode: &str) -> Option<String> {
    match opcode.strip_prefix("cvt.rn.")? {
        "bf16x2.f32" => Some("cvt.rn.bf16.f32".to_string()),
        "f16x2.f32" => Some("cvt.rn.f16.f32".to_string()),
        _ => None,
    }
}

/// Returns the comparison function of an operator for a type.
pub(super) fn comparison(name: &str, ty: Type) -> Option<Run> {
    if ty.is_integer() { integer::comparison(name, ty) } else { float::comparison(name, ty) }
}

fn operands_of(name: &str) -> usize {
    match name {
        "fma" | "mad" | "bfe" | "prmt" | "shf" => 3,
        "neg" | "abs" | "not" | "cnot" | "popc" | "clz" | "brev" | "rcp" | "sqrt" | "rsqrt" | "ex2" | "lg2" | "sin"
        | "cos" | "tanh" => 1,
        _ => 2,
    }
}

/// Returns the function of a mixed-precision instruction: single precision, with some operands of 16 bits.
fn mixed(name: &str, ty: Type) -> Option<Run> {
    fn wide<const B: bool>(slot: u64) -> f32 {
        let kind = if B { TypeKind::Brain } else { TypeKind::Float };
        super::round::read(Type { kind, bits: 16, count: 1 }, slot) as f32
    }
    fn single(slot: u64) -> f32 {
        f32::from_bits(slot as u32)
    }
    fn put(value: f32) -> u64 {
        if value.is_nan() { super::round::NAN_32 } else { u64::from(value.to_bits()) }
    }
    fn of<const B: bool>(name: &str) -> Option<Run> {
        match name {
            "fma" => Some(|a, b, c| put(wide::<B>(a).mul_add(wide::<B>(b), single(c)))),
            "add" => Some(|a, b, _| put(wide::<B>(a) + single(b))),
            "sub" => Some(|a, b, _| put(wide::<B>(a) - single(b))),
            _ => None,
        }
    }
    if ty.kind == TypeKind::Brain { of::<true>(name) } else { of::<false>(name) }
}
