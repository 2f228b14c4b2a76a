//! Integer arithmetic of machine code, as used for addresses and trip counts.

use super::operand::{Change, Operand};
use super::state::{Known, State, halves};
use crate::sass::Instruction;

/// Executes an instruction on registers. Results that depend on data, and those of other instructions, become unknown.
pub fn step(state: &mut State, instruction: &Instruction, operands: &[Operand]) {
    let done = match instruction.base() {
        "MOV" | "UMOV" | "R2UR" => moved(state, operands),
        "IMAD" | "UIMAD" => multiply_add(state, instruction, operands),
        "IADD3" | "UIADD3" | "VIADD" | "IADD" => add(state, instruction, operands),
        "LEA" | "ULEA" => shifted_add(state, instruction, operands),
        "LOP3" | "ULOP3" => logic(state, operands),
        "PLOP3" | "UPLOP3" => logic_of_predicates(state, operands),
        "SHF" | "USHF" => shift(state, instruction, operands),
        "ISETP" | "UISETP" => compare(state, instruction, operands),
        "SEL" | "USEL" => select(state, operands),
        "VIMNMX" | "IMNMX" | "UIMNMX" => extremum(state, instruction, operands),
        "PRMT" | "UPRMT" => permute(state, operands),
        "SGXT" | "USGXT" => extend(state, instruction, operands),
        "S2R" | "S2UR" => special(state, instruction, operands),
        "CS2R" => zeros(state, instruction, operands),
        "HFMA2" => halves_of(state, operands),
        "LDC" | "ULDC" => constant(state, instruction, operands),
        // Waits have succeeded, and the first thread is elected.
        "SYNCS" | "ELECT" => happened(state, operands),
        "R2P" => {
            state.forget_predicates();
            Some(())
        }
        _ => None,
    };
    if done.is_none() {
        forget(state, instruction, operands);
    }
}

/// Forgets the results of an instruction: the predicates that it begins with, and then registers.
pub fn forget(state: &mut State, instruction: &Instruction, operands: &[Operand]) {
    for operand in operands {
        match operand {
            Operand::Predicate { .. } => state.set_predicate(Some(operand), None),
            Operand::Register(..) => {
                state.set_words(Some(operand), &vec![None; results(instruction)]);
                return;
            }
            _ => return,
        }
    }
}

/// Registers of an instruction's result, or more.
fn results(instruction: &Instruction) -> usize {
    let base = instruction.base();
    if let Some([_, columns, _]) = instruction.group_shape() {
        // By each thread of four warps, in words.
        (if instruction.has("F16") && !instruction.has("F32") { columns / 4 } else { columns / 2 }) as usize
    } else if instruction.has("128") || base.ends_with("MMA") {
        4
    } else if instruction.has("64") || instruction.has("WIDE") || base.starts_with('D') || instruction.has("F64") {
        2
    } else {
        1
    }
}

fn happened(state: &mut State, operands: &[Operand]) -> Option<()> {
    let is_told = |operand: &&Operand| matches!(operand, Operand::Predicate { number: Some(_), inverse: false, .. });
    state.set_predicate(Some(operands.first().filter(is_told)?), Some(true));
    Some(())
}

/// Splits off the predicates that come before and after the first register.
fn carries(operands: &[Operand]) -> Option<(&Operand, &[Operand], &[Operand])> {
    let (result, rest) = operands.split_first()?;
    let count = rest.iter().take_while(|operand| matches!(operand, Operand::Predicate { .. })).count();
    let (carries, sources) = rest.split_at(count);
    Some((result, carries, sources))
}

fn moved(state: &mut State, operands: &[Operand]) -> Option<()> {
    let value = state.word(operands.get(1))?;
    state.set_word(operands.first(), Some(value));
    Some(())
}

fn multiply_add(state: &mut State, instruction: &Instruction, operands: &[Operand]) -> Option<()> {
    let (result, carries, sources) = carries(operands)?;
    let (a, b) = (state.word(sources.first())?, state.word(sources.get(1))?);
    let carry = if instruction.has("X") { u64::from(state.predicate(sources.get(3))?) } else { 0 };
    let product = match instruction.has("U32") {
        true => u64::from(a) * u64::from(b),
        false => (i64::from(a as i32) * i64::from(b as i32)) as u64,
    };
    if instruction.has("WIDE") {
        let addend = state.pair(sources.get(2))?;
        let (sum, first) = product.overflowing_add(addend);
        let (sum, second) = sum.overflowing_add(carry);
        state.set_words(Some(result), &[Some(sum as u32), Some((sum >> 32) as u32)]);
        state.set_predicate(carries.first(), Some(first || second));
        return Some(());
    }
    let part = if instruction.has("HI") { product >> 32 } else { product & 0xffff_ffff };
    let sum = part + state.addend(sources.get(2), instruction.has("X"))? + carry;
    sum_up(state, result, carries, sum)
}

