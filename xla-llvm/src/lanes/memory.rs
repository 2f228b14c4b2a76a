//! Loads and stores of lanes: contiguous, masked, gathered, scattered.
#![expect(unsafe_code, reason = "LLVM's address arithmetic is an unsafe call in the bindings")]

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::intrinsics::Intrinsic;
use inkwell::llvm_sys::core::LLVMBuildGEP2;
use inkwell::types::{AsTypeRef, BasicType, BasicTypeEnum};
use inkwell::values::{
    AsValueRef, BasicMetadataValueEnum, BasicValue, BasicValueEnum, CallSiteValue, PointerValue, ValueKind,
};

use super::{Lanes, Scalar};
use crate::emitter::Emitter;
use xla_hlo::{Error, Result};

impl<'ctx> Emitter<'ctx> {
    /// Copies numbers, a vector register at a time, then one by one. Both addresses are aligned to numbers; they are
    /// equal or do not overlap.
    pub fn copy<'e>(&'e self, [from, to]: [PointerValue<'ctx>; 2], scalar: Scalar, count: Lanes<'e, 'ctx>) {
        let width = self.target().lanes(scalar.bits());
        let part = |range, width: u32| {
            self.each(range, i64::from(width), |at| {
                let numbers = self.load_lanes(from, at, scalar, width, None);
                self.store_lanes(numbers, to, at, None);
            });
        };
        let middle = count - count.urem(i64::from(width));
        part([count.int(0), middle], width);
        if width > 1 {
            part([middle, count], 1);
        }
    }

