//! Updates of memory that several threads may do at once, none of which is lost. Their order is open.
#![expect(
    unsafe_code,
    reason = "the bindings build no atomic updates of floats, and none for the threads of one device"
)]

use inkwell::AtomicOrdering;
use inkwell::llvm_sys::LLVMAtomicRMWBinOp;
use inkwell::llvm_sys::core::{
    LLVMBuildAtomicCmpXchgSyncScope, LLVMBuildAtomicRMWSyncScope, LLVMGetSyncScopeID, LLVMSetAlignment,
    LLVMSetAtomicSyncScopeID, LLVMSetOrdering,
};
use inkwell::llvm_sys::prelude::LLVMValueRef;
use inkwell::values::{AsValueRef, BasicValueEnum, PointerValue, StructValue};
use xla_hlo::{Error, Result};

use crate::emitter::Emitter;
use crate::lanes::{Lanes, Scalar};

/// Operation of an update on the value in memory and the one given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomic {
    /// The sum, of integers modulo their size.
    Add,
    /// The bits of both.
    And,
    /// The bits of either.
    Or,
    /// The bits of one alone.
    Xor,
    /// The greater, as signed integers.
    Maximum,
    /// The lesser, as signed integers.
    Minimum,
    /// The greater, as unsigned integers.
    MaximumUnsigned,
    /// The lesser, as unsigned integers.
    MinimumUnsigned,
}

impl Atomic {
    fn operation(self, is_float: bool) -> LLVMAtomicRMWBinOp {
        match self {
            Atomic::Add if is_float => LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpFAdd,
            Atomic::Add => LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpAdd,
            Atomic::And => LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpAnd,
            Atomic::Or => LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpOr,
            Atomic::Xor => LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpXor,
            Atomic::Maximum => LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpMax,
            Atomic::Minimum => LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpMin,
            Atomic::MaximumUnsigned => LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpUMax,
            Atomic::MinimumUnsigned => LLVMAtomicRMWBinOp::LLVMAtomicRMWBinOpUMin,
        }
    }
}

impl<'ctx> Emitter<'ctx> {
    /// Updates element `index` of an array of the value's type: one lane of 32 or 64 bits, floats with [`Atomic::Add`]
    /// alone.
    pub fn atomic_update(
        &self,
        op: Atomic,
        base: PointerValue<'ctx>,
        index: Lanes<'_, 'ctx>,
        value: Lanes<'_, 'ctx>,
    ) -> Result<()> {
        self.atomic_fetch(op, base, index, value).map(|_| ())
    }

