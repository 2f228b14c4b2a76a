//! Tiled matmuls with alternatives, of which autotuning measures the fastest.

use xla_llvm::fused::{KernelSource, MatmulAlternatives, TiledMatmul};
use xla_llvm::target::Target;

use super::{KernelCode, Kernels, split_k};
use crate::lowering::{PlannedChoice, PlannedCommand, PlannedSequence};
use crate::program::commands::KernelArgument;
use crate::program::library_call::matmul::Precision;

/// Returns the default plan of a kernel, or a choice between it and its alternatives if there are any.
pub(crate) fn with_alternatives<'m>(
    kernels: &mut Kernels<'m>,
    source: &KernelSource<'m>,
    target: &Target,
    usual: PlannedSequence,
) -> PlannedSequence {
    let Some(MatmulAlternatives { ways, terms, rounds_to_tf32, name }) = MatmulAlternatives::new(source, target) else {
        return usual;
    };
    let (mut scratch, mut all) = (usual.scratch, vec![usual.commands]);
    for way in ways {
        let way = match way {
            TiledMatmul::Whole(tiles) => {
                let arguments = (0..source.pointer_count()).map(KernelArgument::Array).collect();
                let kernel = kernels.number(KernelCode::Tiled { source: source.clone(), tiles });
                let commands = vec![PlannedCommand::Launch { kernel, arguments }];
                PlannedSequence { commands, ..PlannedSequence::default() }
            }
            TiledMatmul::Parts(plan) => split_k::launches(kernels, source, plan),
        };
        // Only one alternative is executed, so all share the same memory.
        scratch.resize(scratch.len().max(way.scratch.len()), 0);
        scratch.iter_mut().zip(&way.scratch).for_each(|(bytes, &other)| *bytes = other.max(*bytes));
        all.push(way.commands);
    }
    let precision = if rounds_to_tf32 { Precision::Tf32 } else { Precision::Exact };
    let choice = PlannedChoice { name, terms: terms as usize, precision, ways: all };
    let commands = vec![PlannedCommand::Choice(choice)];
    PlannedSequence { scratch, rng_delta: usual.rng_delta, commands }
}