    /// Allocates an uninitialized array of `count` elements for the whole run of the kernel, aligned to 64 bytes, in
    /// the caller's memory of [`Kernel::scratch_bytes`](crate::fused::Kernel::scratch_bytes).
    pub fn scratch_array(&self, scalar: Scalar, count: u64) -> Result<PointerValue<'ctx>> {
        let refused =
            |reason: &dyn std::fmt::Display| Error::internal(format!("scratch memory cannot be allocated: {reason}"));
        let here = self.builder.get_insert_block().ok_or_else(|| refused(&"the emitter has no current function"))?;
        let entry = here.get_parent().and_then(|function| function.get_first_basic_block()).unwrap_or(here);
        match entry.get_first_instruction() {
            Some(first) => self.builder.position_before(&first),
            None => self.builder.position_at_end(entry),
        }
        let count = u32::try_from(count).map_err(|_| refused(&"the array is too large"))?;
        let bytes = u64::from(count) * u64::from(scalar.bits().div_ceil(8));
        let (pointers, number, offset) =
            self.take_scratch(bytes).ok_or_else(|| refused(&"the emitter has no current kernel"))?;
        let base = self.load_pointer(pointers, number)?;
        let offset = self.splat_constant(self.int_type(64).const_int(offset, false).into(), 1);
        let BasicValueEnum::PointerValue(array) = self.element_address(base, offset, Scalar::Int(8)) else {
            return Err(refused(&"its address is not a pointer"));
        };
        self.make_dirty(array, bytes);
        self.builder.position_at_end(here);
        Ok(array)
    }

    /// `getelementptr`: returns the address of element `index` of an array of `scalar` at `base`: a pointer for a
    /// scalar index, a vector of pointers for a vector. The index is signed and may have any integer type.
    pub fn element_address(
        &self,
        base: PointerValue<'ctx>,
        index: Lanes<'_, 'ctx>,
        scalar: Scalar,
    ) -> BasicValueEnum<'ctx> {
        let element = self.lane_type(scalar, 1);
        let mut indices = [index.raw.as_value_ref()];
        // SAFETY: all handles belong to this emitter's context and live as long as it. The builder is positioned in a
        // block, since every emission starts with one. The only index is an integer or a vector of integers. The
        // instruction is not `inbounds`, so it is defined for any index.
        unsafe {
            let address = LLVMBuildGEP2(
                self.builder.as_mut_ptr(),
                element.as_type_ref(),
                base.as_value_ref(),
                indices.as_mut_ptr(),
                1,
                c"".as_ptr(),
            );
            BasicValueEnum::new(address)
        }
    }

    /// Returns the address `bytes` bytes after another one.
    pub fn byte_address(&self, base: PointerValue<'ctx>, bytes: Lanes<'_, 'ctx>) -> Result<PointerValue<'ctx>> {
        match self.element_address(base, bytes, Scalar::Int(8)) {
            BasicValueEnum::PointerValue(address) => Ok(address),
            _ => Err(Error::internal("an address is not a pointer")),
        }
    }

    /// Loads pointer number `index` of an array of pointers.
    pub fn load_pointer(&self, array: PointerValue<'ctx>, index: usize) -> Result<PointerValue<'ctx>> {
        let at = self.int_type(64).const_int(index as u64 * u64::from(self.target().pointer_bytes()), false);
        self.load_pointer_at(array, self.splat_constant(at.into(), 1))
    }

    /// Loads the pointer at this number of bytes in an array of pointers.
    pub(crate) fn load_pointer_at(
        &self,
        array: PointerValue<'ctx>,
        bytes: Lanes<'_, 'ctx>,
    ) -> Result<PointerValue<'ctx>> {
        let pointer = self.context.ptr_type(inkwell::AddressSpace::default());
        let address = self.byte_address(array, bytes)?;
        match self.record(self.builder.build_load(pointer, address, "")) {
            Some(BasicValueEnum::PointerValue(pointer)) => Ok(pointer),
            _ => Err(Error::internal("LLVM cannot load a pointer of an array")),
        }
    }

    /// Loads `width` consecutive elements of `base` from element `index` on; the address is aligned to one element.
    ///
    /// With a mask, lanes that are not set are not read, and are zero (or [dirt](crate::emitter::EmitOptions::dirt)).
    pub fn load_lanes<'e>(
        &'e self,
        base: PointerValue<'ctx>,
        index: Lanes<'_, 'ctx>,
        scalar: Scalar,
        width: u32,
        mask: Option<Lanes<'e, 'ctx>>,
    ) -> Lanes<'e, 'ctx> {
        let lanes = self.lane_type(scalar, width);
        if let Some(runs) = mask.and_then(Lanes::constant_runs) {
            let none = self.left_out(scalar, width);
            return runs.into_iter().fold(none, |loaded, (first, count)| {
                let run = self.load_lanes(base, index + i64::from(first), scalar, count, None);
                loaded.with_run(first, run)
            });
        }
        let address = self.element_address(base, index, scalar);
        let loaded = match (mask, address) {
            (Some(mask), _) => self.masked_load("llvm.masked.load", address, lanes, scalar, mask),
            (None, BasicValueEnum::PointerValue(pointer)) => self.plain_load(pointer, lanes, alignment(scalar)),
            (None, _) => None,
        };
        loaded.unwrap_or(Lanes::new(self, lanes.const_zero()))
    }

    /// `llvm.prefetch`: prefetches the cache line at a byte offset from an address, which need not be in any array. No
    /// effect on processors without such an instruction.
    pub(crate) fn prefetch(&self, address: BasicValueEnum<'ctx>, bytes: i64) {
        let BasicValueEnum::PointerValue(base) = address else { return };
        let bytes = self.lanes(self.int_type(64).const_int(bytes as u64, true));
        let address = self.element_address(base, bytes, Scalar::Int(8));
        let number = |n: u64| self.int_type(32).const_int(n, false).into();
        // Operands: prefetch for read, into the L2 cache, of the data cache.
        let [read, level, data] = [0, 2, 1].map(number);
        self.intrinsic("llvm.prefetch", &[address.get_type()], &[address, read, level, data]);
    }

    /// Loads `width` consecutive elements without a mask; the address must be a multiple of the size of all lanes,
    /// which is a power of two. See [`load_lanes`](Self::load_lanes).
    pub fn load_aligned_lanes<'e>(
        &'e self,
        base: PointerValue<'ctx>,
        index: Lanes<'_, 'ctx>,
        scalar: Scalar,
        width: u32,
    ) -> Lanes<'e, 'ctx> {
        let lanes = self.lane_type(scalar, width);
        let loaded = match self.element_address(base, index, scalar) {
            BasicValueEnum::PointerValue(pointer) => self.plain_load(pointer, lanes, width * alignment(scalar)),
            _ => None,
        };
        loaded.unwrap_or(Lanes::new(self, lanes.const_zero()))
    }

    /// Stores lanes without a mask; the address must be a multiple of the size of all lanes, which is a power of two.
    /// See [`store_lanes`](Self::store_lanes).
    pub fn store_aligned_lanes(&self, value: Lanes<'_, 'ctx>, base: PointerValue<'ctx>, index: Lanes<'_, 'ctx>) {
        let scalar = value.scalar();
        if let BasicValueEnum::PointerValue(pointer) = self.element_address(base, index, scalar) {
            self.plain_store(pointer, value, value.width() * alignment(scalar));
        }
    }

    /// `llvm.masked.gather`: loads the elements of `base` at `indices`, one per lane. With a mask, lanes that are not
    /// set are not read, and are zero (or [dirt](crate::emitter::EmitOptions::dirt)).
    pub fn gather_lanes<'e>(
        &'e self,
        base: PointerValue<'ctx>,
        indices: Lanes<'e, 'ctx>,
        scalar: Scalar,
        mask: Option<Lanes<'e, 'ctx>>,
    ) -> Lanes<'e, 'ctx> {
        let width = indices.width();
        if width == 1 {
            return self.load_lanes(base, indices, scalar, 1, mask);
        }
        if let Some(&[(lane, 1)]) = mask.and_then(Lanes::constant_runs).as_deref() {
            let element = self.load_lanes(base, indices.lane(lane), scalar, 1, None);
            return self.left_out(scalar, width).with_run(lane, element);
        }
        let lanes = self.lane_type(scalar, width);
        let addresses = self.element_address(base, indices, scalar);
        let mask = mask.unwrap_or(indices.mask(true));
        let loaded = self.masked_load("llvm.masked.gather", addresses, lanes, scalar, mask);
        loaded.unwrap_or(Lanes::new(self, lanes.const_zero()))
    }

    /// Stores lanes to consecutive elements of `base` from element `index` on; with a mask, only the lanes that are
    /// set.
    pub fn store_lanes(
        &self,
        value: Lanes<'_, 'ctx>,
        base: PointerValue<'ctx>,
        index: Lanes<'_, 'ctx>,
        mask: Option<Lanes<'_, 'ctx>>,
    ) {
        let scalar = value.scalar();
        if let Some(runs) = mask.and_then(Lanes::constant_runs) {
            for (first, count) in runs {
                self.store_lanes(value.slice(first, count), base, index + i64::from(first), None);
            }
            return;
        }
        let address = self.element_address(base, index, scalar);
        match (mask, address) {
            (Some(mask), _) => self.masked_store("llvm.masked.store", value, address, self.unknown(value, mask)),
            (None, BasicValueEnum::PointerValue(pointer)) => self.plain_store(pointer, value, alignment(scalar)),
            (None, _) => self.fail(Error::internal("a contiguous store has a vector index")),
        }
    }

    /// `llvm.masked.scatter`: stores each lane to the element of `base` at its index; with a mask, only the lanes that
    /// are set. If several lanes have one index, the last one wins.
    pub fn scatter_lanes(
        &self,
        value: Lanes<'_, 'ctx>,
        base: PointerValue<'ctx>,
        indices: Lanes<'_, 'ctx>,
        mask: Option<Lanes<'_, 'ctx>>,
    ) {
        if value.width() == 1 {
            return self.store_lanes(value, base, indices, mask);
        }
        if let Some(&[(lane, 1)]) = mask.and_then(Lanes::constant_runs).as_deref() {
            return self.store_lanes(value.lane(lane), base, indices.lane(lane), None);
        }
        let addresses = self.element_address(base, indices, value.scalar());
        self.masked_store("llvm.masked.scatter", value, addresses, mask.unwrap_or(value.mask(true)));
    }

    fn plain_load<'e>(
        &'e self,
        address: PointerValue<'ctx>,
        lanes: BasicTypeEnum<'ctx>,
        alignment: u32,
    ) -> Option<Lanes<'e, 'ctx>> {
        let value = self.record(self.builder.build_load(lanes, address, ""))?;
        if let Some(load) = value.as_instruction_value()
            && load.set_alignment(alignment).is_err()
        {
            self.fail(Error::internal(format!("LLVM refuses a load's alignment of {alignment}")));
        }
        Some(Lanes::new(self, value))
    }

    fn plain_store(&self, address: PointerValue<'ctx>, value: Lanes<'_, 'ctx>, alignment: u32) {
        if let Some(store) = self.record(self.builder.build_store(address, value.raw))
            && store.set_alignment(alignment).is_err()
        {
            self.fail(Error::internal(format!("LLVM refuses a store's alignment of {alignment}")));
        }
    }

    /// Returns the value of the lanes that a masked load does not read.
    fn left_out(&self, scalar: Scalar, width: u32) -> Lanes<'_, 'ctx> {
        let byte = u64::from(self.options().dirt.unwrap_or_default());
        let bits = self.int_type(scalar.bits()).const_int(byte * 0x0101_0101_0101_0101, false);
        let lanes = self.splat_constant(bits.into(), width);
        match scalar {
            Scalar::Int(_) => lanes,
            float => lanes.cast_bits(float),
        }
    }

    /// Emits a masked load. Scalars are loaded as one-lane vectors, which the code generator turns into a branch.
    fn masked_load<'e>(
        &'e self,
        name: &str,
        address: BasicValueEnum<'ctx>,
        lanes: BasicTypeEnum<'ctx>,
        scalar: Scalar,
        mask: Lanes<'e, 'ctx>,
    ) -> Option<Lanes<'e, 'ctx>> {
        let vector = self.vector_type(lanes);
        let mask = self.as_vector(mask.raw)?;
        let width = Lanes::new(self, mask).width();
        let left_out = self.as_vector(self.left_out(scalar, width).raw)?;
        let call = self.access(name, &[vector, address.get_type()], &[address, mask, left_out], 0, scalar)?;
        let ValueKind::Basic(value) = call.try_as_basic_value() else {
            return None;
        };
        if vector == lanes {
            return Some(Lanes::new(self, value));
        }
        let loaded = self.record(self.builder.build_bit_cast(value, lanes, ""))?;
        Some(Lanes::new(self, loaded))
    }

    fn masked_store(&self, name: &str, value: Lanes<'_, 'ctx>, address: BasicValueEnum<'ctx>, mask: Lanes<'_, 'ctx>) {
        let (Some(stored), Some(mask)) = (self.as_vector(value.raw), self.as_vector(mask.raw)) else {
            return;
        };
        let types = [stored.get_type(), address.get_type()];
        self.access(name, &types, &[stored, address, mask], 1, value.scalar());
    }

    /// Hides the mask of a store from LLVM if LLVM must not detect that a single lane is set.
    ///
    /// With AVX-512, LLVM 22 combines a masked store of truncated integers into a truncating masked store. If the mask
    /// is known to have one lane, that becomes a scalar store of the element as it was *before* the truncation, up to
    /// seven bytes too wide. Constant masks never get here (see [`Lanes::constant_runs`]), but the code generator folds
    /// further expressions, such as minima.
    fn unknown<'e>(&'e self, value: Lanes<'_, 'ctx>, mask: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        match value.scalar() {
            Scalar::Int(bits) if bits < 64 && value.width() > 1 && self.target().abilities().avx512 => mask.opaque(),
            Scalar::Int(_) | Scalar::F16 | Scalar::F32 | Scalar::F64 => mask,
        }
    }

    /// Calls a masked memory intrinsic and sets the alignment attribute of its address parameter.
    fn access(
        &self,
        name: &str,
        types: &[BasicTypeEnum<'ctx>],
        arguments: &[BasicValueEnum<'ctx>],
        address_parameter: u32,
        scalar: Scalar,
    ) -> Option<CallSiteValue<'ctx>> {
        let declaration = Intrinsic::find(name).and_then(|found| found.get_declaration(&self.module, types));
        let Some(declaration) = declaration else {
            self.fail(Error::internal(format!("LLVM has no intrinsic `{name}` for these types")));
            return None;
        };
        let arguments: Vec<BasicMetadataValueEnum<'ctx>> = arguments.iter().map(|&a| a.into()).collect();
        let call = self.record(self.builder.build_call(declaration, &arguments, ""))?;
        let kind = Attribute::get_named_enum_kind_id("align");
        let attribute = self.context.create_enum_attribute(kind, alignment(scalar).into());
        call.add_attribute(AttributeLoc::Param(address_parameter), attribute);
        Some(call)
    }

    fn vector_type(&self, lanes: BasicTypeEnum<'ctx>) -> BasicTypeEnum<'ctx> {
        match lanes {
            BasicTypeEnum::IntType(int) => int.vec_type(1).as_basic_type_enum(),
            BasicTypeEnum::FloatType(float) => float.vec_type(1).as_basic_type_enum(),
            other => other,
        }
    }

    /// Converts a scalar to a vector of one lane; returns vectors unchanged.
    pub(super) fn as_vector(&self, value: BasicValueEnum<'ctx>) -> Option<BasicValueEnum<'ctx>> {
        match value {
            BasicValueEnum::VectorValue(_) => Some(value),
            scalar => self.record(self.builder.build_bit_cast(scalar, self.vector_type(scalar.get_type()), "")),
        }
    }
}

/// Returns the alignment in bytes: the size of one element, for any width of the access.
fn alignment(scalar: Scalar) -> u32 {
    scalar.bits().div_ceil(8)
}
