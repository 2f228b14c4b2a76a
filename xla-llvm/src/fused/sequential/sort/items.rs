//! Items of a sort: integers in scratch memory that represent the elements of a row.

use std::fmt;

use inkwell::values::PointerValue;
use xla_hlo::{ArrayShape, CompId, ElementType, Error, Scalar as Element};

use crate::elemental::{self, Value};
use crate::emitter::Emitter;
use crate::fused::core::element_key::key_lanes;
use crate::fused::emitter::FusedEmitter;
use crate::lanes::{Lanes, Scalar};
use xla_passes::analysis::element_order::Key;

/// Order of the elements of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Ascending order of the keys of one array's elements.
    Key {
        /// Number of the array.
        array: usize,
        /// Mapping of elements to keys.
        key: Key,
    },
    /// Order by a computation that returns whether its first element of each array precedes the second one.
    Comparator(CompId),
}

/// Meaning of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ItemKind {
    /// Bits of the element of the only array.
    Element {
        /// Bits of an item: those that the element takes in memory.
        bits: u32,
    },
    /// Key in the high bits and place in the low bits: items are distinct, and lesser items come first.
    KeyedPlace {
        /// Bits of an item.
        bits: u32,
        /// Bits of the key.
        key: u32,
        /// Bits of the place.
        place: u32,
    },
    /// Place of the element in its row.
    Place {
        /// Bits of an item.
        bits: u32,
    },
}

/// Maximum length of rows with 32-bit places.
const NARROW: u64 = 1 << 31;

impl ItemKind {
    /// Returns the kind of items for rows of this length; `is_only` if there is one array and only its elements are
    /// results.
    pub fn new(order: Order, keys: &ArrayShape, is_only: bool, length: u64) -> ItemKind {
        let place = if length <= NARROW { 32 } else { 64 };
        let element = 8 * keys.element_type().byte_width() as u32;
        match order {
            Order::Key { .. } if is_only => ItemKind::Element { bits: element },
            Order::Key { key, .. } => {
                let bits = if key.bits <= 32 && place == 32 { 64 } else { 128 };
                ItemKind::KeyedPlace { bits, key: key.bits, place }
            }
            Order::Comparator(_) => ItemKind::Place { bits: place },
        }
    }

    fn bits(self) -> u32 {
        match self {
            ItemKind::Element { bits } | ItemKind::KeyedPlace { bits, .. } | ItemKind::Place { bits } => bits,
        }
    }

    pub fn scalar(self) -> Scalar {
        Scalar::Int(self.bits())
    }

    /// Returns the maximum number of bits of an item's key.
    pub fn key_bits(self) -> u32 {
        match self {
            ItemKind::Element { bits } | ItemKind::Place { bits } => bits,
            ItemKind::KeyedPlace { key, .. } => key,
        }
    }
}

impl fmt::Display for ItemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ItemKind::Element { bits } => write!(f, "elements of {bits} bits"),
            ItemKind::KeyedPlace { key, .. } => write!(f, "keys of {key} bits with places"),
            ItemKind::Place { .. } => f.write_str("places by a comparator"),
        }
    }
}

/// Array in memory.
#[derive(Clone, Copy)]
pub(super) struct Array<'ctx> {
    pub base: PointerValue<'ctx>,
    pub ty: ElementType,
}

impl<'ctx> Array<'ctx> {
    pub fn new(base: PointerValue<'ctx>, shape: &ArrayShape) -> Array<'ctx> {
        Array { base, ty: shape.element_type() }
    }

    /// Returns the bits of an element, or of the real part of a complex one.
    pub fn bits(&self) -> u32 {
        8 * self.ty.real_part().byte_width() as u32
    }
}

/// Elements of an array at a constant stride.
#[derive(Clone, Copy)]
pub(super) struct Line<'e, 'ctx> {
    pub array: Array<'ctx>,
    /// Position of the first element.
    pub first: Lanes<'e, 'ctx>,
    /// Stride in elements.
    pub step: i64,
}

impl<'e, 'ctx> Line<'e, 'ctx> {
    fn position(&self, place: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        if self.step == 1 { self.first + place } else { self.first + place * self.step }
    }

    /// Returns the position of an element in real numbers, and the number of real numbers per element.
    fn numbers(&self, place: Lanes<'e, 'ctx>) -> (Lanes<'e, 'ctx>, u32) {
        let at = self.position(place);
        if self.array.ty.is_complex() { (at + at, 2) } else { (at, 1) }
    }

    /// Loads the bits of an element as integers, since floating-point registers may change the bits of a NaN.
    pub fn load(&self, emitter: &'e Emitter<'ctx>, place: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        let (at, parts) = self.numbers(place);
        emitter.load_lanes(self.array.base, at, Scalar::Int(self.array.bits()), parts, None)
    }

    /// Loads the bits of `width` contiguous elements of a line with stride 1.
    pub fn load_block(&self, emitter: &'e Emitter<'ctx>, place: Lanes<'e, 'ctx>, width: u32) -> Lanes<'e, 'ctx> {
        emitter.load_lanes(self.array.base, self.position(place), Scalar::Int(self.array.bits()), width, None)
    }