fn add(state: &mut State, instruction: &Instruction, operands: &[Operand]) -> Option<()> {
    let (result, carries, sources) = carries(operands)?;
    let extended = instruction.has("X");
    let is_predicate = |operand: &&Operand| matches!(operand, Operand::Predicate { .. });
    let mut sum = 0u64;
    for addend in sources.iter().filter(|operand| !is_predicate(operand)) {
        sum += state.addend(Some(addend), extended)?;
    }
    for carry in sources.iter().filter(is_predicate).filter(|_| extended) {
        sum += u64::from(state.predicate(Some(carry))?);
    }
    sum_up(state, result, carries, sum)
}

/// `LEA`: a shifted to the left, and b. `LEA.HI`: the high word of that shift, and b.
fn shifted_add(state: &mut State, instruction: &Instruction, operands: &[Operand]) -> Option<()> {
    let (result, carries, sources) = carries(operands)?;
    let addend = state.addend(sources.get(1), instruction.has("X"))?;
    if let Some(Operand::Register(bank, number, Change::Negative)) = sources.first() {
        let plain = state.word(Some(&Operand::Register(*bank, *number, Change::None)))?;
        let shifted = plain << (state.word(sources.get(2).filter(|_| !instruction.has("HI")))? & 31);
        return sum_up(state, result, carries, u64::from(!shifted) + 1 + addend);
    }
    let low = state.word(sources.first())?;
    let (shifted, after) = if instruction.has("HI") && instruction.has("SX32") {
        let shift = state.word(sources.get(2))? & 31;
        (((i64::from(low as i32) << shift) >> 32) as u32, 3)
    } else if instruction.has("HI") {
        let (high, shift) = (state.word(sources.get(2))?, state.word(sources.get(3))? & 31);
        ((((u64::from(high) << 32 | u64::from(low)) << shift) >> 32) as u32, 4)
    } else {
        (low << (state.word(sources.get(2))? & 31), 3)
    };
    let carry = if instruction.has("X") { u64::from(state.predicate(sources.get(after))?) } else { 0 };
    sum_up(state, result, carries, u64::from(shifted) + addend + carry)
}

/// A sum with its carries.
fn sum_up(state: &mut State, result: &Operand, carries: &[Operand], sum: u64) -> Option<()> {
    state.set_word(Some(result), Some(sum as u32));
    for (number, carry) in carries.iter().enumerate() {
        state.set_predicate(Some(carry), Some(sum >> 32 > number as u64));
    }
    Some(())
}

fn logic(state: &mut State, operands: &[Operand]) -> Option<()> {
    let (test, rest) = match operands.first()? {
        Operand::Predicate { .. } => (operands.first(), operands.get(1..)?),
        _ => (None, operands),
    };
    let [result, a, b, c, table, ..] = rest else { return None };
    let table = state.word(Some(table))?;
    let words = [a, b, c].map(|operand| state.word(Some(operand)));
    let mut value = 0u32;
    for bit in 0..32 {
        let mut outcomes = 0;
        for row in 0..8u32 {
            let fits = (0..3).all(|i| words[i].is_none_or(|word| word >> bit & 1 == row >> (2 - i) & 1));
            outcomes |= if fits { 1 << (table >> row & 1) } else { 0 };
        }
        // Both outcomes: an unknown operand matters.
        value |= match outcomes {
            1 => 0,
            2 => 1 << bit,
            _ => return None,
        };
    }
    state.set_word(Some(result), Some(value));
    state.set_predicate(test, Some(value != 0));
    Some(())
}

fn logic_of_predicates(state: &mut State, operands: &[Operand]) -> Option<()> {
    let [result, other, a, b, c, table, ..] = operands else { return None };
    let table = state.word(Some(table))?;
    let bits = [a, b, c].map(|operand| state.predicate(Some(operand)));
    let fits = |row: &u32| (0..3).all(|i| bits[i].is_none_or(|bit| u32::from(bit) == row >> (2 - i) & 1));
    let outcomes: Vec<bool> = (0..8u32).filter(fits).map(|row| table >> row & 1 == 1).collect();
    let first = outcomes.first().copied();
    state.set_predicate(Some(result), first.filter(|first| outcomes.iter().all(|other| other == first)));
    state.set_predicate(Some(other), None);
    Some(())
}

