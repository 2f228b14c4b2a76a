//! Decoder of `mbarrier`, `cp.async.bulk.tensor` and proxy fences.

use super::decoder::{Decoder, Result};
use crate::code::{Address, Op, Phase, Request, Slot};
use crate::ptx::Operand;

impl<'a> Decoder<'a> {
    fn request(&mut self, request: Request) {
        let copies = matches!(request, Request::Copy { .. });
        self.push(Op::Request { number: self.kernel.requests.len() as u32, copies });
        self.kernel.requests.push(request);
        self.kernel.waits = true;
        self.kernel.is_asynchronous = true;
    }

    /// Returns the address of a shared-memory operand such as `[%r1+8]`.
    fn shared(&mut self, opcode: &str, operand: &Operand<'a>) -> Result<Address> {
        match operand {
            Operand::Address(base, offset) => self.place_of(base, *offset),
            _ => self.unknown(opcode),
        }
    }

    fn place_of(&mut self, base: &Operand<'a>, offset: i64) -> Result<Address> {
        let Ok(offset) = i32::try_from(offset) else { return self.error("the offset has more than 32 bits") };
        let base = match base {
            Operand::Name(name) => self.register(name)?,
            Operand::Integer(address) => self.constant(*address),
            _ => return self.error("an address of this form is not known"),
        };
        Ok(Address { base: self.address(base), offset })
    }

    fn number(&mut self, operand: &Operand<'a>) -> Result<Slot> {
        self.value(operand, self.ty("b32")?)
    }

    /// Decodes `fence.proxy.async` and `fence.mbarrier_init.release.cluster`.
    pub(super) fn proxy_fence(&mut self, opcode: &str) -> Result<()> {
        self.check_target(opcode, false)?;
        match opcode {
            "fence.proxy.async"
            | "fence.proxy.async.shared::cta"
            | "fence.proxy.async.shared::cluster"
            | "fence.proxy.async.global" => self.request(Request::Fence),
            "fence.mbarrier_init.release.cluster" => self.push(Op::Nothing),
            _ => return self.unknown(opcode),
        }
        Ok(())
    }

    /// Decodes `prefetch.tensormap [map]`; other prefetches have no effect.
    pub(super) fn prefetch(&mut self, opcode: &str, operands: &[Operand<'a>]) -> Result<()> {
        match (opcode, operands) {
            ("prefetch.tensormap" | "prefetch.param.tensormap", [Operand::Address(base, offset)]) => {
                self.check_target(opcode, false)?;
                let at = self.place_of(base, *offset)?;
                self.request(Request::Prefetch(at));
            }
            _ => return self.unknown(opcode),
        }
        Ok(())
    }

    /// Decodes `mbarrier` instructions, such as `mbarrier.try_wait.parity.shared::cta.b64 p, [addr], parity`.
    pub(super) fn phase_barrier(&mut self, opcode: &str, operands: &[Operand<'a>]) -> Result<()> {
        self.check_target(opcode, false)?;
        let parts: Vec<&str> = opcode.split('.').skip(1).collect();
        let (mut action, mut is_shared, mut is_known) = (Vec::new(), false, true);
        for part in parts {
            match part {
                "shared" | "shared::cta" => is_shared = true,
                // The defaults, which hold without these modifiers as well.
                "release" | "acquire" | "cta" | "cluster" | "b64" => {}
                "init" | "inval" | "arrive" | "expect_tx" | "try_wait" | "test_wait" | "parity" => action.push(part),
                "relaxed" if opcode.starts_with("mbarrier.expect_tx.") => {}
                _ => is_known = false,
            }
        }
        if !is_shared || !is_known {
            return self.unknown(opcode);
        }
        let request = match (&action[..], operands) {
            (["init"], [at, count]) => {
                Request::Initialize { barrier: self.shared(opcode, at)?, count: self.number(count)? }
            }
            (["inval"], [at]) => Request::Invalidate(self.shared(opcode, at)?),
            (["expect_tx"], [at, bytes]) => {
                Request::Expect { barrier: self.shared(opcode, at)?, bytes: self.number(bytes)? }
            }
            (["arrive", "expect_tx"], [state, at, bytes]) => {
                let (barrier, bytes) = (self.shared(opcode, at)?, self.number(bytes)?);
                Request::Arrive { barrier, count: self.constant(1), bytes, state: self.result(state)? }
            }
            (["arrive"], [state, at, count @ ..]) => {
                let count = match count {
                    [] => self.constant(1),
                    [count] => self.number(count)?,
                    _ => return self.unknown(opcode),
                };
                let (barrier, bytes) = (self.shared(opcode, at)?, self.constant(0));
                Request::Arrive { barrier, count, bytes, state: self.result(state)? }
            }
            // The optional last operand is a hint for the time to suspend.
            (["try_wait" | "test_wait", parity @ ..], [p, at, phase] | [p, at, phase, _]) if parity.len() < 2 => {
                let barrier = self.shared(opcode, at)?;
                let phase = match parity {
                    [] => Phase::Of(self.value(phase, self.ty("b64")?)?),
                    _ => Phase::Parity(self.number(phase)?),
                };
                Request::Wait { barrier, phase, p: self.result(p)? }
            }
            _ => return self.unknown(opcode),
        };
        self.request(request);
        Ok(())
    }

    /// Decodes a bulk copy: `cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [to],
    /// [map, {c0, c1}], [bar]`.
    pub(super) fn bulk_copy(&mut self, opcode: &str, operands: &[Operand<'a>]) -> Result<()> {
        self.check_target(opcode, false)?;
        let parts: Vec<&str> = opcode.split('.').skip(3).collect();
        let ["tensor", rank, "shared::cluster" | "shared::cta", "global", rest @ ..] = &parts[..] else {
            return self.unknown(opcode);
        };
        let rest = rest.strip_prefix(&["tile"]).unwrap_or(rest);
        let is_hinted = match rest {
            ["mbarrier::complete_tx::bytes"] => false,
            ["mbarrier::complete_tx::bytes", "L2::cache_hint"] => true,
            _ => return self.unknown(opcode),
        };
        let (copied, hint) = operands.split_at(operands.len().min(3));
        let ([to, Operand::Tensor(map, coordinates), barrier], true) = (copied, hint.len() == usize::from(is_hinted))
        else {
            return self.unknown(opcode);
        };
        if *rank != format!("{}d", coordinates.len()) || !(1..=5).contains(&coordinates.len()) {
            return self.error(format!("`{opcode}` of {} coordinates", coordinates.len()));
        }
        let (to, barrier) = (self.shared(opcode, to)?, self.shared(opcode, barrier)?);
        let map = self.place_of(map, 0)?;
        let coordinates = coordinates.iter().map(|c| self.number(c)).collect::<Result<Vec<_>>>()?;
        let coordinates = self.slots(&coordinates);
        self.request(Request::Copy { to, map, coordinates, barrier });
        Ok(())
    }
}
