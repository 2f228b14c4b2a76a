//! Serialised program: the output of code generation as bytes, loaded without passes or LLVM.
//!
//! The bytes are the code part of [`xla_service::serialized`], which contains the module, its checksum and the
//! platform's name. Loading rebuilds buffers and thunks, which is fast, from the module and the recorded lowering. A
//! hash checks that they are unchanged.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use xla_hlo::{Error, Result};
use xla_service::OptimizedModule;
use xla_service::serialized;
use xla_service::thunks::{ArraySlice, ThunkKind, ThunkProgram};

use super::commands::{Command, CommandSequence, KernelArgument, LibraryCommand};
use super::compiled_for::{CodeFit, CompiledFor, capability};
use super::image::{CodeObject, KernelFunction, ModuleImage};
use super::recorded_lowering::{RecordedLowering, other_build};
use crate::gpu_profile::GpuProfile;

/// Version of the format of [`DeviceProgram`]; other versions are rejected.
const VERSION: u32 = 7;

/// Output of code generation for a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DeviceProgram {
    /// Target of the code.
    pub compiled_for: CompiledFor,
    /// GPU that thunks are placed for, regardless of the device that runs them.
    pub gpu: GpuProfile,
    /// Device code.
    pub image: ModuleImage,
    /// Cubins of the image's code objects, if an assembler was available.
    pub cubins: Vec<Option<Vec<u8>>>,
    /// Command sequences, by [`KernelRef::index`](xla_service::thunks::KernelRef::index).
    pub command_sequences: Vec<CommandSequence>,
    /// Results of the lowering, in the order of its calls.
    pub lowerings: Vec<RecordedLowering>,
    /// Hash of the thunks that the command sequences were lowered for.
    pub thunk_hash: [u8; 32],
}

impl DeviceProgram {
    /// Serialises a program of a platform.
    pub fn write(&self, platform: &str, module: &OptimizedModule) -> Result<Vec<u8>> {
        let mut code = VERSION.to_le_bytes().to_vec();
        let body = postcard::to_allocvec(self);
        code.extend(body.map_err(|e| Error::internal(format!("the program cannot be serialised: {e}")))?);
        serialized::write(platform, module, &code)
    }

    /// Reads the bytes of [`DeviceProgram::write`]. [`Error::InvalidArgument`] for bytes that are not a program, of
    /// another version or platform, or that refer to missing entries.
    pub fn read(platform: &str, bytes: &[u8]) -> Result<(OptimizedModule, DeviceProgram)> {
        let written = serialized::read(platform, bytes)?;
        let program = DeviceProgram::from_code(&written.code)?;
        Ok((written.module, program))
    }

    fn from_code(code: &[u8]) -> Result<DeviceProgram> {
        let Some((version, body)) = code.split_first_chunk() else {
            return Err(Error::invalid_argument("the program has no device code"));
        };
        let version = u32::from_le_bytes(*version);
        if version != VERSION {
            return Err(Error::invalid_argument(format!(
                "the program's device code has version {version}, but this build reads version {VERSION}; compile it again"
            )));
        }
        let garbled = |e| Error::invalid_argument(format!("the program's device code cannot be read: {e}"));
        let (program, rest): (DeviceProgram, &[u8]) = postcard::take_from_bytes(body).map_err(garbled)?;
        if !rest.is_empty() || !program.is_sound() {
            return Err(Error::invalid_argument("the program's device code refers to missing entries"));
        }
        Ok(program)
    }

    /// Whether all references are valid.
    fn is_sound(&self) -> bool {
        let ModuleImage { functions, objects } = &self.image;
        let functions_are = functions.iter().all(|KernelFunction { object, parameters, maps, .. }| {
            *object < objects.len() && maps.iter().all(|map| map.is_sound(*parameters))
        });
        functions_are
            && self.gpu.is_sound()
            && self.cubins.len() <= objects.len()
            && self.command_sequences.iter().all(|sequence| self.are_sound(sequence, &sequence.commands))
    }

