//! Shuffles of lanes: extraction, concatenation, permutation, splats, and reductions of masks.

use inkwell::types::VectorType;
use inkwell::values::BasicValueEnum;

use super::Lanes;

impl<'e, 'ctx> Lanes<'e, 'ctx> {
    /// Extracts `count` lanes from `first` on.
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

    /// Extracts one lane as a scalar.
    pub fn lane(self, index: u32) -> Self {
        let BasicValueEnum::VectorValue(vector) = self.raw else {
            return self;
        };
        let index = self.emitter.int_type(32).const_int(index.into(), false);
        self.or_self(self.emitter.builder.build_extract_element(vector, index, ""))
    }

    /// Concatenates the lanes of this vector and an equally wide one. Scalars become vectors of two.
    pub fn concat(self, high: Self) -> Self {
        self.splat_one().shuffle(high.splat_one(), &Vec::from_iter(0..2 * self.width()))
    }

    /// Interleaves the lanes: lane 0 of this, lane 0 of the other, lane 1 of this, and so on. Scalars become vectors of
    /// two.
    pub fn interleave(self, other: Self) -> Self {
        let width = self.width();
        let (x, y) = (self.splat_one(), other.splat_one());
        let indices: Vec<u32> = (0..width).flat_map(|i| [i, width + i]).collect();
        x.shuffle(y, &indices)
    }

    /// Returns the even and the odd lanes: the inverse of [`Lanes::interleave`].
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

    /// Converts a scalar to a vector of one lane; returns vectors unchanged.
    fn splat_one(self) -> Self {
        match self.raw {
            BasicValueEnum::VectorValue(_) => self,
            scalar => match self.emitter.as_vector(scalar) {
                Some(raw) => Lanes { raw, ..self },
                None => self,
            },
        }
    }

    /// `shufflevector`: picks the lanes `indices` of the concatenation of this vector and an equally wide one.
    pub fn shuffle(self, other: Self, indices: &[u32]) -> Self {
        let (BasicValueEnum::VectorValue(x), BasicValueEnum::VectorValue(y)) = (self.raw, other.raw) else {
            return self.misuse("a shuffle has scalar operands");
        };
        if !self.agrees(other) {
            return self;
        }
        let indices = self.emitter.indices(indices.iter().copied());
        self.or_self(self.emitter.builder.build_shuffle_vector(x, y, indices, "").map(Into::into))
    }

    /// Widens to `width` lanes with these lanes from `first` on; all others are poison.
    ///
    /// They must be poison, since LLVM 22 loads `<2 x i64>` widened by the mask `0, 1, 0, 0, 0, 0, 0, 0` as element 0
    /// twice on x86-64-v4.
    pub(super) fn widened(self, width: u32, first: u32) -> Self {
        let BasicValueEnum::VectorValue(lanes) = self.raw else {
            return self.misuse("a scalar cannot be widened");
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

    /// Reverses the order of the lanes.
    pub fn reversed(self) -> Self {
        match self.raw {
            BasicValueEnum::VectorValue(_) => self.shuffle(self, &Vec::from_iter((0..self.width()).rev())),
            _ => self,
        }
    }

    /// Splats a scalar to `width` lanes; returns a vector of that width unchanged.
    pub fn splat(self, width: u32) -> Self {
        if width <= 1 || self.width() == width {
            return self;
        }
        if self.width() > 1 {
            return self.misuse("a splat has a vector operand");
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

    /// Applies `f` to pieces of `lanes` lanes of this value and another one, and concatenates the results. The width
    /// must be `lanes` times a power of two.
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

    /// `llvm.vector.reduce.or`: returns whether any lane of a mask is set, as a scalar bit.
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
    /// Returns the constants 0, 1, 2, ... as `width` integers of `bits` bits.
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
