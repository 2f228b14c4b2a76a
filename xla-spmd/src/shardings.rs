//! Result of propagation.

use xla_hlo::sdy::{MeshPart, TensorSharding, gcd};
use xla_hlo::{CompId, InstrId, Module};

use crate::graph::{Graph, MeshSharding, NameId};

/// Shardings of all values of a program. Arrays of tuples are listed by their leaves.
///
/// A value without a sharding is not split. Dimensions stay open where axes might still be added.
#[derive(Debug)]
pub struct Shardings {
    graph: Graph,
}

impl Shardings {
    pub(crate) fn new(graph: Graph) -> Shardings {
        Shardings { graph }
    }

    /// Returns the shardings of the arrays of an instruction's result.
    ///
    /// Each use of a value that depends on constants alone, and of a broadcast scalar, has a sharding of its own. The
    /// value has the sharding of its uses if they agree, see [`Shardings::of_operand`].
    pub fn of(&self, computation: CompId, instruction: InstrId) -> Vec<Option<TensorSharding>> {
        let names = self.graph.leaves.get(&(computation, instruction));
        names.map_or(Vec::new(), |names| names.iter().map(|&name| self.agreed(name)).collect())
    }

    /// Returns the shardings of the arrays of operand `i` of an instruction, as the instruction's operand.
    pub fn of_operand(&self, computation: CompId, instruction: InstrId, i: usize) -> Vec<Option<TensorSharding>> {
        let names = self.graph.operands.get(&(computation, instruction, i));
        names.map_or(Vec::new(), |names| names.iter().map(|&name| self.named(name)).collect())
    }

    /// Returns the shardings of the program's arguments. They divide the arrays evenly, and dimensions that were open
    /// have whole axes.
    pub fn arguments(&self, module: &Module) -> Vec<Option<TensorSharding>> {
        let entry = module.entry();
        let names = entry.parameters().iter().filter_map(|&id| self.graph.leaves.get(&(module.entry_id(), id)));
        let value = |&name: &NameId| self.graph.value(name);
        names.flatten().map(value).map(|value| self.at_border(value.sharding.as_ref(), &value.dims)).collect()
    }

    /// Returns the shardings of the program's results, with the properties of [`Shardings::arguments`].
    pub fn results(&self) -> Vec<Option<TensorSharding>> {
        let results = self.graph.results.iter();
        results.map(|result| self.at_border(result.sharding.as_ref(), &self.graph.value(result.name).dims)).collect()
    }

    fn agreed(&self, name: NameId) -> Option<TensorSharding> {
        let Some((first, others)) = self.graph.copies.get(&name).and_then(|copies| copies.split_first()) else {
            return self.named(name);
        };
        let sharding = self.named(*first);
        sharding.filter(|first| others.iter().all(|&other| self.named(other).as_ref() == Some(first)))
    }

    /// Cuts the axes of each dimension at the first that does not divide the rest of it, to their common divisor. An
    /// open dimension also loses the first part of an axis and all axes after it.
    fn at_border(&self, sharding: Option<&MeshSharding>, dims: &[usize]) -> Option<TensorSharding> {
        let mut sharding = sharding?.clone();
        let mesh = self.graph.meshes.mesh(sharding.mesh);
        for (dim, &size) in sharding.sharding.dims.iter_mut().zip(dims) {
            let (mut rest, mut axes) = (size, Vec::new());
            for &part in &dim.axes {
                let common = gcd(rest, part.size);
                let is_whole = part.before == 1 && common == mesh.axes[part.axis].1;
                if common == 1 || dim.is_open && !is_whole {
                    break;
                }
                axes.push(MeshPart { size: common, ..part });
                if common != part.size {
                    break;
                }
                rest /= common;
            }
            dim.axes = axes;
        }
        Some(self.graph.meshes.named(&sharding))
    }

    fn named(&self, name: NameId) -> Option<TensorSharding> {
        self.graph.value(name).sharding.as_ref().map(|sharding| self.graph.meshes.named(sharding))
    }
}
