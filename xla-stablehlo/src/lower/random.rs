//! Random bits and numbers.

use xla_hlo::ops::{Op, Rng, RngAlgorithm, RngBitGenerator, RngDistribution};
use xla_hlo::{InstrId, Result, Shape};

use super::call::Call;
use super::context::Lowering;
use super::dynamic;
use crate::ir::EnumKind;

/// Lowers a random number generator.
pub(super) fn lower(lowering: &mut Lowering<'_>, call: &Call<'_>) -> Option<Result<InstrId>> {
    Some(match call.name {
        "rng_bit_generator" => algorithm(call)
            .and_then(|algorithm| lowering.add(RngBitGenerator { algorithm }, call.shape(), call.operands.clone())),
        // The third operand is the shape of the result.
        "rng" => distribution(call).and_then(|op| {
            let [a, b, sizes] = call.exactly()?;
            let shape = dynamic::result(lowering, call, sizes)?;
            let numbers = lowering.add(op, Shape::Array(shape.clone()).at_bounds(), [a, b])?;
            dynamic::sized(lowering, numbers, &shape, sizes)
        }),
        _ => return None,
    })
}

/// Returns the algorithm of a random bit generator.
pub(super) fn algorithm(call: &Call<'_>) -> Result<RngAlgorithm> {
    Ok(match call.attributes.enumeration("rng_algorithm", EnumKind::RngAlgorithm)? {
        "THREE_FRY" => RngAlgorithm::ThreeFry,
        "PHILOX" => RngAlgorithm::Philox,
        _ => RngAlgorithm::Default,
    })
}

fn distribution(call: &Call<'_>) -> Result<Op> {
    let distribution = match call.attributes.enumeration("rng_distribution", EnumKind::RngDistribution)? {
        "NORMAL" => RngDistribution::Normal,
        _ => RngDistribution::Uniform,
    };
    Ok(Rng { distribution }.into())
}
