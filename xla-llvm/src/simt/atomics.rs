//! Atomic read-modify-write operations, loads and stores at device scope. All of them are relaxed: they order no other
//! memory access.
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

/// Operation of an atomic update (`atomicrmw`) on the value in memory and the operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Atomic {
    /// Sum; integers wrap around.
    Add,
    /// Bitwise AND.
    And,
    /// Bitwise OR.
    Or,
    /// Bitwise exclusive OR.
    Xor,
    /// Maximum of signed integers.
    Maximum,
    /// Minimum of signed integers.
    Minimum,
    /// Maximum of unsigned integers.
    MaximumUnsigned,
    /// Minimum of unsigned integers.
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
    /// `atomicrmw` (relaxed): updates element `index` of an array with elements of the value's type. The value is one
    /// lane of 32 or 64 bits; floats support only [`Atomic::Add`].
    pub fn atomic_update(
        &self,
        op: Atomic,
        base: PointerValue<'ctx>,
        index: Lanes<'_, 'ctx>,
        value: Lanes<'_, 'ctx>,
    ) -> Result<()> {
        self.atomic_fetch(op, base, index, value).map(|_| ())
    }

    /// `atomicrmw` (relaxed): updates an element like [`atomic_update`](Self::atomic_update), and returns its old
    /// value.
    pub fn atomic_fetch<'e>(
        &'e self,
        op: Atomic,
        base: PointerValue<'ctx>,
        index: Lanes<'_, 'ctx>,
        value: Lanes<'_, 'ctx>,
    ) -> Result<Lanes<'e, 'ctx>> {
        if value.width() != 1 || (value.is_float() && op != Atomic::Add) {
            return Err(Error::internal(format!(
                "atomic {op:?} of {} lanes of {:?} is not available",
                value.width(),
                value.scalar()
            )));
        }
        let address = self.atomic_address(base, index, value.scalar())?;
        // SAFETY: all handles belong to this emitter's context and live as long as it does; the builder is positioned
        // in a block (the address was built there); the operation is valid for the value's type, as tested above, and
        // the ordering is valid for `atomicrmw`. The result is a value of that type.
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

    /// `load atomic` (relaxed): reads element `index` of an array that other threads may store to concurrently. The
    /// read does not tear and orders no other memory access. The element is an integer of 32 or 64 bits.
    pub fn atomic_load<'e>(
        &'e self,
        base: PointerValue<'ctx>,
        index: Lanes<'_, 'ctx>,
        scalar: Scalar,
    ) -> Result<Lanes<'e, 'ctx>> {
        let address = self.atomic_address(base, index, scalar)?;
        let loaded = self.record(self.builder.build_load(self.lane_type(scalar, 1), address, ""));
        let loaded = loaded.ok_or_else(|| Error::internal("LLVM cannot emit an atomic load"))?;
        self.make_atomic(loaded.as_value_ref(), scalar);
        Ok(self.lanes(loaded))
    }

    /// `store atomic` (relaxed): writes an element that other threads may load or store concurrently, as with
    /// [`atomic_load`](Self::atomic_load).
    pub fn atomic_store(&self, base: PointerValue<'ctx>, index: Lanes<'_, 'ctx>, value: Lanes<'_, 'ctx>) -> Result<()> {
        let address = self.atomic_address(base, index, value.scalar())?;
        let stored = self.record(self.builder.build_store(address, value.raw()));
        let stored = stored.ok_or_else(|| Error::internal("LLVM cannot emit an atomic store"))?;
        self.make_atomic(stored.as_value_ref(), value.scalar());
        Ok(())
    }

    /// Makes a load or store of one element atomic (relaxed, device scope).
    fn make_atomic(&self, access: LLVMValueRef, scalar: Scalar) {
        // SAFETY: the access is a load or a store of an integer, built with this emitter's builder and alive as long as
        // its module; both may be atomic in any scope of this context, once they are aligned to their size.
        unsafe {
            LLVMSetAlignment(access, scalar.bits().div_ceil(8));
            LLVMSetOrdering(access, AtomicOrdering::Monotonic.into());
            LLVMSetAtomicSyncScopeID(access, self.device_scope());
        }
    }

    /// `cmpxchg` (relaxed): stores `new` to element `index` of an array of integers if it still holds `expected`.
    /// Returns the old value and whether the store took place. The values are one lane of 8, 16, 32 or 64 bits.
    pub fn compare_exchange<'e>(
        &'e self,
        base: PointerValue<'ctx>,
        index: Lanes<'_, 'ctx>,
        expected: Lanes<'e, 'ctx>,
        new: Lanes<'e, 'ctx>,
    ) -> Result<[Lanes<'e, 'ctx>; 2]> {
        let scalar = expected.scalar();
        if !expected.agrees(new) || expected.is_float() || expected.width() != 1 {
            return Err(Error::internal(format!("compare-and-exchange of {scalar:?} is not available")));
        }
        let address = self.atomic_address(base, index, scalar)?;
        let ordering = AtomicOrdering::Monotonic;
        // SAFETY: all handles belong to this emitter's context and live as long as it does, and the builder is
        // positioned in a block, as in `atomic_fetch`; both values are integers of one type, and the result of
        // `cmpxchg` is a structure.
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
            _ => Err(Error::internal("LLVM cannot extract the results of a compare-and-exchange")),
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
            _ => Err(Error::internal("atomic operation has a vector of addresses")),
        }
    }

    /// Synchronization scope of all atomic accesses: the threads of this device.
    fn device_scope(&self) -> u32 {
        const NAME: &str = "device";
        // SAFETY: the context lives as long as this emitter; the name is passed with its length.
        unsafe { LLVMGetSyncScopeID(self.context.raw(), NAME.as_ptr().cast(), NAME.len()) }
    }
}