/// Shifts of the pair of the third and the first word.
fn shift(state: &mut State, instruction: &Instruction, operands: &[Operand]) -> Option<()> {
    let [result, low, by, high] = operands else { return None };
    let by = state.word(Some(by))?;
    // Bits that are shifted out need not be known.
    let (low, high) = (state.word(Some(low)), state.word(Some(high)));
    let wide = instruction.has("U64") || instruction.has("S64");
    let by = if instruction.has("W") { by & if wide { 63 } else { 31 } } else { by.min(if wide { 63 } else { 32 }) };
    let pair = u64::from(high?) << 32 | u64::from(low?);
    let is_signed = instruction.has("S32") || instruction.has("S64");
    let shifted = match (instruction.has("L"), is_signed) {
        (true, _) => pair << by,
        (false, true) => ((pair as i64) >> by) as u64,
        (false, false) => pair >> by,
    };
    let word = if instruction.has("HI") { shifted >> 32 } else { shifted };
    state.set_word(Some(result), Some(word as u32));
    Some(())
}

fn compare(state: &mut State, instruction: &Instruction, operands: &[Operand]) -> Option<()> {
    let [result, other, a, b, with, rest @ ..] = operands else { return None };
    let outcome = |state: &State| {
        let (a, b) = (state.word(Some(a))?, state.word(Some(b))?);
        let order = if instruction.has("U32") { a.cmp(&b) } else { (a as i32).cmp(&(b as i32)) };
        let low = if instruction.has("EX") { Some(state.predicate(rest.first())?) } else { None };
        let (less, equal) = (order.is_lt(), order.is_eq());
        let comparisons = [
            ("LT", less || equal && low == Some(true), less),
            ("LE", less || equal && low == Some(true), less || equal),
            ("GT", order.is_gt() || equal && low == Some(true), order.is_gt()),
            ("GE", order.is_gt() || equal && low == Some(true), !less),
            ("EQ", equal && low == Some(true), equal),
            ("NE", !equal || low == Some(true), !equal),
        ];
        let (_, extended, plain) = comparisons.into_iter().find(|(name, ..)| instruction.has(name))?;
        Some(if low.is_some() { extended } else { plain })
    };
    let (outcome, with) = (outcome(state), state.predicate(Some(with)));
    let value = match (instruction.has("OR"), instruction.has("XOR"), outcome, with) {
        (true, _, Some(true), _) | (true, _, _, Some(true)) => Some(true),
        (true, _, Some(false), Some(false)) => Some(false),
        (_, true, Some(a), Some(b)) => Some(a != b),
        (false, false, Some(false), _) | (false, false, _, Some(false)) => Some(false),
        (false, false, Some(true), Some(true)) => Some(true),
        _ => None,
    };
    state.set_predicate(Some(result), value);
    state.set_predicate(Some(other), None);
    Some(())
}

fn select(state: &mut State, operands: &[Operand]) -> Option<()> {
    let [result, a, b, which] = operands else { return None };
    let value = match state.predicate(Some(which)) {
        Some(which) => state.word(Some(if which { a } else { b })),
        None => state.word(Some(a)).filter(|_| state.word(Some(a)) == state.word(Some(b))),
    };
    state.set_word(Some(result), value);
    Some(())
}

fn extremum(state: &mut State, instruction: &Instruction, operands: &[Operand]) -> Option<()> {
    let [result, a, b, is_least] = operands else { return None };
    let (a, b) = (state.word(Some(a))?, state.word(Some(b))?);
    let a_is_less = if instruction.has("U32") { a < b } else { (a as i32) < (b as i32) };
    let value = if a_is_less == state.predicate(Some(is_least))? { a } else { b };
    state.set_word(Some(result), Some(value));
    Some(())
}

/// Bytes of two words, chosen by the digits of the second operand; digits from 8 on choose a byte's sign.
fn permute(state: &mut State, operands: &[Operand]) -> Option<()> {
    let [result, a, selection, b] = operands else { return None };
    let (a, selection, b) = (state.word(Some(a))?, state.word(Some(selection))?, state.word(Some(b))?);
    let bytes = u64::from(b) << 32 | u64::from(a);
    let byte = |place: u32| {
        let digit = selection >> (4 * place) & 15;
        let byte = (bytes >> (8 * (digit & 7))) as u8;
        let chosen = if digit < 8 {
            byte
        } else if byte >= 0x80 {
            0xff
        } else {
            0
        };
        u32::from(chosen) << (8 * place)
    };
    state.set_word(Some(result), Some((0..4).map(byte).sum()));
    Some(())
}

