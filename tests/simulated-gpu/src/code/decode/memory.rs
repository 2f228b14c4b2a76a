//! Decoder of memory instructions: `ld`, `st`, `atom`, `red`, `cvta`.

use super::decoder::{Decoder, Result};
use crate::code::{MemoryOperand, Op, POISON, Run, Type, alu};
use crate::machine::{LOCAL_WINDOW, PARAMETER_WINDOW, SHARED_WINDOW};
use crate::ptx::{Operand, Space};

/// Memory access, parsed from an opcode.
pub(super) struct MemoryAccess {
    space: Space,
    count: usize,
    ty: Type,
    is_strong: bool,
    /// Modifiers that select the operation, such as `add` or `cas`.
    action: Vec<String>,
}

impl MemoryAccess {
    /// Returns a weak access of one element of a space.
    pub(super) fn plain(space: Space, ty: &str) -> Option<MemoryAccess> {
        Some(MemoryAccess { space, count: 1, ty: Type::parse(ty)?, is_strong: false, action: Vec::new() })
    }

    fn parse(opcode: &str) -> Option<MemoryAccess> {
        let mut parts = opcode.split('.').skip(1).collect::<Vec<_>>();
        let mut access = MemoryAccess {
            space: Space::Generic,
            count: 1,
            ty: Type::parse(parts.pop()?)?,
            is_strong: false,
            action: Vec::new(),
        };
        for part in parts {
            match part {
                "global" => access.space = Space::Global,
                "shared" | "shared::cta" => access.space = Space::Shared,
                "local" => access.space = Space::Local,
                "param" => access.space = Space::Param,
                "const" => access.space = Space::Const,
                "v2" => access.count = 2,
                "v4" => access.count = 4,
                "v8" => access.count = 8,
                "volatile" | "relaxed" | "acquire" | "release" | "acq_rel" => access.is_strong = true,
                // Scopes, cache operators, and modifiers without effect on a single device.
                "weak" | "nc" | "cta" | "gpu" | "sys" | "ca" | "cg" | "cs" | "cv" | "wb" | "wt" | "lu" => {}
                hint if hint.starts_with("L1::") || hint.starts_with("L2::") => {}
                action => access.action.push(action.to_owned()),
            }
        }
        // A vector has at most 32 bytes.
        (access.ty.bytes() * access.count as u64 <= 32 && access.ty.bits <= 64).then_some(access)
    }
}

