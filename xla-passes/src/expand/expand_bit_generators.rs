//! Expands random bit generators into integer arithmetic on whole arrays.

use xla_hlo::ops::RngAlgorithm;
use xla_hlo::{InstrId, Module, Op, Result};

use super::{philox, threefry};
use crate::rewrite::builder::Inserter;
use crate::{Pass, PassContext};

/// Expands `rng-bit-generator` into additions, multiplications and shifts of arrays with one element per block of the
/// generator. The result is bit-exact.
pub struct ExpandBitGenerators;

impl Pass for ExpandBitGenerators {
    fn name(&self) -> &'static str {
        "expand-bit-generators"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        super::replace_each(self, module, cx, |graph, id| matches!(graph[id].op(), Op::RngBitGenerator(_)), expand)
    }
}

fn expand(at: &mut Inserter<'_>, id: InstrId) -> Result<InstrId> {
    let Op::RngBitGenerator(op) = at.graph()[id].op().clone() else { return Ok(id) };
    let state = at.graph()[id].operand(0);
    let words = (0..at.dims(state)[0]).map(|i| word(at, state, i)).collect::<Result<Vec<_>>>()?;
    let leaves = at.shape(id).leaves();
    let bits = leaves.get(1).and_then(|(_, leaf)| leaf.as_array()).cloned();
    let shape = bits
        .ok_or_else(|| xla_hlo::Error::internal("the result of rng-bit-generator is not a pair of state and bits"))?;
    let (bits, counter) = match op.algorithm {
        RngAlgorithm::ThreeFry => threefry::bits(at, words[0], words[1], &shape)?,
        RngAlgorithm::Philox | RngAlgorithm::Default => {
            // A state of two words is a key and the lower half of the counter. The key then is the upper half of the
            // counter, too.
            let high = *words.get(2).unwrap_or(&words[0]);
            philox::bits(at, words[0], [words[1], high], &shape)?
        }
    };
    let mut next = vec![words[0]];
    next.extend(counter.into_iter().take(words.len() - 1));
    let next = next.into_iter().map(|word| at.reshape(word, &[1])).collect::<Result<Vec<_>>>()?;
    let next = at.concatenate(&next, 0)?;
    at.tuple(&[next, bits])
}

/// Returns word `i` of a state as a scalar.
fn word(at: &mut Inserter<'_>, state: InstrId, i: usize) -> Result<InstrId> {
    let word = at.slice(state, 0, i, i + 1)?;
    at.reshape(word, &[])
}