fn extend(state: &mut State, instruction: &Instruction, operands: &[Operand]) -> Option<()> {
    let [result, a, bits] = operands else { return None };
    let (a, bits) = (state.word(Some(a))?, state.word(Some(bits))?.min(32));
    let away = 32 - bits;
    let value = match (away, instruction.has("U32")) {
        (32, _) => 0,
        (_, true) => a << away >> away,
        (_, false) => ((a << away) as i32 >> away) as u32,
    };
    state.set_word(Some(result), Some(value));
    Some(())
}

fn special(state: &mut State, instruction: &Instruction, operands: &[Operand]) -> Option<()> {
    let value = state.special(instruction.operands.get(1)?)?;
    state.set_word(operands.first(), Some(value));
    Some(())
}

fn zeros(state: &mut State, instruction: &Instruction, operands: &[Operand]) -> Option<()> {
    let is_zero = instruction.operands.get(1).is_some_and(|source| source == "SRZ");
    let value: Known<u32> = is_zero.then_some(0);
    let count = if instruction.has("32") { 1 } else { 2 };
    state.set_words(operands.first(), &[value, value][..count]);
    Some(())
}

/// `HFMA2` with zero operands, an idiom for a constant of two 16-bit floats.
fn halves_of(state: &mut State, operands: &[Operand]) -> Option<()> {
    let [result, a, b, high, low] = operands else { return None };
    let is_zero = |operand: &Operand| matches!(operand, Operand::Register(_, None, _));
    let value = if is_zero(a) && is_zero(b) { halves(Some(high), Some(low))? } else { return None };
    state.set_word(Some(result), Some(value));
    Some(())
}