impl<'a> Decoder<'a> {
    pub(super) fn memory(&mut self, opcode: &str, operands: &[Operand<'a>]) -> Result<()> {
        if opcode.starts_with("cvta.") {
            return self.convert_address(opcode, operands);
        }
        let Some(access) = MemoryAccess::parse(opcode) else { return self.unknown(opcode) };
        let name = opcode.split('.').next().unwrap_or_default();
        match (name, operands) {
            ("ld", [d, Operand::Address(base, offset)]) if access.action.is_empty() => {
                self.load(&access, d, base, *offset)
            }
            ("st", [Operand::Address(base, offset), from]) if access.action.is_empty() => {
                self.store(&access, base, *offset, from)
            }
            ("atom", [d, Operand::Address(base, offset), from @ ..]) if access.count == 1 => {
                let d = self.result(d)?;
                self.atomic(opcode, &access, d, (base, *offset), from)
            }
            ("red", [Operand::Address(base, offset), from @ ..]) if access.count == 1 => {
                let d = self.fresh(POISON);
                self.atomic(opcode, &access, d, (base, *offset), from)
            }
            _ => self.unknown(opcode),
        }
    }

    /// Returns the elements of a vector operand, or the scalar operand as one element.
    fn elements<'b>(&self, access: &MemoryAccess, operand: &'b Operand<'a>) -> Result<&'b [Operand<'a>]> {
        let elements = match operand {
            Operand::Vector(elements) => elements.as_slice(),
            other => std::slice::from_ref(other),
        };
        if elements.len() == access.count { Ok(elements) } else { self.error("the vector has another length") }
    }

    fn load(&mut self, access: &MemoryAccess, d: &Operand<'a>, base: &Operand<'a>, offset: i64) -> Result<()> {
        let into = self.elements(access, d)?.iter().map(|d| self.result(d)).collect::<Result<Vec<_>>>()?;
        if let (Space::Param, Operand::Name(name)) = (access.space, base)
            && self.parameter(name).is_none()
            && !name.starts_with('%')
        {
            // Return value of a call.
            return self.move_parameter(into[0], base, offset);
        }
        let place = self.place(access, base, offset)?;
        let into = self.slots(&into);
        self.push(Op::Load { place, into });
        Ok(())
    }

    fn store(&mut self, access: &MemoryAccess, base: &Operand<'a>, offset: i64, from: &Operand<'a>) -> Result<()> {
        let elements = self.elements(access, from)?;
        let from = elements.iter().map(|from| self.value(from, access.ty)).collect::<Result<Vec<_>>>()?;
        if access.space == Space::Param {
            let into = self.result(base)?;
            return self.move_slot(into, from[0], offset);
        }
        if access.space == Space::Const {
            return self.error("constant memory cannot be written");
        }
        let place = self.place(access, base, offset)?;
        let from = self.slots(&from);
        self.push(Op::Store { place, from });
        Ok(())
    }

    fn move_parameter(&mut self, into: super::Slot, from: &Operand<'a>, offset: i64) -> Result<()> {
        let from = self.result(from)?;
        self.move_slot(into, from, offset)
    }

    fn move_slot(&mut self, d: super::Slot, from: super::Slot, offset: i64) -> Result<()> {
        if offset != 0 {
            return self.error("parameters of calls are read and written as a whole");
        }
        self.push(Op::Alu { run: |a, _, _| a, d, abc: [from, 0, 0] });
        Ok(())
    }

    pub(super) fn place(&mut self, access: &MemoryAccess, base: &Operand<'a>, offset: i64) -> Result<MemoryOperand> {
        let bytes = access.ty.bytes() as u8;
        let Ok(offset) = i32::try_from(offset) else { return self.error("the offset has more than 32 bits") };
        let granule = u32::from(bytes).ilog2().min(2);
        let granules = &mut self.kernel.granules;
        match access.space {
            Space::Global | Space::Const => granules.global = granules.global.min(granule),
            Space::Shared => granules.shared = granules.shared.min(granule),
            Space::Generic => {
                granules.global = granules.global.min(granule);
                granules.shared = granules.shared.min(granule);
            }
            Space::Param | Space::Local | Space::Register => {}
        }
        let base = match base {
            Operand::Name(name) => match (access.space, self.parameter(name)) {
                (Space::Param, Some(number)) => {
                    let start = self.kernel.parameters[number].0;
                    self.constant(start as u64)
                }
                (Space::Shared, None) => {
                    let base = self.register(name)?;
                    self.address(base)
                }
                _ => self.register(name)?,
            },
            Operand::Integer(address) => self.constant(*address),
            _ => return self.error("an address of this form is not known"),
        };
        let is_signed = access.ty.is_signed();
        Ok(MemoryOperand { space: access.space, bytes, is_signed, is_strong: access.is_strong, base, offset })
    }

    fn atomic(
        &mut self,
        opcode: &str,
        access: &MemoryAccess,
        d: super::Slot,
        (base, offset): (&Operand<'a>, i64),
        from: &[Operand<'a>],
    ) -> Result<()> {
        let action = access.action.first().map_or("", String::as_str);
        let is_plain = access.action.get(1..).is_some_and(|rest| rest.iter().all(|m| m == "noftz"));
        let run = if is_plain { update(action, access.ty) } else { None };
        let place = self.place(access, base, offset)?;
        let operands = if action == "cas" { 2 } else { 1 };
        let (Some(run), true) = (run, from.len() == operands) else { return self.unknown(opcode) };
        let mut ab = [0; 2];
        for (slot, operand) in ab.iter_mut().zip(from) {
            *slot = self.value(operand, access.ty)?;
        }
        if action == "cas" {
            self.exchanges.push(self.kernel.code.len());
        }
        self.push(Op::Atomic { place, run, d, ab });
        Ok(())
    }

    /// Decodes `cvta.to.global.u64 d, a` and `cvta.global.u64 d, a`. Generic addresses of global memory equal its
    /// addresses.
    fn convert_address(&mut self, opcode: &str, operands: &[Operand<'a>]) -> Result<()> {
        let parts: Vec<&str> = opcode.split('.').skip(1).collect();
        let (to, space) = match parts[..] {
            ["to", space, "u64"] => (true, space),
            [space, "u64"] => (false, space),
            _ => return self.unknown(opcode),
        };
        let window = match space {
            "global" | "const" => 0,
            "shared" | "shared::cta" => SHARED_WINDOW,
            "local" => LOCAL_WINDOW,
            "param" => PARAMETER_WINDOW,
            _ => return self.unknown(opcode),
        };
        let [d, a] = operands else { return self.unknown(opcode) };
        let a = match a {
            Operand::Name(name) => self.address_of(name)?,
            a => self.value(a, self.ty("u64")?)?,
        };
        let window = self.constant(if to { window.wrapping_neg() } else { window });
        let d = self.result(d)?;
        self.push(Op::Alu { run: |a, b, _| a.wrapping_add(b), d, abc: [a, window, 0] });
        Ok(())
    }
}

/// Returns the function from the value in memory, which is its first operand, to the value that an atomic instruction
/// stores.
fn update(action: &str, ty: Type) -> Option<Run> {
    match (action, ty.bits) {
        ("exch", _) => Some(|_, b, _| b),
        ("cas", 16) => Some(|a, b, c| if a as u16 == b as u16 { c } else { a }),
        ("cas", 32) => Some(|a, b, c| if a as u32 == b as u32 { c } else { a }),
        ("cas", 64) => Some(|a, b, c| if a == b { c } else { a }),
        ("inc", 32) => Some(|a, b, _| if a as u32 >= b as u32 { 0 } else { a + 1 }),
        ("dec", 32) => Some(|a, b, _| if a as u32 == 0 || a as u32 > b as u32 { b } else { a - 1 }),
        ("add" | "min" | "max" | "and" | "or" | "xor", _) if ty.count == 1 => {
            let name = ty_name(ty);
            alu::find(&format!("{action}.{name}")).map(|found| found.run)
        }
        _ => None,
    }
}

fn ty_name(ty: Type) -> String {
    let letters = match ty.kind {
        crate::code::TypeKind::Bits => "b",
        crate::code::TypeKind::Unsigned => "u",
        crate::code::TypeKind::Signed => "s",
        crate::code::TypeKind::Float => "f",
        crate::code::TypeKind::Brain => "bf",
        crate::code::TypeKind::Tensor => "tf",
        crate::code::TypeKind::Predicate => "pred",
    };
    format!("{letters}{}", ty.bits)
}