    /// As [`atomic_update`](Self::atomic_update); returns what the element held before.
    pub fn atomic_fetch<'e>(
        &'e self,
        op: Atomic,
        base: PointerValue<'ctx>,
        index: Lanes<'_, 'ctx>,
        value: Lanes<'_, 'ctx>,
    ) -> Result<Lanes<'e, 'ctx>> {
        if value.width() != 1 || (value.is_float() && op != Atomic::Add) {
            return Err(Error::internal(format!("no atomic {op:?} of {:?}", value.scalar())));
        }
        let address = self.atomic_address(base, index, value.scalar())?;
        // SAFETY: all handles belong to this emitter's context and are alive as long as it; the builder is positioned
        // in a block (the address was built there); the operation is one of the value's type, as tested above, and the
        // ordering one that updates have. The result is a value of that type.
        let before = unsafe {
            let update = LLVMBuildAtomicRMWSyncScope(
                self.builder.as_mut_ptr(),
                op.operation(value.is_float()),
                address.as_value_ref(),
                value.raw().as_value_ref(),
                AtomicOrdering::Monotonic.into(),
                self.device_scope(),
            );
            LLVMSetAlignment(update, value.scalar().bits().div_ceil(8));
            BasicValueEnum::new(update)
        };
        Ok(self.lanes(before))
    }

    /// Element `index` of an array that other threads may store to at the same time: whole, and nothing is said of
    /// other memory. Integers of 32 or 64 bits.
    pub fn atomic_load<'e>(
        &'e self,
        base: PointerValue<'ctx>,
        index: Lanes<'_, 'ctx>,
        scalar: Scalar,
    ) -> Result<Lanes<'e, 'ctx>> {
        let address = self.atomic_address(base, index, scalar)?;
        let loaded = self.record(self.builder.build_load(self.lane_type(scalar, 1), address, ""));
        let loaded = loaded.ok_or_else(|| Error::internal("an element could not be loaded"))?;
        self.make_atomic(loaded.as_value_ref(), scalar);
        Ok(self.lanes(loaded))
    }

    /// Stores an element that other threads may load or store at the same time, as [`atomic_load`](Self::atomic_load)
    /// does.
    pub fn atomic_store(&self, base: PointerValue<'ctx>, index: Lanes<'_, 'ctx>, value: Lanes<'_, 'ctx>) -> Result<()> {
        let address = self.atomic_address(base, index, value.scalar())?;
        let stored = self.record(self.builder.build_store(address, value.raw()));
        let stored = stored.ok_or_else(|| Error::internal("an element could not be stored"))?;
        self.make_atomic(stored.as_value_ref(), value.scalar());
        Ok(())
    }

    /// Makes an access of memory, a load or a store of one element, one that threads of the device may do at once.
    fn make_atomic(&self, access: LLVMValueRef, scalar: Scalar) {
        // SAFETY: the access is a load or a store of an integer, built with this emitter's builder and alive as long as
        // its module; both may be atomic in any scope of this context, once they are aligned to their size.
        unsafe {
            LLVMSetAlignment(access, scalar.bits().div_ceil(8));
            LLVMSetOrdering(access, AtomicOrdering::Monotonic.into());
            LLVMSetAtomicSyncScopeID(access, self.device_scope());
        }
    }

    /// Stores `new` to element `index` of an array of such integers where it still holds `expected`; returns what it
    /// held, and whether that was so. One lane of 8, 16, 32 or 64 bits.
    pub fn compare_exchange<'e>(
        &'e self,
        base: PointerValue<'ctx>,
        index: Lanes<'_, 'ctx>,
        expected: Lanes<'e, 'ctx>,
        new: Lanes<'e, 'ctx>,
    ) -> Result<[Lanes<'e, 'ctx>; 2]> {
        let scalar = expected.scalar();
        if !expected.agrees(new) || expected.is_float() || expected.width() != 1 {
            return Err(Error::internal(format!("no exchange of {scalar:?}")));
        }
        let address = self.atomic_address(base, index, scalar)?;
        let ordering = AtomicOrdering::Monotonic;
        // SAFETY: as above; both values are integers of one type, and the result of an exchange is a structure.
        let pair = unsafe {
            let pair = LLVMBuildAtomicCmpXchgSyncScope(
                self.builder.as_mut_ptr(),
                address.as_value_ref(),
                expected.raw().as_value_ref(),
                new.raw().as_value_ref(),
                ordering.into(),
                ordering.into(),
                self.device_scope(),
            );
            LLVMSetAlignment(pair, scalar.bits().div_ceil(8));
            StructValue::new(pair)
        };
        let field = |i| self.record(self.builder.build_extract_value(pair, i, ""));
        match (field(0), field(1)) {
            (Some(held), Some(done)) => Ok([self.lanes(held), self.lanes(done)]),
            _ => Err(Error::internal("an exchange without its results")),
        }
    }

    fn atomic_address(
        &self,
        base: PointerValue<'ctx>,
        index: Lanes<'_, 'ctx>,
        scalar: Scalar,
    ) -> Result<PointerValue<'ctx>> {
        match self.element_address(base, index, scalar) {
            BasicValueEnum::PointerValue(address) => Ok(address),
            _ => Err(Error::internal("an atomic update of several addresses")),
        }
    }

    /// The threads that see updates whole: those of the device, no others.
    fn device_scope(&self) -> u32 {
        const NAME: &str = "device";
        // SAFETY: the context lives as long as this emitter; the name is given with its length.
        unsafe { LLVMGetSyncScopeID(self.context.raw(), NAME.as_ptr().cast(), NAME.len()) }
    }
}
