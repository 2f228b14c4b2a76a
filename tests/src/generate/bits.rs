//! Random bits, random numbers, and stochastic rounding.

use xla_hlo::ops::{CompareDirection, RngAlgorithm, RngDistribution};
use xla_hlo::{ElementKind, ElementType, Shape};

use super::graph::{Graph, Value};
use super::numbers::Numbers;

impl Graph<'_> {
    /// Generates random bits from a state, of any type that supports them.
    pub(super) fn rng_bit_generator(&mut self) -> Option<Value> {
        use RngAlgorithm::*;
        let algorithm = self.random.pick(&[Default, ThreeFry, Philox]);
        let length = if algorithm == ThreeFry { 2 } else { self.random.between(2, 3) };
        let state = self.like(ElementType::U64, &[length], |_| true);
        let (ty, dims) = (self.ty(), self.dims());
        let bits = Shape::array(ty, dims);
        let both = self.b.rng_bit_generator(algorithm, state.id, bits).ok()?;
        self.put(Some(Numbers::GIVEN), |b| b.get_tuple_element(both, 0));
        self.put(Some(Numbers::GIVEN), |b| b.get_tuple_element(both, 1))
    }

    /// Generates a check that random numbers are within their bounds. The numbers themselves differ between platforms.
    pub(super) fn rng(&mut self) -> Option<Value> {
        let (ty, dims) = (self.ty(), self.dims());
        if !matches!(ty.kind(), ElementKind::Float | ElementKind::Signed | ElementKind::Unsigned) || ty.bit_width() < 8
        {
            return None;
        }
        let (low, high) = (self.scalar(ty, 1), self.scalar(ty, 3));
        let direction = self.random.pick(&[CompareDirection::Ge, CompareDirection::Lt]);
        let limit = if direction == CompareDirection::Ge { low } else { high };
        self.put(Some(Numbers::within(1.0)), |b| {
            let x = b.rng(RngDistribution::Uniform, low, high, Shape::array(ty, dims.clone()))?;
            let limit = b.broadcast(limit, dims, [])?;
            b.compare(direction, x, limit)
        })
    }

    pub(super) fn stochastic_convert(&mut self) -> Option<Value> {
        let x = self.any(|v| v.ty().is_float() && v.numbers.is_settled())?;
        let is_bits = |ty: &&ElementType| ty.kind() == ElementKind::Unsigned && ty.bit_width() == x.ty().bit_width();
        let bits = *ElementType::ALL.iter().find(is_bits)?;
        let random = self.like(bits, x.dims(), |_| true);
        let integers: Vec<ElementType> = ElementType::ALL.iter().copied().filter(|ty| ty.is_integer()).collect();
        let to = self.random.pick(&integers);
        self.put(Some(Numbers::EXACT), |b| b.stochastic_convert(x.id, random.id, to))
    }
}
