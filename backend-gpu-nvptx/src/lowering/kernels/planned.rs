//! Command sequences whose kernels are not generated yet, so that their launches have no number of blocks.

use xla_hlo::Result;
use xla_llvm::fused::{LaunchPlan, PlanArgument, PlanCommand};
use xla_service::thunks::LoweringContext;

use super::{Kernels, NotGenerated};
use crate::program::commands::{Choice, Command, CommandSequence, KernelArgument, LibraryCommand};
use crate::program::library_call::LibraryCall;

impl CommandSequence<NotGenerated> {
    /// Returns the commands of a plan, and numbers its kernels. Omits copies of an operand to its own memory.
    pub fn of_plan<'m>(kernels: &mut Kernels<'m>, cx: &LoweringContext<'_>, plan: LaunchPlan<'m>) -> Self {
        let LaunchPlan { scratch, rng_delta, codes, commands } = plan;
        let numbers: Vec<usize> = codes.into_iter().map(|code| kernels.number(code)).collect();
        let commands = commands.into_iter().filter_map(|command| match command {
            PlanCommand::Launch { function, arguments } => {
                let arguments = arguments.into_iter().map(KernelArgument::from).collect();
                Some(kernels.launch(numbers[function], arguments))
            }
            PlanCommand::Copy { operand, result } => {
                let is_moved = cx.operands[operand].slice != cx.results[result].slice;
                is_moved.then_some(Command::Copy { from: operand, to: cx.operands.len() + result })
            }
        });
        CommandSequence { scratch, rng_delta, commands: commands.collect() }
    }

    /// Returns the library call among the commands, if there is one; there are never two.
    pub fn library_call(&self) -> Option<&LibraryCall> {
        self.commands.iter().find_map(|command| match command {
            Command::Library(library) => Some(&library.call),
            Command::Launch { .. } | Command::Copy { .. } | Command::Choice(_) => None,
        })
    }

    /// Returns the commands with the number of blocks of each generated kernel, without launches of no block.
    pub fn generated(self, blocks: &dyn Fn(usize) -> Result<u32>) -> Result<CommandSequence> {
        let CommandSequence { scratch, rng_delta, commands } = self;
        Ok(CommandSequence { scratch, rng_delta, commands: generated(commands, blocks)? })
    }
}

fn generated(planned: Vec<Command<NotGenerated>>, blocks: &dyn Fn(usize) -> Result<u32>) -> Result<Vec<Command>> {
    let mut commands = Vec::with_capacity(planned.len());
    for command in planned {
        commands.push(match command {
            Command::Copy { from, to } => Command::Copy { from, to },
            Command::Launch { function, blocks: NotGenerated, arguments } => match blocks(function)? {
                0 => continue,
                blocks => Command::Launch { function, blocks, arguments },
            },
            Command::Library(library) => {
                let LibraryCommand { call, arrays, before, then, otherwise } = *library;
                let [before, then, otherwise] = [before, then, otherwise].map(|commands| generated(commands, blocks));
                let (before, then, otherwise) = (before?, then?, otherwise?);
                Command::Library(Box::new(LibraryCommand { call, arrays, before, then, otherwise }))
            }
            Command::Choice(choice) => {
                let Choice { name, terms, precision, ways } = *choice;
                let ways = ways.into_iter().map(|way| generated(way, blocks)).collect::<Result<_>>()?;
                Command::Choice(Box::new(Choice { name, terms, precision, ways }))
            }
        });
    }
    Ok(commands)
}

impl From<PlanArgument> for KernelArgument {
    fn from(argument: PlanArgument) -> KernelArgument {
        match argument {
            PlanArgument::Array(number) => KernelArgument::Array(number),
            PlanArgument::Scratch(number) => KernelArgument::Scratch(number),
            PlanArgument::Counter(half) => KernelArgument::Counter(half),
            PlanArgument::Number(number) => KernelArgument::Number(number),
        }
    }
}