    fn are_sound(&self, sequence: &CommandSequence, commands: &[Command]) -> bool {
        // Arrays are those of thunks, and looked up at launch.
        let argument = |argument: &KernelArgument| match argument {
            KernelArgument::Scratch(number) => *number < sequence.scratch.len(),
            KernelArgument::Counter(half) => *half < 2 && sequence.rng_delta.is_some(),
            KernelArgument::Array(_) | KernelArgument::Number(_) => true,
        };
        commands.iter().all(|command| match command {
            Command::Launch { function, blocks, arguments } => {
                let function = self.image.functions.get(*function);
                let takes = |function: &KernelFunction| {
                    function.parameters == arguments.len()
                        && function.maps.iter().all(|map| arguments.get(map.array as usize).is_some_and(is_memory))
                };
                *blocks > 0 && function.is_some_and(takes) && arguments.iter().all(argument)
            }
            Command::Copy { .. } => true,
            Command::Library(library) => {
                let LibraryCommand { call: _, arrays, before, then, otherwise } = &**library;
                let commands = [before, then, otherwise];
                arrays.iter().all(argument) && commands.into_iter().all(|commands| self.are_sound(sequence, commands))
            }
            Command::Choice(choice) => {
                let is_plain = |command: &Command| matches!(command, Command::Launch { .. } | Command::Copy { .. });
                let is_sound = |way: &Vec<Command>| way.iter().all(is_plain) && self.are_sound(sequence, way);
                !choice.ways.is_empty() && choice.ways.iter().all(is_sound)
            }
        })
    }

    /// Returns the architecture to assemble PTX for, on a GPU of this compute capability.
    pub fn architecture_on(&self, (major, minor): (u32, u32)) -> String {
        match &self.compiled_for {
            // Architecture-specific code is assembled for its own architecture only.
            CompiledFor::Gpu(architecture) if capability(architecture) == Some((major, minor, true)) => {
                architecture.clone()
            }
            CompiledFor::Gpu(_) | CompiledFor::Host { .. } => format!("sm_{major}{minor}"),
        }
    }

    /// Returns the code for a GPU of this compute capability: cubins where they fit, otherwise PTX, which the driver
    /// assembles. [`Error::InvalidArgument`] if the code cannot run there.
    pub fn image_for(&self, capability: (u32, u32)) -> Result<ModuleImage> {
        let fit = self.compiled_for.on_gpu(capability)?;
        let object = |(number, object): (usize, &CodeObject)| match self.cubins.get(number).and_then(Option::as_ref) {
            Some(cubin) if fit == CodeFit::MachineCode => CodeObject::Cubin(cubin.clone()),
            Some(_) | None => object.clone(),
        };
        let objects = self.image.objects.iter().enumerate().map(object).collect();
        Ok(ModuleImage { functions: self.image.functions.clone(), objects })
    }
}

/// Whether an argument is an address.
fn is_memory(argument: &KernelArgument) -> bool {
    match argument {
        KernelArgument::Array(_) | KernelArgument::Scratch(_) => true,
        KernelArgument::Counter(_) | KernelArgument::Number(_) => false,
    }
}

/// Hashes the thunks in order, with the offsets of their arrays, on which command sequences rely. Names are excluded:
/// writing a module renames duplicates in different computations.
pub(crate) fn thunk_hash(program: &ThunkProgram) -> [u8; 32] {
    let mut hash = Sha256::new();
    for thunk in program.sequence.walk() {
        let kind = match &thunk.kind {
            ThunkKind::Kernel(kernel) => format!("kernel {}", kernel.index),
            ThunkKind::LibraryCall(call) => format!("library call {}", call.index),
            ThunkKind::Copy => "copy".to_string(),
            ThunkKind::While { .. } => "while".to_string(),
            ThunkKind::Conditional { branches, .. } => format!("conditional {}", branches.len()),
            ThunkKind::Collective(name) => format!("collective {}", name.as_deref().unwrap_or_default()),
            ThunkKind::CustomCall => "custom call".to_string(),
            ThunkKind::HostFallback => "host".to_string(),
        };
        let arrays =
            thunk.operands.iter().chain(&thunk.results).map(|ArraySlice { slice, shape }| {
                format!("{} {} {} {shape}", slice.allocation, slice.offset, slice.size)
            });
        let arrays = arrays.collect::<Vec<_>>().join(", ");
        hash.update(format!("{} {kind} ({arrays}) {} {:?}\n", thunk.id, thunk.stream.0, thunk.waits));
    }
    hash.finalize().into()
}

