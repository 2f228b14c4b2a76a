//! TMA copies of boxes of an array into shared memory (`cp.async.bulk.tensor` of the PTX ISA), each started by one
//! thread, and the kernel parameters for the tensor maps that describe the arrays. On the host a copy is synchronous.

use std::ops::Range;

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::values::{BasicValueEnum, FunctionValue, PointerValue};
use xla_hlo::{Error, Result};

use super::{Mbarriers, Place, Swizzle, TensorMap};
use crate::emitter::Emitter;
use crate::lanes::{Lanes, Scalar};
use crate::target::Simt;

/// Size in bytes of an encoded tensor map, and required alignment of its address.
const MAP_BYTES: u32 = 128;
const ENCODED_ALIGNMENT: u32 = 64;

/// Source array of TMA copies.
#[derive(Clone, Debug)]
pub struct TmaSource<'ctx> {
    map: TensorMap,
    /// Kernel parameter with the tensor map on a GPU; the array itself on the host.
    pointer: PointerValue<'ctx>,
}

/// mbarrier that counts the bytes of a TMA copy.
#[derive(Clone, Copy)]
pub struct Arrival<'e, 'ctx> {
    /// Array of barriers.
    pub barriers: Mbarriers<'ctx>,
    /// Index of the barrier in the array.
    pub number: Lanes<'e, 'ctx>,
}

impl Swizzle {
    /// Returns the swizzled byte offset in shared memory of a byte whose offset without the swizzle is `at`. Offsets
    /// are relative to the beginning of shared memory or to any multiple of 1024 bytes.
    pub(crate) fn place<'e, 'ctx>(self, at: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        // Chunks are 16 bytes; the row's bits are three positions above the chunk's.
        let bits = (self.bytes() - 1) as i64 & !15;
        at ^ (at.lshr(3) & bits)
    }
}

impl<'ctx> Emitter<'ctx> {
    /// Returns a TMA source for a map and the address of its array in the kernel.
    pub fn tma_source(&self, map: TensorMap, array: PointerValue<'ctx>) -> Result<TmaSource<'ctx>> {
        let pointer = match self.simt()? {
            Simt::Nvptx => self.tensor_map(map.clone())?,
            Simt::Host => array,
        };
        Ok(TmaSource { map, pointer })
    }

    /// `cp.async.bulk.tensor`: starts a copy of the box whose first element has the coordinates (32-bit integers) to a
    /// place in shared memory whose byte offset is a multiple of 128. The bytes are counted by the mbarrier of
    /// `arrival`.
    pub fn copy_box<'e>(
        &'e self,
        source: &TmaSource<'ctx>,
        to: Place<'e, 'ctx>,
        coordinates: &[Lanes<'e, 'ctx>],
        arrival: Arrival<'e, 'ctx>,
    ) -> Result<()> {
        if coordinates.len() != source.map.extents.len() {
            return Err(Error::internal(format!(
                "TMA box has {} coordinates, but its tensor map has {} dimensions",
                coordinates.len(),
                source.map.extents.len()
            )));
        }
        match self.simt()? {
            Simt::Nvptx => {
                let rank = coordinates.len();
                let places: Vec<String> = (3..3 + rank).map(|number| format!("${number}")).collect();
                let text = format!(
                    "cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], [$1, {{{}}}], [$2];",
                    places.join(", ")
                );
                let barrier = self.element_address(arrival.barriers.array, arrival.number, Scalar::Int(64));
                let mut arguments =
                    vec![self.element_address(to.0, to.1, Scalar::Int(8)), source.pointer.into(), barrier];
                arguments.extend(coordinates.iter().map(|at| at.raw()));
                self.effect(&text, &format!("l,l,l{}", ",r".repeat(rank)), &arguments);
                Ok(())
            }
            Simt::Host => self.copy_box_on_host(source, to, coordinates),
        }
    }

    /// Copies a box element by element. Elements outside the array are zero, as with TMA.
    fn copy_box_on_host<'e>(
        &'e self,
        TmaSource { map, pointer }: &TmaSource<'ctx>,
        (array, to): Place<'e, 'ctx>,
        coordinates: &[Lanes<'e, 'ctx>],
    ) -> Result<()> {
        let long = |value: u64| self.lanes(self.int_type(64).const_int(value, false));
        let bytes = map.element_bytes;
        let scalar = Scalar::Int(8 * bytes);
        let coordinates: Vec<_> = coordinates.iter().map(|at| at.sext(64)).collect();
        let strides = std::iter::once(u64::from(bytes)).chain(map.strides.iter().copied());
        let strides: Vec<_> = strides.map(|stride| (stride / u64::from(bytes)) as i64).collect();
        let elements = map.box_bytes() / u64::from(bytes);
        self.each([long(0), long(elements)], 1, |number| {
            let (mut rest, mut from, mut exists) = (number, long(0), None);
            for (d, &extent) in map.box_extents.iter().enumerate() {
                let at = coordinates[d] + rest.urem(i64::from(extent));
                rest = rest.udiv(i64::from(extent));
                from = from + at * strides[d];
                let inside = at.ult(map.extents[d] as i64);
                exists = Some(exists.map_or(inside, |before: Lanes<'e, 'ctx>| before & inside));
            }
            let value = self.load_lanes(*pointer, from, scalar, 1, exists);
            let place = map.swizzle.place(to.sext(64) + number * i64::from(bytes));
            self.store_lanes(value, array, place.udiv(i64::from(bytes)), None);
        });
        Ok(())
    }

    /// Declares the parameters in a range of a PTX kernel to be tensor maps: 128 constant bytes each
    /// (`__grid_constant__`).
    pub(super) fn are_maps(&self, function: FunctionValue<'ctx>, parameters: Range<usize>) {
        let bytes = self.context.i8_type().array_type(MAP_BYTES);
        let by_value = self.context.create_type_attribute(Attribute::get_named_enum_kind_id("byval"), bytes.into());
        let aligned = Attribute::get_named_enum_kind_id("align");
        let aligned = self.context.create_enum_attribute(aligned, ENCODED_ALIGNMENT.into());
        let constant = self.context.create_string_attribute("nvvm.grid_constant", "");
        for parameter in parameters {
            for attribute in [by_value, aligned, constant] {
                function.add_attribute(AttributeLoc::Param(parameter as u32), attribute);
            }
        }
    }

    /// Assigns a map to the next tensor-map parameter of the current kernel and returns that parameter.
    fn tensor_map(&self, map: TensorMap) -> Result<PointerValue<'ctx>> {
        let number = self.use_map(map)?;
        let function = self.builder.get_insert_block().and_then(|block| block.get_parent());
        let missing = || Error::internal("kernel has no parameter for a tensor map");
        let function = function.ok_or_else(missing)?;
        let first = function.count_params() as usize - self.map_count();
        match function.get_nth_param((first + number) as u32) {
            Some(BasicValueEnum::PointerValue(map)) => Ok(map),
            _ => Err(missing()),
        }
    }
}
