//! `cvt`: conversions between integer and floating-point types of all widths, by the table of the PTX ISA.

use super::round::{Rounding, nearest, nearest_tensor, odd_integer, read, rounded};
use super::{Run, Type, TypeKind};

/// Conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Conversion {
    to: Type,
    from: Type,
    /// Rounding of floats to narrower ones.
    rounding: Rounding,
    /// Rounding to integral values, also for results of a floating-point type (`cvt.rni.f32.f32`).
    to_integer: Option<Rounding>,
    saturates: bool,
}

/// Types in the order of their numbers in [`Conversion::encode`].
const TYPES: [&str; 13] = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64", "f16", "bf16", "f32", "f64", "tf32"];
const ROUNDINGS: [Rounding; 5] = [Rounding::Nearest, Rounding::Zero, Rounding::Down, Rounding::Up, Rounding::Away];

impl Conversion {
    /// Parses the parts of an opcode after `cvt`.
    pub(super) fn parse(parts: &[&str]) -> Option<Conversion> {
        let (from, rest) = parts.split_last()?;
        let (to, modifiers) = rest.split_last()?;
        let (to, from) = (Type::parse(to)?, Type::parse(from)?);
        let mut found = Conversion { to, from, rounding: Rounding::Nearest, to_integer: None, saturates: false };
        for modifier in modifiers {
            match *modifier {
                "rn" => found.rounding = Rounding::Nearest,
                "rz" => found.rounding = Rounding::Zero,
                "rm" => found.rounding = Rounding::Down,
                "rp" => found.rounding = Rounding::Up,
                "rna" => found.rounding = Rounding::Away,
                "rni" => found.to_integer = Some(Rounding::Nearest),
                "rzi" => found.to_integer = Some(Rounding::Zero),
                "rmi" => found.to_integer = Some(Rounding::Down),
                "rpi" => found.to_integer = Some(Rounding::Up),
                "sat" => found.saturates = true,
                _ => return None,
            }
        }
        if to.kind == TypeKind::Tensor || from.kind == TypeKind::Tensor || found.rounding == Rounding::Away {
            return matches!(parts, ["rna", "tf32", "f32"]).then_some(found);
        }
        let is_number = |ty: Type| matches!(ty.kind, TypeKind::Float | TypeKind::Brain);
        if is_number(from) && !is_number(to) && found.to_integer.is_none() {
            return None;
        }
        if !is_number(from) && to.bits == 64 && is_number(to) && found.rounding != Rounding::Nearest {
            return None;
        }
        [to, from].iter().all(|ty| TYPES.iter().any(|name| Type::parse(name) == Some(*ty))).then_some(found)
    }

    /// Returns the function of the conversion, and its second operand.
    pub(super) fn run(self) -> (Run, u64) {
        let is_plain = self.to.is_integer() && self.from.is_integer() && !self.saturates;
        match is_plain {
            true => (extend(self.to, self.from), 0),
            false => (|a, how, _| Conversion::decode(how).apply(a), self.encode()),
        }
    }

    fn encode(self) -> u64 {
        let number = |ty| TYPES.iter().position(|name| Type::parse(name) == Some(ty)).unwrap_or(0) as u64;
        let direction = |rounding| ROUNDINGS.iter().position(|r| *r == rounding).unwrap_or(0) as u64;
        number(self.to)
            | number(self.from) << 8
            | direction(self.rounding) << 16
            | self.to_integer.map_or(7, direction) << 24
            | u64::from(self.saturates) << 32
    }

