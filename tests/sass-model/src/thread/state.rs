//! Known registers and predicates of a thread.

use super::operand::{Bank, Change, Operand, half_bits};

/// A value, unless it depends on data.
pub type Known<T> = Option<T>;

/// Launch dimensions, and the thread to follow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Launch {
    pub blocks: u32,
    pub threads: u32,
    /// Index in its block of the thread to follow.
    pub thread: u32,
}

impl Launch {
    /// Threads of all blocks.
    pub fn all_threads(self) -> f64 {
        f64::from(self.blocks) * f64::from(self.threads)
    }
}

pub struct State {
    launch: Launch,
    registers: [Vec<Known<u32>>; 2],
    predicates: [[Known<bool>; 8]; 2],
}

impl State {
    pub fn new(launch: Launch) -> State {
        State { launch, registers: [vec![None; 256], vec![None; 256]], predicates: [[None; 8]; 2] }
    }

    pub fn word(&self, operand: Option<&Operand>) -> Known<u32> {
        match *operand? {
            Operand::Register(_, None, change) => Some(changed(0, change)),
            Operand::Register(bank, Some(number), change) => {
                self.registers[bank as usize].get(number).copied().flatten().map(|word| changed(word, change))
            }
            Operand::Integer(value) => Some(value as u32),
            Operand::Float(value) => Some((value as f32).to_bits()),
            Operand::Constant(offset) => self.constant(offset),
            Operand::Predicate { .. } | Operand::Other => None,
        }
    }

    /// Word of an addition with carry; the negation of a word has a carry of its own.
    pub fn addend(&self, operand: Option<&Operand>, extended: bool) -> Known<u64> {
        match operand? {
            Operand::Register(bank, number, Change::Negative) if !extended => {
                let plain = Operand::Register(*bank, *number, Change::None);
                self.word(Some(&plain)).map(|word| u64::from(!word) + 1)
            }
            operand => self.word(Some(operand)).map(u64::from),
        }
    }

    /// A pair of registers, or a number of 64 bits.
    pub fn pair(&self, operand: Option<&Operand>) -> Known<u64> {
        match *operand? {
            Operand::Register(bank, Some(number), Change::None) => {
                let half = |number| Operand::Register(bank, Some(number), Change::None);
                let (low, high) = (self.word(Some(&half(number)))?, self.word(Some(&half(number + 1)))?);
                Some(u64::from(high) << 32 | u64::from(low))
            }
            Operand::Register(bank, Some(number), change) => {
                let whole = self.pair(Some(&Operand::Register(bank, Some(number), Change::None)))?;
                Some(if change == Change::Negative { whole.wrapping_neg() } else { !whole })
            }
            Operand::Register(_, None, _) => Some(0),
            Operand::Integer(value) => Some(value as u64),
            _ => None,
        }
    }

    pub fn predicate(&self, operand: Option<&Operand>) -> Known<bool> {
        match *operand? {
            Operand::Predicate { number: None, inverse, .. } => Some(!inverse),
            Operand::Predicate { bank, number: Some(number), inverse } => {
                self.predicates[bank as usize].get(number).copied().flatten().map(|value| value != inverse)
            }
            _ => None,
        }
    }

    pub fn set_word(&mut self, operand: Option<&Operand>, value: Known<u32>) {
        self.set_words(operand, &[value]);
    }

    /// Sets neighbouring registers.
    pub fn set_words(&mut self, operand: Option<&Operand>, values: &[Known<u32>]) {
        if let Some(Operand::Register(bank, Some(number), _)) = operand {
            for (place, value) in values.iter().enumerate() {
                if let Some(register) = self.registers[*bank as usize].get_mut(number + place) {
                    *register = *value;
                }
            }
        }
    }

    pub fn set_predicate(&mut self, operand: Option<&Operand>, value: Known<bool>) {
        if let Some(Operand::Predicate { bank, number: Some(number), .. }) = operand
            && let Some(predicate) = self.predicates[*bank as usize].get_mut(*number)
        {
            *predicate = value;
        }
    }

    /// All predicates of threads become unknown.
    pub fn forget_predicates(&mut self) {
        self.predicates[Bank::Thread as usize] = [None; 8];
    }

    /// Special register of the first thread of a block in the middle of the launch, where arrays seldom begin or end.
    pub fn special(&self, name: &str) -> Known<u32> {
        match name {
            "SR_CTAID.X" => Some((u64::from(self.launch.blocks) * 5 / 8) as u32),
            "SR_TID.X" => Some(self.launch.thread),
            "SR_TID.Y" | "SR_TID.Z" | "SR_CTAID.Y" | "SR_CTAID.Z" | "SR_LANEID" | "SR_CgaCtaId" => Some(0),
            _ => None,
        }
    }

    /// Word of the constant bank before the parameters; only the launch dimensions are known.
    pub fn constant(&self, offset: u64) -> Known<u32> {
        match offset {
            0x0 => Some(self.launch.threads),
            0x4 | 0x8 | 0x10 | 0x14 => Some(1),
            0xc => Some(self.launch.blocks),
            _ => None,
        }
    }
}

fn changed(word: u32, change: Change) -> u32 {
    match change {
        Change::None => word,
        Change::Negative => word.wrapping_neg(),
        Change::Inverse => !word,
    }
}

/// Two 16-bit floats as a word: the high one first.
pub fn halves(high: Option<&Operand>, low: Option<&Operand>) -> Known<u32> {
    let bits = |operand: Option<&Operand>| match *operand? {
        Operand::Float(value) => Some(half_bits(value)),
        Operand::Integer(value) => Some(half_bits(value as f64)),
        _ => None,
    };
    Some(bits(high)? << 16 | bits(low)?)
}