    /// Stores the bits of an element.
    pub fn store(&self, emitter: &'e Emitter<'ctx>, place: Lanes<'e, 'ctx>, bits: Lanes<'e, 'ctx>) {
        let (at, _) = self.numbers(place);
        emitter.store_lanes(bits, self.array.base, at, None);
    }

    fn value(&self, emitter: &'e Emitter<'ctx>, place: Lanes<'e, 'ctx>) -> Value<'e, 'ctx> {
        elemental::load(emitter, self.array.base, self.position(place), self.array.ty, 1, None)
    }
}

/// Items of one row.
pub(super) struct Items<'a, 'e, 'ctx> {
    pub order: Order,
    pub kind: ItemKind,
    /// Row of each array.
    pub operands: &'a [Line<'e, 'ctx>],
    /// Memory that holds the items.
    pub memory: PointerValue<'ctx>,
    /// Number of elements of the row.
    pub count: i64,
    /// Whether the comparator reads the elements of each array.
    pub compared: Vec<bool>,
}

impl<'e, 'ctx> Items<'_, 'e, 'ctx> {
    /// Loads item number `at`.
    pub fn get(&self, emitter: &'e Emitter<'ctx>, at: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        emitter.load_lanes(self.memory, at, self.kind.scalar(), 1, None)
    }

    /// Stores item number `at`.
    pub fn set(&self, emitter: &'e Emitter<'ctx>, at: Lanes<'e, 'ctx>, item: Lanes<'e, 'ctx>) {
        emitter.store_lanes(item, self.memory, at, None);
    }

    /// Computes the item of the element at a place.
    pub fn item(&self, emitter: &'e Emitter<'ctx>, place: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        match (self.kind, self.order) {
            (ItemKind::Element { .. }, _) => self.operands[0].load(emitter, place),
            (ItemKind::Place { bits }, _) | (ItemKind::KeyedPlace { bits, .. }, Order::Comparator(_)) => {
                place.zext(bits)
            }
            (ItemKind::KeyedPlace { bits, place: low, .. }, Order::Key { array, key }) => {
                let key = key_lanes(&key, self.operands[array].load(emitter, place));
                key.zext(bits) << i64::from(low) | place.zext(bits)
            }
        }
    }

    /// Returns the 64-bit place of an item's element, if items contain it.
    pub fn place(&self, item: Lanes<'e, 'ctx>) -> Option<Lanes<'e, 'ctx>> {
        match self.kind {
            ItemKind::Element { .. } => None,
            ItemKind::Place { .. } => Some(item.zext(64)),
            ItemKind::KeyedPlace { place, .. } => Some(item.trunc_to(place).zext(64)),
        }
    }

    /// Returns the 8-bit digit of an item's key that begins at `bit`, as 64 bits.
    pub fn digit(&self, item: Lanes<'e, 'ctx>, bit: u32) -> Lanes<'e, 'ctx> {
        let key = match (self.kind, self.order) {
            (ItemKind::Element { .. }, Order::Key { key, .. }) => key_lanes(&key, item),
            (ItemKind::KeyedPlace { place, .. }, _) => item.lshr(i64::from(place)),
            (ItemKind::Element { .. } | ItemKind::Place { .. }, _) => item,
        };
        key.lshr(i64::from(bit)).trunc_to(8).zext(64)
    }

    /// Whether `a` precedes `b`; false if they are equal.
    pub fn is_before(&self, s: &FusedEmitter<'e, 'ctx, '_>, a: Lanes<'e, 'ctx>, b: Lanes<'e, 'ctx>) -> Lanes<'e, 'ctx> {
        match (self.kind, self.order) {
            (ItemKind::Element { .. }, Order::Key { key, .. }) => key_lanes(&key, a).ult(key_lanes(&key, b)),
            (_, Order::Comparator(comparator)) => self.compare(s, comparator, [a, b]).unwrap_or_else(|error| {
                s.emitter.fail(error);
                a.mask(false)
            }),
            (ItemKind::KeyedPlace { .. } | ItemKind::Place { .. }, Order::Key { .. }) => a.ult(b),
        }
    }

    fn compare(
        &self,
        s: &FusedEmitter<'e, 'ctx, '_>,
        comparator: CompId,
        items: [Lanes<'e, 'ctx>; 2],
    ) -> xla_hlo::Result<Lanes<'e, 'ctx>> {
        let mut arguments = Vec::with_capacity(2 * self.operands.len());
        for (line, is_compared) in self.operands.iter().zip(&self.compared) {
            let ty = line.array.ty;
            arguments.extend(items.map(|item| match is_compared {
                true => line.value(s.emitter, item.zext(64)),
                false => elemental::constant(s.emitter, ty, Element::zero(ty)),
            }));
        }
        let before = s.call(comparator, &arguments)?;
        Ok(before.first().ok_or_else(|| Error::internal("comparator of a sort has no result"))?.lanes())
    }
}
