//! Tiled matmuls with alternatives; autotuning measures the fastest.

use xla_llvm::fused::{KernelSource, MatmulAlternatives};
use xla_llvm::target::Target;
use xla_service::thunks::LoweringContext;

use super::{Kernels, NotGenerated};
use crate::program::commands::{Choice, Command, CommandSequence};
use crate::program::library_call::matmul::Precision;

/// Returns the default commands of a kernel, or a choice between them and its alternatives if there are any.
pub(crate) fn with_alternatives<'m>(
    kernels: &mut Kernels<'m>,
    cx: &LoweringContext<'_>,
    (source, target): (&KernelSource<'m>, &Target),
    usual: CommandSequence<NotGenerated>,
) -> CommandSequence<NotGenerated> {
    let Some(MatmulAlternatives { ways, terms, rounds_to_tf32, name }) = MatmulAlternatives::new(source, target) else {
        return usual;
    };
    let (mut scratch, mut all) = (usual.scratch, vec![usual.commands]);
    for way in ways {
        let way = CommandSequence::of_plan(kernels, cx, way.launch_plan(source));
        // Only one alternative is executed, so all share the same memory.
        scratch.resize(scratch.len().max(way.scratch.len()), 0);
        scratch.iter_mut().zip(&way.scratch).for_each(|(bytes, &other)| *bytes = other.max(*bytes));
        all.push(way.commands);
    }
    let precision = if rounds_to_tf32 { Precision::Tf32 } else { Precision::Exact };
    let choice = Choice { name, terms: terms as usize, precision, ways: all };
    CommandSequence { scratch, rng_delta: usual.rng_delta, commands: vec![Command::Choice(Box::new(choice))] }
}