    fn decode(how: u64) -> Conversion {
        const fn ty(kind: TypeKind, bits: u32) -> Type {
            Type { kind, bits, count: 1 }
        }
        const DECODED: [Type; 13] = [
            ty(TypeKind::Unsigned, 8),
            ty(TypeKind::Signed, 8),
            ty(TypeKind::Unsigned, 16),
            ty(TypeKind::Signed, 16),
            ty(TypeKind::Unsigned, 32),
            ty(TypeKind::Signed, 32),
            ty(TypeKind::Unsigned, 64),
            ty(TypeKind::Signed, 64),
            ty(TypeKind::Float, 16),
            ty(TypeKind::Brain, 16),
            ty(TypeKind::Float, 32),
            ty(TypeKind::Float, 64),
            ty(TypeKind::Tensor, 32),
        ];
        Conversion {
            to: DECODED[how as usize & 15],
            from: DECODED[(how >> 8) as usize & 15],
            rounding: ROUNDINGS[(how >> 16) as usize & 7],
            to_integer: ROUNDINGS.get((how >> 24) as usize & 7).copied(),
            saturates: how >> 32 & 1 == 1,
        }
    }

    fn apply(self, slot: u64) -> u64 {
        match (self.from.is_integer(), self.to.is_integer()) {
            (true, true) => saturated(self.to, integer(self.from, slot)) as u64,
            // An `f64` result is rounded only here.
            (true, false) if self.to.bits == 64 => (integer(self.from, slot) as f64).to_bits(),
            (true, false) => rounded(self.to, odd_integer(integer(self.from, slot)), self.rounding),
            (false, true) => self.number_to_integer(read(self.from, slot)) as u64,
            (false, false) => self.number_to_number(slot),
        }
    }

    /// Converts to an integer with saturation. A NaN becomes zero; if either type has 64 bits, it becomes the value
    /// with only the highest bit set.
    fn number_to_integer(self, value: f64) -> i128 {
        if value.is_nan() {
            let is_wide = self.from.bits == 64 || self.to.bits == 64;
            return if is_wide { 1 << (self.to.bits - 1) } else { 0 };
        }
        saturated(self.to, integral(value, self.to_integer.unwrap_or(Rounding::Zero)) as i128)
    }

    fn number_to_number(self, slot: u64) -> u64 {
        let mut value = read(self.from, slot);
        if let Some(direction) = self.to_integer {
            value = integral(value, direction);
        }
        if self.saturates {
            value = if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) };
        }
        match self.rounding {
            Rounding::Nearest => nearest(self.to, value),
            Rounding::Away => nearest_tensor(value as f32),
            direction => rounded(self.to, value, direction),
        }
    }
}

/// Returns the function that converts between integer types: truncates, then extends with the sign of the narrower
/// type.
fn extend(to: Type, from: Type) -> Run {
    let narrow = if to.bits < from.bits { to } else { from };
    match (narrow.bits, narrow.is_signed()) {
        (8, false) => |a, _, _| u64::from(a as u8),
        (8, true) => |a, _, _| a as i8 as u64,
        (16, false) => |a, _, _| u64::from(a as u16),
        (16, true) => |a, _, _| a as i16 as u64,
        (32, false) => |a, _, _| u64::from(a as u32),
        (32, true) => |a, _, _| a as i32 as u64,
        _ => |a, _, _| a,
    }
}

/// Returns the value of an integer in a slot.
fn integer(ty: Type, slot: u64) -> i128 {
    let above = 64 - ty.bits;
    if ty.is_signed() { i128::from(((slot << above) as i64) >> above) } else { i128::from(slot << above >> above) }
}

fn saturated(ty: Type, value: i128) -> i128 {
    let (least, most) = match ty.is_signed() {
        true => (-(1i128 << (ty.bits - 1)), (1i128 << (ty.bits - 1)) - 1),
        false => (0, (1i128 << ty.bits) - 1),
    };
    value.clamp(least, most)
}

fn integral(value: f64, direction: Rounding) -> f64 {
    match direction {
        Rounding::Nearest => value.round_ties_even(),
        Rounding::Away => value.round(),
        Rounding::Zero => value.trunc(),
        Rounding::Down => value.floor(),
        Rounding::Up => value.ceil(),
    }
}
