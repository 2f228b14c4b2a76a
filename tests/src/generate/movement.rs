//! Data movement.

use xla_hlo::ElementType;
use xla_hlo::InstrId;
use xla_hlo::ops::{OptBarrier, PadDim, SliceRange};

use super::graph::{Graph, Value};
use super::numbers::Numbers;

/// Types of the starts of dynamic slices.
const INDEX_TYPES: [ElementType; 5] =
    [ElementType::S32, ElementType::S32, ElementType::S64, ElementType::U32, ElementType::U8];

impl Graph<'_> {
    pub(super) fn broadcast(&mut self) -> Option<Value> {
        let x = self.any(|v| v.rank() <= 3)?;
        let rank = self.random.between(x.rank(), 4);
        let mut places = self.random.permutation(rank);
        places.truncate(x.rank());
        if self.random.percent(70) {
            places.sort_unstable();
        }
        let mut dims: Vec<usize> = (0..rank).map(|_| self.size()).collect();
        places.iter().zip(x.dims()).for_each(|(&place, &size)| dims[place] = size);
        self.shrink_to_fit(&mut dims, &places);
        if !self.is_small(&dims) {
            return None;
        }
        self.put(Some(x.numbers), |b| b.broadcast(x.id, dims, places))
    }

    /// Reduces dimensions that are not fixed until the array is small.
    fn shrink_to_fit(&mut self, dims: &mut [usize], fixed: &[usize]) {
        for d in 0..dims.len() {
            while !fixed.contains(&d) && dims[d] > 1 && !self.is_small(dims) {
                dims[d] = dims[d].div_ceil(3);
            }
        }
    }

    pub(super) fn reshape(&mut self) -> Option<Value> {
        let x = self.any(|v| v.rank() <= 4)?;
        let mut dims = factors(x.shape.element_count());
        // Factors are multiplied in random groups, with ones in between.
        while dims.len() > 4 || (dims.len() > 1 && self.random.percent(40)) {
            let (from, factor) = (self.random.below(dims.len()), dims.len() - 1);
            let last = dims.remove(factor);
            let at = from.min(dims.len() - 1);
            dims[at] *= last;
        }
        while self.random.percent(25) {
            dims.insert(self.random.below(dims.len() + 1), 1);
        }
        self.put(Some(x.numbers), |b| b.reshape(x.id, dims))
    }

    pub(super) fn transpose(&mut self) -> Option<Value> {
        let x = self.any(|v| v.rank() > 1)?;
        let permutation = self.random.permutation(x.rank());
        self.put(Some(x.numbers), |b| b.transpose(x.id, permutation))
    }

    pub(super) fn slice(&mut self) -> Option<Value> {
        let x = self.any(|v| v.rank() > 0)?;
        let range = |size: usize, random: &mut super::Random| match random.below(4) {
            0 => SliceRange { start: 0, limit: size, stride: 1 },
            kind => {
                let start = random.between(0, size);
                let limit = random.between(start, size);
                SliceRange { start, limit, stride: if kind == 1 { random.between(1, 4) } else { 1 } }
            }
        };
        let ranges: Vec<SliceRange> = x.dims().iter().map(|&size| range(size, self.random)).collect();
        self.put(Some(x.numbers), |b| b.slice(x.id, ranges))
    }

    pub(super) fn pad(&mut self) -> Option<Value> {
        let x = self.any(|v| v.rank() > 0)?;
        let value = self.like(x.ty(), &[], |_| true);
        let mut dims = Vec::new();
        let mut sizes = Vec::new();
        for &size in x.dims() {
            let mut end = || self.random.pick(&[0, 0, 0, 1, 2, 5, -1, -2]);
            let (low, high) = (end(), end());
            let interior = self.random.pick(&[0, 0, 0, 1, 2]);
            let padded = size as i64 + size.saturating_sub(1) as i64 * interior + low + high;
            dims.push(PadDim { low, high, interior: interior as usize });
            sizes.push(padded.max(0) as usize);
        }
        if !self.is_small(&sizes) {
            return None;
        }
        let numbers = Numbers::either(x.ty(), &x.numbers, &value.numbers);
        self.put(numbers, |b| b.pad(x.id, value.id, dims))
    }

    pub(super) fn concatenate(&mut self) -> Option<Value> {
        let x = self.any(|v| v.rank() > 0)?;
        let d = self.random.below(x.rank());
        let (mut operands, mut numbers, mut total) = (vec![x.id], Some(x.numbers), x.dims()[d]);
        for _ in 0..self.random.below(4) {
            let mut dims = x.dims().to_vec();
            if self.random.percent(50) {
                dims[d] = self.random.between(0, 9);
            }
            total += dims[d];
            let mut whole = dims.clone();
            whole[d] = total;
            if !self.is_small(&whole) {
                return None;
            }
            let next = self.like(x.ty(), &dims, |_| true);
            numbers = numbers.and_then(|n| Numbers::either(x.ty(), &n, &next.numbers));
            operands.push(next.id);
        }
        let order = self.random.permutation(operands.len());
        let operands: Vec<InstrId> = order.into_iter().map(|i| operands[i]).collect();
        self.put(numbers, |b| b.concatenate(operands, d))
    }

    pub(super) fn reverse(&mut self) -> Option<Value> {
        let x = self.any(|v| v.rank() > 0)?;
        let dims = self.random.subset(x.rank());
        self.put(Some(x.numbers), |b| b.reverse(x.id, dims))
    }

    pub(super) fn dynamic_slice(&mut self) -> Option<Value> {
        let x = self.any(|v| v.rank() > 0)?;
        let sizes = self.box_in(x.dims());
        let starts = self.starts(x.rank());
        self.put(Some(x.numbers), |b| b.dynamic_slice(x.id, starts, sizes))
    }

    pub(super) fn dynamic_update_slice(&mut self) -> Option<Value> {
        let x = self.any(|v| v.rank() > 0)?;
        let sizes = self.box_in(x.dims());
        let update = self.like(x.ty(), &sizes, |_| true);
        let starts = self.starts(x.rank());
        let numbers = Numbers::either(x.ty(), &x.numbers, &update.numbers);
        self.put(numbers, |b| b.dynamic_update_slice(x.id, update.id, starts))
    }

    /// Returns random sizes of a slice.
    fn box_in(&mut self, dims: &[usize]) -> Vec<usize> {
        dims.iter().map(|&d| if self.random.percent(30) { d } else { self.random.between(d.min(1), d) }).collect()
    }

    /// Returns starts of a slice, possibly out of bounds: scalars, or one vector.
    fn starts(&mut self, rank: usize) -> Vec<InstrId> {
        let ty = self.random.pick(&INDEX_TYPES);
        if self.random.percent(10) {
            return vec![self.like(ty, &[rank], |_| true).id];
        }
        let of_type = |v: &Value| v.ty() == ty && v.rank() == 0;
        (0..rank)
            .map(|_| match self.random.below(3) {
                0 => self.scalar(ty, 0),
                1 => self.any(of_type).map_or_else(|| self.like(ty, &[], |_| true).id, |v| v.id),
                _ => self.like(ty, &[], |_| true).id,
            })
            .collect()
    }

    /// Copies a value, or passes it through a barrier or tuples.
    pub(super) fn regroup(&mut self) -> Option<Value> {
        let x = self.any(|_| true)?;
        let y = self.any(|_| true)?;
        match self.random.below(4) {
            0 => self.put(Some(x.numbers), |b| b.copy(x.id)),
            1 => self.put(Some(x.numbers), |b| b.instruction(OptBarrier, None, [x.id])),
            2 => self.put(Some(x.numbers), |b| {
                let tuple = b.tuple([y.id, x.id])?;
                let tuple = b.instruction(OptBarrier, None, [tuple])?;
                b.get_tuple_element(tuple, 1)
            }),
            _ => self.put(Some(y.numbers), |b| {
                let inner = b.tuple([x.id, y.id])?;
                let outer = b.tuple([inner, x.id])?;
                let inner = b.get_tuple_element(outer, 0)?;
                b.get_tuple_element(inner, 1)
            }),
        }
    }
}

/// Returns the prime factors in ascending order; 0 is kept.
fn factors(mut n: usize) -> Vec<usize> {
    let mut out = Vec::new();
    let mut p = 2;
    while n > 1 {
        while n.is_multiple_of(p) {
            out.push(p);
            n /= p;
        }
        p += 1;
    }
    if n == 0 { vec![0] } else { out }
}
