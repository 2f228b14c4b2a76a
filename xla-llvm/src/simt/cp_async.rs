//! Asynchronous copies from device memory into shared memory (`cp.async` of the PTX ISA), and waits for them. On the
//! host a copy is synchronous.

use inkwell::values::{BasicValueEnum, PointerValue};
use xla_hlo::Result;

use crate::emitter::Emitter;
use crate::lanes::{Lanes, Scalar};
use crate::target::Simt;

/// Size in bytes of one asynchronous copy by a thread.
pub const COPY_BYTES: u64 = 16;

/// An array and the index of an element in it.
pub type Place<'e, 'ctx> = (PointerValue<'ctx>, Lanes<'e, 'ctx>);

impl<'ctx> Emitter<'ctx> {
    /// `cp.async.cg.shared.global`: starts a copy of [`COPY_BYTES`] between addresses that are aligned to them. If
    /// `exists` is false, the copy stores zeros and does not access the source. The copy belongs to the thread's next
    /// copy group.
    pub fn copy_async<'e>(
        &'e self,
        to: Place<'e, 'ctx>,
        from: Place<'e, 'ctx>,
        scalar: Scalar,
        exists: Lanes<'e, 'ctx>,
    ) -> Result<()> {
        match self.simt()? {
            Simt::Nvptx => {
                let addresses = [to, from].map(|(base, at)| self.element_address(base, at, scalar));
                let bytes = self.lanes(self.context.i32_type().const_int(COPY_BYTES, false));
                let bytes = exists.select(bytes, bytes.int(0));
                self.intrinsic(
                    "llvm.nvvm.cp.async.cg.shared.global.16.s",
                    &[],
                    &[addresses[0], addresses[1], bytes.raw()],
                );
            }
            Simt::Host => {
                let width = COPY_BYTES as u32 * 8 / scalar.bits();
                let lanes = self.load_lanes(from.0, from.1, scalar, width, Some(exists.splat(width)));
                self.store_aligned_lanes(lanes, to.0, to.1);
            }
        }
        Ok(())
    }

    /// `cp.async.commit_group`: ends the thread's current copy group, which may be empty.
    pub fn end_copy_group(&self) -> Result<()> {
        if self.simt()? == Simt::Nvptx {
            self.intrinsic("llvm.nvvm.cp.async.commit.group", &[], &[]);
        }
        Ok(())
    }

    /// `cp.async.wait_group`: waits until at most the last `pending` copy groups of this thread are in flight. Other
    /// threads see the copied data only after a barrier.
    pub fn wait_for_copies(&self, pending: u64) -> Result<()> {
        if self.simt()? == Simt::Nvptx {
            let pending: BasicValueEnum<'ctx> = self.context.i32_type().const_int(pending, false).into();
            self.intrinsic("llvm.nvvm.cp.async.wait.group", &[], &[pending]);
        }
        Ok(())
    }
}
