//! Lanes taken apart, put together and reduced.

use inkwell::types::VectorType;
use inkwell::values::BasicValueEnum;

use super::Lanes;

impl<'e, 'ctx> Lanes<'e, 'ctx> {
    /// `count` lanes from `first` on.
    pub fn slice(self, first: u32, count: u32) -> Self {
        let BasicValueEnum::VectorValue(vector) = self.raw else {
            return self;
        };
        if first == 0 && count == self.width() {
            return self;
        }
        if count == 1 {
            return self.lane(first);
        }
        let undefined = Lanes { raw: vector.get_type().get_poison().into(), ..self };
        self.shuffle(undefined, &Vec::from_iter(first..first + count))
    }

    /// One lane, as a scalar.
    pub fn lane(self, index: u32) -> Self {
        let BasicValueEnum::VectorValue(vector) = self.raw else {
            return self;
        };
        let index = self.emitter.int_type(32).const_int(index.into(), false);
        self.or_self(self.emitter.builder.build_extract_element(vector, index, ""))
    }

    /// The lanes of this vector followed by those of an equally wide one. Scalars become vectors of two.
    pub fn concat(self, high: Self) -> Self {
        self.splat_one().shuffle(high.splat_one(), &Vec::from_iter(0..2 * self.width()))
    }

    /// Lane 0 of this, lane 0 of the other, lane 1 of this, and so on. Scalars become vectors of two.
    pub fn interleave(self, other: Self) -> Self {
        let width = self.width();
        let (x, y) = (self.splat_one(), other.splat_one());
        let indices: Vec<u32> = (0..width).flat_map(|i| [i, width + i]).collect();
        x.shuffle(y, &indices)
    }

    /// The even and the odd lanes: the inverse of [`Lanes::interleave`].
    pub fn deinterleave(self) -> [Self; 2] {
        let half = self.width() / 2;
        [0, 1].map(|odd| {
            if half <= 1 {
                return self.lane(odd);
            }
            let indices: Vec<u32> = (0..half).map(|i| 2 * i + odd).collect();
            self.shuffle(self, &indices)
        })
    }

    /// A scalar as a vector of one lane; vectors as they are.
    fn splat_one(self) -> Self {
        match self.raw {
            BasicValueEnum::VectorValue(_) => self,
            scalar => match self.emitter.as_vector(scalar) {
                Some(raw) => Lanes { raw, ..self },
                None => self,
            },
        }
    }

    /// The lanes of the concatenation of this vector and an equally wide one that `indices` names.
    pub fn shuffle(self, other: Self, indices: &[u32]) -> Self {
        let (BasicValueEnum::VectorValue(x), BasicValueEnum::VectorValue(y)) = (self.raw, other.raw) else {
            return self.misuse("a shuffle of scalars");
        };
        if !self.agrees(other) {
            return self;
        }
        let indices = self.emitter.indices(indices.iter().copied());
        self.or_self(self.emitter.builder.build_shuffle_vector(x, y, indices, "").map(Into::into))
    }

    /// These lanes as those from `first` on of a vector of `width` lanes, of which the others are poison.
    ///
    /// Poison, since LLVM 22 loads `<2 x i64>` widened by the mask `0, 1, 0, 0, 0, 0, 0, 0` as element 0 twice on
    /// x86-64-v4.
    pub(super) fn widened(self, width: u32, first: u32) -> Self {
        let BasicValueEnum::VectorValue(lanes) = self.raw else {
            return self.misuse("a scalar to be widened");
        };
        let number = self.emitter.int_type(32);
        let place = |lane: u32| match lane.checked_sub(first).filter(|&lane| lane < self.width()) {
            Some(lane) => number.const_int(lane.into(), false),
            None => number.get_poison(),
        };
        let places = VectorType::const_vector(&Vec::from_iter((0..width).map(place)));
        let nothing = lanes.get_type().get_poison();
        self.or_self(self.emitter.builder.build_shuffle_vector(lanes, nothing, places, "").map(Into::into))
    }