fn constant(state: &mut State, instruction: &Instruction, operands: &[Operand]) -> Option<()> {
    let [result, Operand::Constant(offset)] = operands else { return None };
    let words = if instruction.has("64") { 2 } else { 1 };
    let values: Vec<Known<u32>> = (0..words).map(|word| state.constant(offset + 4 * word)).collect();
    state.set_words(Some(result), &values);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sass;
    use crate::thread::state::Launch;

    /// The word of a register, and a predicate, after some instructions.
    fn after(code: &[&str]) -> (Known<u32>, Known<bool>) {
        let lines = code.iter().enumerate().map(|(number, line)| format!("/*{:04x}*/ {line} ;\n", 16 * number));
        let text = lines.collect::<String>();
        let function = sass::parse_binary(&text, [("k", 0)]).unwrap().remove(0);
        let mut state = State::new(Launch { blocks: 16, threads: 128, thread: 0 });
        for instruction in &function.code {
            let operands: Vec<Operand> = instruction.operands.iter().map(|text| Operand::parse(text)).collect();
            step(&mut state, instruction, &operands);
        }
        (state.word(Some(&Operand::parse("R0"))), state.predicate(Some(&Operand::parse("P0"))))
    }

    fn word(code: &[&str]) -> Known<u32> {
        after(code).0
    }

    #[test]
    fn sums_carry() {
        assert_eq!(after(&["IADD3 R0, P0, R1, 0x1, RZ"]), (None, None));
        assert_eq!(after(&["MOV R1, 0xffffffff", "IADD3 R0, P0, R1, 0x1, RZ"]), (Some(0), Some(true)));
        // A difference carries unless it borrows.
        let less = |value: &str| after(&["MOV R1, 0x10", &format!("MOV R2, {value}"), "IADD3 R0, P0, -R1, R2, RZ"]);
        assert_eq!((less("0x10"), less("0xf")), ((Some(0), Some(true)), (Some(0xffff_ffff), Some(false))));
        let high = ["MOV R1, 0xf", "IADD3 R2, P0, -R1, 0xe, RZ", "IMAD.X R0, RZ, RZ, ~RZ, P0"];
        assert_eq!(word(&high), Some(0xffff_ffff));
        assert_eq!(word(&["MOV R1, 0x5", "VIADD R0, R1, 0xfffffffe"]), Some(3));
        // A negative zero carries.
        assert_eq!(after(&["MOV R1, RZ", "LEA R0, P0, -R1, RZ, 0x1"]), (Some(0), Some(true)));
        assert_eq!(after(&["MOV R1, 0x3", "LEA R0, P0, -R1, RZ, 0x1"]), (Some(0xffff_fffa), Some(false)));
    }

    #[test]
    fn what_is_waited_for_has_happened() {
        let waited = "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR8+0x100], RZ";
        assert_eq!(after(&["MOV R0, 0x5", waited]), (Some(5), Some(true)));
        assert_eq!(after(&["ELECT P0, URZ, PT"]).1, Some(true));
        // Sums of four warps are forgotten, and the register after them is not.
        let after_all = ["MOV R36, 0x5", "HGMMA.64x24x16.F32.BF16 R24, gdesc[UR8], R24, gsb0", "MOV R0, R36"];
        assert_eq!(word(&after_all), Some(5));
        let within = ["MOV R35, 0x5", "HGMMA.64x24x16.F32.BF16 R24, gdesc[UR8], R24, gsb0", "MOV R0, R35"];
        assert_eq!(word(&within), None);
    }

    #[test]
    fn products_and_shifts() {
        assert_eq!(word(&["MOV R1, 0xfffffffe", "IMAD R0, R1, 0x3, RZ"]), Some(0xffff_fffa));
        assert_eq!(word(&["MOV R1, 0x80000000", "IMAD.HI.U32 R0, R1, 0x6, RZ"]), Some(3));
        let wide = ["MOV R1, 0xffffffff", "IMAD.WIDE.U32 R2, R1, 0x10, RZ", "MOV R0, R3"];
        assert_eq!(word(&wide), Some(15));
        assert_eq!(word(&["MOV R1, 0xffffffff", "IMAD.WIDE R2, R1, 0x10, RZ", "MOV R0, R3"]), Some(0xffff_ffff));
        assert_eq!(word(&["MOV R1, 0x80", "SHF.R.U32.HI R0, RZ, 0x7, R1"]), Some(1));
        assert_eq!(word(&["MOV R1, 0x80000000", "SHF.R.S32.HI R0, RZ, 0x1f, R1"]), Some(0xffff_ffff));
        assert_eq!(word(&["MOV R1, 0x80000001", "SHF.L.U64.HI R0, R1, 0x1, RZ"]), Some(1));
        assert_eq!(word(&["MOV R1, 0x80000001", "SHF.L.W.U32.HI R0, R1, 0x1, R1"]), Some(3));
        assert_eq!(word(&["MOV R1, 0x80000000", "LEA.HI R0, R1, 0x1, RZ, 0x2"]), Some(3));
        assert_eq!(word(&["MOV R1, 0x8000", "PRMT R0, R1, 0x9910, RZ"]), Some(0xffff_8000));
        assert_eq!(word(&["MOV R1, 0x1ff", "SGXT R0, R1, 0x8"]), Some(0xffff_ffff));
        assert_eq!(word(&["HFMA2.MMA R0, -RZ, RZ, 1.75, 5.9604644775390625e-08"]), Some(0x3f00_0001));
    }

    #[test]
    fn comparisons_of_two_words() {
        let less = |low: &str, high: &str| {
            let code = [
                &format!("MOV R1, {low}"),
                &format!("MOV R2, {high}"),
                "ISETP.LT.U32.AND P0, PT, R1, 0x7f0, PT",
                "ISETP.LT.U32.AND.EX P0, PT, R2, RZ, PT, P0",
            ];
            after(&code).1
        };
        let found = [less("0x7ef", "RZ"), less("0x7f0", "RZ"), less("0x0", "0x1"), less("R9", "0x1")];
        assert_eq!(found, [Some(true), Some(false), Some(false), None]);
        let select = ["ISETP.GT.AND P0, PT, RZ, -0x1, PT", "SEL R0, RZ, 0x7, !P0"];
        assert_eq!(after(&select), (Some(7), Some(true)));
        assert_eq!(after(&["MOV R1, 0x5", "VIMNMX R0, R1, 0x3, PT"]).0, Some(3));
    }

    #[test]
    fn logic_needs_only_what_matters() {
        assert_eq!(word(&["LOP3.LUT R0, R1, 0xff, RZ, 0xc0, !PT"]), None);
        assert_eq!(word(&["LOP3.LUT R0, R1, RZ, RZ, 0xc0, !PT"]), Some(0));
        assert_eq!(word(&["S2R R1, SR_CTAID.X", "LOP3.LUT R0, R1, 0x1f, RZ, 0xc0, !PT"]), Some(10));
        assert_eq!(after(&["PLOP3.LUT P0, PT, PT, PT, P3, 0x80, 0x0"]).1, None);
        assert_eq!(after(&["PLOP3.LUT P0, PT, PT, PT, PT, 0x8, 0x0"]).1, Some(false));
        assert_eq!(word(&["LDC R0, c[0x0][RZ]"]), Some(128));
        assert_eq!(word(&["MOV R0, 0x1", "LDG.E R0, desc[UR4][R2.64]"]), None);
    }
}
