//! Decoder of warp group instructions: `wgmma` and `setmaxnreg`.

use super::decoder::{Decoder, Result};
use crate::code::{Collective, LeftFactor, Op, Product, Slots, Type, TypeKind, WarpGroup};
use crate::ptx::Operand;

impl<'a> Decoder<'a> {
    pub(super) fn warp_group(&mut self, opcode: &str, operands: &[Operand<'a>]) -> Result<()> {
        self.check_target(opcode, true)?;
        let parts: Vec<&str> = opcode.split('.').skip(1).collect();
        let action = match (&parts[..], operands) {
            (["fence", "sync", "aligned"], []) => WarpGroup::Fence,
            (["commit_group", "sync", "aligned"], []) => WarpGroup::Commit,
            (["wait_group", "sync", "aligned"], [Operand::Integer(pending)]) if *pending < 8 => {
                WarpGroup::Wait(*pending as u32)
            }
            (["mma_async", "sync", "aligned", shape, "f32", a, b], _) if a == b => {
                WarpGroup::Multiply(self.product(opcode, shape, a, operands)?)
            }
            _ => return self.unknown(opcode),
        };
        self.kernel.is_asynchronous = true;
        self.kernel.multiplies = true;
        self.collective(Collective::WarpGroup(action));
        Ok(())
    }

    /// `setmaxnreg.dec.sync.aligned.u32 24`: no effect, since the simulator does not limit registers.
    pub(super) fn registers(&mut self, opcode: &str, count: u64) -> Result<()> {
        self.check_target(opcode, true)?;
        let is_known = matches!(opcode, "setmaxnreg.inc.sync.aligned.u32" | "setmaxnreg.dec.sync.aligned.u32");
        if !is_known || !(24..=256).contains(&count) || !count.is_multiple_of(8) {
            return self.unknown(opcode);
        }
        self.push(Op::Nothing);
        Ok(())
    }

    fn product(&mut self, opcode: &str, shape: &str, factors: &str, operands: &[Operand<'a>]) -> Result<Product> {
        let factors = self.ty(factors)?;
        let Some(columns) = columns(shape, factors) else { return self.unknown(opcode) };
        let [Operand::Vector(d), a, b, adds, scales @ ..] = operands else { return self.unknown(opcode) };
        let [Operand::Integer(scale_a), Operand::Integer(scale_b), transposed @ ..] = scales else {
            return self.unknown(opcode);
        };
        let in_registers = matches!(a, Operand::Vector(_));
        let is_short = factors.bits == 16;
        let transposed = match (transposed, in_registers) {
            ([], _) if !is_short => [false; 2],
            ([Operand::Integer(a @ 0..=1), Operand::Integer(b @ 0..=1)], false) if is_short => [*a == 1, *b == 1],
            ([Operand::Integer(b @ 0..=1)], true) if is_short => [false, *b == 1],
            _ => return self.unknown(opcode),
        };
        const MINUS: u64 = u64::MAX;
        let (1 | MINUS, 1 | MINUS, true) = (*scale_a, *scale_b, d.len() == columns / 2) else {
            return self.unknown(opcode);
        };
        let d = d.iter().map(|d| self.result(d)).collect::<Result<Vec<_>>>()?;
        let a = match a {
            Operand::Vector(a) if a.len() == 4 => LeftFactor::Registers(self.words(a)?),
            Operand::Vector(_) => return self.unknown(opcode),
            a => LeftFactor::Memory(self.value(a, self.ty("b64")?)?),
        };
        let b = self.value(b, self.ty("b64")?)?;
        let adds = self.predicate(adds)?;
        let d = self.slots(&d);
        Ok(Product { columns, factors, d, a, b, adds, negates: scale_a != scale_b, transposed })
    }

    fn words(&mut self, operands: &[Operand<'a>]) -> Result<Slots> {
        let word = self.ty("b32")?;
        let slots = operands.iter().map(|operand| self.value(operand, word)).collect::<Result<Vec<_>>>()?;
        Ok(self.slots(&slots))
    }
}

/// Returns the columns `N` of a shape that is valid for a type of A and B.
fn columns(shape: &str, factors: Type) -> Option<usize> {
    let depth = match (factors.kind, factors.bits, factors.count) {
        (TypeKind::Float | TypeKind::Brain, 16, 1) => "k16",
        (TypeKind::Tensor, ..) => "k8",
        _ => return None,
    };
    let columns = shape.strip_prefix("m64n")?.strip_suffix(depth)?.parse().ok()?;
    (columns % 8 == 0 && (8..=256).contains(&columns)).then_some(columns)
}
