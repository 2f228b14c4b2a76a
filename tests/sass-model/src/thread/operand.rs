//! Parsed operands of instructions.

/// Register file: general registers of a thread, or uniform registers of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bank {
    Thread,
    Warp,
}

/// A change of a register before it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    None,
    /// `-R1`
    Negative,
    /// `~R1`
    Inverse,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operand {
    /// `None` is the register of zeros.
    Register(Bank, Option<usize>, Change),
    /// `None` is the predicate that is always true.
    Predicate {
        bank: Bank,
        number: Option<usize>,
        inverse: bool,
    },
    Integer(i64),
    Float(f64),
    /// A word of the constants of a launch, at that offset.
    Constant(u64),
    /// Memory, special registers, labels, and anything that is not listed above.
    Other,
}

impl Operand {
    pub fn parse(text: &str) -> Operand {
        let text = text.strip_suffix(".reuse").unwrap_or(text);
        let (change, bare) = match (text.strip_prefix('-'), text.strip_prefix('~')) {
            (Some(rest), _) => (Change::Negative, rest),
            (_, Some(rest)) => (Change::Inverse, rest),
            _ => (Change::None, text),
        };
        if let Some((bank, number)) = numbered(bare, [("UR", Bank::Warp), ("R", Bank::Thread), ("SR", Bank::Thread)]) {
            return Operand::Register(bank, number, change);
        }
        let inverse = text.strip_prefix('!');
        let predicate =
            numbered(inverse.unwrap_or(text), [("UP", Bank::Warp), ("P", Bank::Thread), ("", Bank::Thread)]);
        if let Some((bank, number)) = predicate.filter(|_| !bare.starts_with(|c: char| c.is_ascii_digit())) {
            return Operand::Predicate { bank, number, inverse: inverse.is_some() };
        }
        number(text).or_else(|| constant(text)).unwrap_or(Operand::Other)
    }
}

/// Number of a register or predicate with one of these prefixes; an inner `None` is `Z` or `T`.
fn numbered(text: &str, banks: [(&str, Bank); 3]) -> Option<(Bank, Option<usize>)> {
    banks.iter().find_map(|(prefix, bank)| {
        let rest = text.strip_prefix(prefix)?;
        match (rest, rest.parse()) {
            ("Z" | "T", _) => Some((*bank, None)),
            (_, Ok(number)) => Some((*bank, Some(number))),
            (_, Err(_)) => None,
        }
    })
}

fn number(text: &str) -> Option<Operand> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    if let Some(digits) = digits.strip_prefix("0x") {
        return i64::from_str_radix(digits, 16).ok().map(|value| Operand::Integer(sign * value));
    }
    match digits.parse::<i64>() {
        Ok(value) if !text.starts_with("-0") => Some(Operand::Integer(sign * value)),
        _ => text.parse().ok().map(Operand::Float),
    }
}

/// `c[0x0][0x210]`
fn constant(text: &str) -> Option<Operand> {
    let offset = text.strip_prefix("c[0x0][")?.strip_suffix(']')?;
    match offset.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(Operand::Constant),
        None => (offset == "RZ").then_some(Operand::Constant(0)),
    }
}

/// The bits of a 16-bit float; for constants, which are exact in it.
pub fn half_bits(value: f64) -> u32 {
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let size = value.abs();
    let bits = if size == 0.0 {
        0
    } else if size < 2f64.powi(-14) {
        (size * 2f64.powi(24)).round() as u32
    } else if size.is_finite() {
        let exponent = size.log2().floor() as i32;
        (((exponent + 15) as u32) << 10) + ((size / 2f64.powi(exponent) - 1.0) * 1024.0).round() as u32
    } else {
        0x7c00
    };
    sign | bits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_operands() {
        let register = |bank, number, change| Operand::Register(bank, number, change);
        let predicate = |bank, number, inverse| Operand::Predicate { bank, number, inverse };
        let expected = [
            ("R12.reuse", register(Bank::Thread, Some(12), Change::None)),
            ("-R3", register(Bank::Thread, Some(3), Change::Negative)),
            ("~UR4", register(Bank::Warp, Some(4), Change::Inverse)),
            ("RZ", register(Bank::Thread, None, Change::None)),
            ("URZ", register(Bank::Warp, None, Change::None)),
            ("SRZ", register(Bank::Thread, None, Change::None)),
            ("!PT", predicate(Bank::Thread, None, true)),
            ("UP0", predicate(Bank::Warp, Some(0), false)),
            ("0x7f0", Operand::Integer(0x7f0)),
            ("-0x1", Operand::Integer(-1)),
            ("1.75", Operand::Float(1.75)),
            ("89", Operand::Integer(89)),
            ("c[0x0][0x210]", Operand::Constant(0x210)),
            ("c[0x0][RZ]", Operand::Constant(0)),
            ("c[0x3][0x10]", Operand::Other),
            ("SR_TID.X", Operand::Other),
            ("desc[UR4][R2.64]", Operand::Other),
            ("`(.L_x_1)", Operand::Other),
            ("|R3|", Operand::Other),
        ];
        for (text, operand) in expected {
            assert_eq!(Operand::parse(text), operand, "{text}");
        }
    }

    #[test]
    fn halves_of_constants() {
        let bits = [0.0, -0.0, 1.0, 1.75, 5.960464477539063e-8, 65504.0, -2.0].map(half_bits);
        assert_eq!(bits, [0, 0x8000, 0x3c00, 0x3f00, 1, 0x7bff, 0xc000]);
    }
}