    /// The lanes in the opposite order.
    pub fn reversed(self) -> Self {
        match self.raw {
            BasicValueEnum::VectorValue(_) => self.shuffle(self, &Vec::from_iter((0..self.width()).rev())),
            _ => self,
        }
    }

    /// A scalar in each of `width` lanes; a vector that has them, as it is.
    pub fn splat(self, width: u32) -> Self {
        if width <= 1 || self.width() == width {
            return self;
        }
        if self.width() > 1 {
            return self.misuse("a splat of several lanes");
        }
        let builder = &self.emitter.builder;
        let BasicValueEnum::VectorValue(empty) = self.emitter.lane_type(self.scalar(), width).const_zero() else {
            return self;
        };
        let undefined = empty.get_type().get_poison();
        let index = self.emitter.int_type(32).const_zero();
        let Some(first) = self.emitter.record(builder.build_insert_element(undefined, self.raw, index, "")) else {
            return self;
        };
        let zeros = self.emitter.int_type(32).vec_type(width).const_zero();
        self.or_self(builder.build_shuffle_vector(first, undefined, zeros, "").map(Into::into))
    }

    /// The columns of a square block of as many rows as they have elements, a power of two; an element is `parts`
    /// lanes.
    ///
    /// Each step puts elements of a row of the upper half and of the lower half in turn: that doubles the distance of
    /// neighbours, and as many steps as the block has bits bring elements of one column side by side.
    pub(crate) fn transposed(mut rows: Vec<Self>, parts: u32) -> Vec<Self> {
        let count = rows.len() as u32;
        let of_half = |half: u32| -> Vec<u32> {
            let elements = (half * count / 2..(half + 1) * count / 2).flat_map(|i| [i, count + i]);
            elements.flat_map(|i| (0..parts).map(move |p| i * parts + p)).collect()
        };
        let (low, high) = (of_half(0), of_half(1));
        for _ in 0..count.ilog2() {
            let (upper, lower) = rows.split_at(rows.len() / 2);
            rows = upper.iter().zip(lower).flat_map(|(x, y)| [x.shuffle(*y, &low), x.shuffle(*y, &high)]).collect();
        }
        rows
    }

    /// `f` over pieces of `lanes` lanes of this value and another, put together again. The width must be `lanes` times
    /// a power of two.
    pub(crate) fn in_parts(self, lanes: u32, other: Self, f: impl Fn(Self, Self) -> Self + Copy) -> Self {
        let width = self.width();
        if width <= lanes {
            return f(self, other);
        }
        let half = width / 2;
        let low = self.slice(0, half).in_parts(lanes, other.slice(0, half), f);
        let high = self.slice(half, half).in_parts(lanes, other.slice(half, half), f);
        low.concat(high)
    }

    /// Whether any lane of a mask is set, as a scalar bit.
    pub fn any(self) -> Self {
        match self.raw {
            BasicValueEnum::VectorValue(_) => {
                let raw = self.emitter.intrinsic("llvm.vector.reduce.or", &[self.raw.get_type()], &[self.raw]);
                raw.map_or(self, |raw| Lanes { raw, ..self })
            }
            _ => self,
        }
    }
}

impl<'ctx> crate::emitter::Emitter<'ctx> {
    /// 0, 1, 2, ... in integers of `bits`, as many as `width`.
    pub fn lane_numbers(&self, bits: u32, width: u32) -> Lanes<'_, 'ctx> {
        let int = self.int_type(bits);
        if width <= 1 {
            return self.splat_constant(int.const_zero().into(), 1);
        }
        let numbers: Vec<_> = (0..width).map(|n| int.const_int(n.into(), false)).collect();
        self.lanes(VectorType::const_vector(&numbers))
    }

    fn indices(&self, indices: impl Iterator<Item = u32>) -> inkwell::values::VectorValue<'ctx> {
        let int = self.int_type(32);
        let indices: Vec<_> = indices.map(|index| int.const_int(index.into(), false)).collect();
        VectorType::const_vector(&indices)
    }
}