/// Checks that the rebuilt thunks are those that the command sequences were lowered for.
pub(crate) fn check_thunks(thunks: &ThunkProgram, program: &DeviceProgram) -> Result<()> {
    if thunk_hash(thunks) == program.thunk_hash { Ok(()) } else { Err(other_build()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::commands::Choice;
    use crate::program::kernel_map::KernelMap;
    use crate::program::kernel_map::tests::{garbled, map};
    use crate::program::library_call::matmul::Precision;

    fn program() -> DeviceProgram {
        let function = KernelFunction {
            name: "k0_add".to_string(),
            object: 0,
            threads: 128,
            shared_bytes: 0,
            together: false,
            parameters: 2,
            maps: vec![map(), KernelMap { array: 1, ..map() }],
        };
        let launch = Command::Launch {
            function: 0,
            blocks: 3,
            arguments: vec![KernelArgument::Array(0), KernelArgument::Scratch(0)],
        };
        DeviceProgram {
            compiled_for: CompiledFor::Gpu("sm_80".to_string()),
            gpu: GpuProfile::usual(),
            image: ModuleImage { functions: vec![function], objects: vec![CodeObject::Ptx("text".to_string())] },
            cubins: vec![Some(vec![1, 2, 3])],
            command_sequences: vec![CommandSequence {
                scratch: vec![64],
                rng_delta: None,
                commands: vec![
                    launch.clone(),
                    Command::Copy { from: 0, to: 1 },
                    choice(vec![vec![launch.clone()], vec![]]),
                ],
            }],
            lowerings: vec![RecordedLowering::NotMine, RecordedLowering::Kernel(0, "add".to_string())],
            thunk_hash: [7; 32],
        }
    }

    fn choice(ways: Vec<Vec<Command>>) -> Command {
        Command::Choice(Box::new(Choice {
            name: "a product".to_string(),
            terms: 64,
            precision: Precision::Exact,
            ways,
        }))
    }

    fn code(program: &DeviceProgram) -> Vec<u8> {
        [&VERSION.to_le_bytes()[..], &postcard::to_allocvec(program).unwrap()].concat()
    }

    #[test]
    fn there_and_back() {
        assert_eq!(DeviceProgram::from_code(&code(&program())).unwrap(), program());
    }

    #[test]
    fn damage_is_told() {
        let whole = code(&program());
        for end in 0..whole.len() {
            let error = DeviceProgram::from_code(&whole[..end]).unwrap_err();
            assert!(matches!(error, Error::InvalidArgument(_)), "{end}: {error}");
        }
        // Any other bytes must not cause a panic.
        for place in 4..whole.len() {
            for byte in [0, 1, 0x7f, 0xff] {
                let mut garbled = whole.clone();
                garbled[place] = byte;
                let _ = DeviceProgram::from_code(&garbled);
            }
        }
    }

    #[test]
    fn references_to_nothing_are_refused() {
        let mut wrong = vec![program(); 10];
        wrong[0].image.objects.clear();
        wrong[1].image.functions[0].parameters = 3;
        wrong[2].image.functions.clear();
        wrong[3].command_sequences[0].scratch.clear();
        wrong[4].cubins.push(None);
        wrong[5].command_sequences[0].commands =
            vec![Command::Launch { function: 0, blocks: 3, arguments: vec![KernelArgument::Counter(0); 2] }];
        wrong[6].gpu.memory_bandwidth = 0;
        let launch = wrong[7].command_sequences[0].commands[0].clone();
        let nowhere = Command::Launch { function: 1, blocks: 3, arguments: Vec::new() };
        let choices = [vec![], vec![vec![launch], vec![nowhere]], vec![vec![choice(vec![vec![]])]]];
        for (number, ways) in choices.into_iter().enumerate() {
            wrong[7 + number].command_sequences[0].commands = vec![choice(ways)];
        }
        for program in wrong {
            let error = DeviceProgram::from_code(&code(&program)).unwrap_err();
            assert!(error.message().contains("missing entries"), "{program:?}: {error}");
        }
    }

    #[test]
    fn garbled_maps_are_refused() {
        for map in garbled() {
            let mut wrong = program();
            wrong.image.functions[0].maps[1] = map;
            let error = DeviceProgram::from_code(&code(&wrong)).unwrap_err();
            assert!(matches!(&error, Error::InvalidArgument(_)), "{error}");
            assert!(error.message().contains("missing entries"), "{wrong:?}: {error}");
        }
        let mut of_a_number = program();
        let number = vec![KernelArgument::Array(0), KernelArgument::Number(64)];
        of_a_number.command_sequences[0].commands = vec![Command::Launch { function: 0, blocks: 3, arguments: number }];
        assert!(DeviceProgram::from_code(&code(&of_a_number)).is_err());
        of_a_number.image.functions[0].maps.pop();
        assert_eq!(DeviceProgram::from_code(&code(&of_a_number)).unwrap(), of_a_number);
    }

    #[test]
    fn machine_code_is_taken_where_it_fits() {
        let objects = |gpu| program().image_for(gpu).unwrap().objects;
        assert_eq!(objects((8, 6)), [CodeObject::Cubin(vec![1, 2, 3])]);
        assert_eq!(objects((9, 0)), [CodeObject::Ptx("text".to_string())]);
        let without = DeviceProgram { cubins: Vec::new(), ..program() };
        assert_eq!(without.image_for((8, 0)).unwrap().objects, [CodeObject::Ptx("text".to_string())]);
    }
}
