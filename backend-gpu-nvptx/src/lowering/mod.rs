//! Lowering of scheduled instructions to command sequences; equal kernels share their code.

pub(crate) mod codegen;
pub(crate) mod kernels;
pub(crate) mod libraries;

use xla_hlo::ops::{Collective, FusionKind, Op};
use xla_hlo::{ArrayShape, Computation, InstrId, Module, Opcode, Result, VerifiedModule};
use xla_llvm::fused::{KERNEL_KINDS, Kernel, KernelCode, KernelKind, KernelPlan, KernelSource, SingleKernel};
use xla_llvm::target::Target;
use xla_service::CompileOptions;
use xla_service::collective::OnDevice;
use xla_service::thunks::{ArraySlice, KernelRef, LibraryRef, LoopContext, Lowered, Lowering, LoweringContext};

use crate::lowering::codegen::blocks;
use crate::lowering::kernels::alternatives::with_alternatives;
use crate::lowering::kernels::helper::HelperProgram;
use crate::program::collective::plan;
use crate::program::commands::{Command, CommandSequence, KernelArgument, LibraryCommand};
use crate::program::compiled_for;
use crate::program::library_call::LibraryCall;
use kernels::{Kernels, NotGenerated};
use libraries::RecognizedCall;

/// Collector of the kernels and command sequences that thunks refer to.
pub(crate) struct GpuLowering<'m> {
    /// Kernels, by the numbers that plans use for functions.
    pub kernels: Kernels<'m>,
    module: &'m Module,
    target: Target,
    /// Compute capability of the GPU; `None` for the emulated GPU.
    capability: Option<(u32, u32)>,
    /// Whether 16-bit values may be rounded once after a chain of operations.
    excess_precision: bool,
    /// Whether matmuls get several tiled kernels, for autotuning to choose from.
    with_alternatives: bool,
    plans: Vec<Planned>,
}

/// Commands of a thunk whose kernels are not generated yet.
type Planned = CommandSequence<NotGenerated>;

impl<'m> GpuLowering<'m> {
    pub fn new(module: &'m Module, target: &Target, options: &CompileOptions) -> GpuLowering<'m> {
        GpuLowering {
            kernels: Kernels::default(),
            module,
            target: target.clone(),
            capability: compiled_for::capability(target.cpu()).map(|(major, minor, _)| (major, minor)),
            excess_precision: options.excess_precision,
            with_alternatives: options.autotune,
            plans: Vec::new(),
        }
    }

    /// Returns the command sequences, by [`KernelRef::index`] or [`LibraryRef::index`], once the kernels are generated.
    pub fn command_sequences(self, kernels: &[Kernel]) -> Result<Vec<CommandSequence>> {
        self.plans.into_iter().map(|plan| plan.generated(&|function| blocks(&kernels[function]))).collect()
    }

    /// Plans the launches of a fusion or another instruction, by the first kind of kernel that has a plan for it. A
    /// large matmul becomes a choice between alternatives if autotuning may measure them.
    fn launches(&mut self, cx: &LoweringContext<'_>) -> Option<Planned> {
        let operation = || KernelSource::of_operation(self.module, cx.computation, cx.instruction);
        let source = KernelSource::of_instruction(self.module, cx).unwrap_or_else(operation);
        let plan = KernelKind::first_plan(KERNEL_KINDS, &source, &self.target)?;
        let planned = CommandSequence::of_plan(&mut self.kernels, cx, plan);
        Some(match self.with_alternatives {
            true => with_alternatives(&mut self.kernels, cx, (&source, &self.target), planned),
            false => planned,
        })
    }

    /// Plans a contraction as a library call, its epilogue fused or in a separate kernel. The fallback is our own
    /// kernel.
    fn contraction(&mut self, cx: &LoweringContext<'_>) -> Result<Option<Planned>> {
        let (Some(capability), [result]) = (self.capability, cx.results) else { return Ok(None) };
        let Some((graph, id, places)) = contraction(self.module, cx) else { return Ok(None) };
        // The library writes directly to the result, so no operand may overlap it.
        let is_apart = |operand: &ArraySlice| !operand.slice.overlaps(&result.slice);
        if graph[id].shape().as_array() != Some(&result.shape) || !cx.operands.iter().all(is_apart) {
            return Ok(None);
        }
        let operands = places.iter().map(|&place| cx.operands.get(place).map(|operand| &operand.shape));
        let Some(operands) = operands.collect::<Option<Vec<&ArrayShape>>>() else { return Ok(None) };
        let found = libraries::find(graph[id].op(), &operands, &result.shape, capability);
        let Some(mut found) = found else { return Ok(None) };
        let Some(mut plan) = self.launches(cx) else { return Ok(None) };
        let whole = self.absorbed(cx, &found.call, (graph, id), capability);
        // It is known only at run time whether cuDNN has a plan for the whole epilogue.
        let may_be_apart = whole.is_none() || matches!(found.call, LibraryCall::Convolution(_));
        let goes_on = if may_be_apart { self.goes_on(cx, id) } else { None };
        if whole.is_none() && goes_on.is_none() {
            return Ok(None);
        }
        let mut otherwise = std::mem::take(&mut plan.commands);
        let result = cx.operands.len();
        // Only one of the two calls is executed, so their copies share scratch memory.
        let before = plan.scratch.clone();
        if let Some(goes_on) = goes_on {
            let mut call = self.call(&mut plan.scratch, found.clone(), &[&places[..], &[result]].concat())?;
            call.then.extend(goes_on);
            call.otherwise = otherwise;
            otherwise = vec![Command::Library(Box::new(call))];
        }
        if let Some((call, reads)) = whole {
            found.call = call;
            let last = found.arrays.len().saturating_sub(1);
            found.arrays.splice(last..last, vec![None; reads.len()]);
            plan.scratch = before;
            let mut call = self.call(&mut plan.scratch, found, &[&places[..], &reads, &[result]].concat())?;
            call.otherwise = otherwise;
            otherwise = vec![Command::Library(Box::new(call))];
        }
        plan.commands = otherwise;
        Ok(Some(plan))
    }

    /// Returns the library call with the whole epilogue of the fusion, and the operands of the thunk that the epilogue
    /// reads.
    fn absorbed(
        &self,
        cx: &LoweringContext<'_>,
        call: &LibraryCall,
        (graph, id): (&Computation, InstrId),
        capability: (u32, u32),
    ) -> Option<(LibraryCall, Vec<usize>)> {
        match cx.instruction().op() {
            Op::Fusion(_) => libraries::absorb(call, graph, id, capability, self.excess_precision),
            _ => None,
        }
    }

    /// Plans a Fourier transform as a library call. The library is available: otherwise the passes have expanded the
    /// transform.
    fn transform(&mut self, cx: &LoweringContext<'_>) -> Result<Option<Planned>> {
        let (Some(capability), [operand], [result]) = (self.capability, cx.operands, cx.results) else {
            return Ok(None);
        };
        if result.shape.dims().contains(&0) {
            return Ok(Some(Planned::default()));
        }
        let found = libraries::find(cx.instruction().op(), &[&operand.shape], &result.shape, capability);
        let Some(found) = found else { return Ok(None) };
        let mut plan = Planned::default();
        let call = self.call(&mut plan.scratch, found, &[0, 1])?;
        plan.commands.push(Command::Library(Box::new(call)));
        Ok(Some(plan))
    }

    /// Lowers a collective among several devices to NCCL, or leaves it to the service. The emulated GPU has no NCCL.
    fn collective(&self, cx: &LoweringContext<'_>) -> Result<Lowered> {
        if self.capability.is_none() || is_id(cx.instruction().op()) {
            return Ok(Lowered::NotMine);
        }
        let spec = OnDevice::spec_of(cx)?;
        let (name, overlap) = (cx.instruction().name(), overlap(cx));
        let plan = spec.and_then(|spec| plan(&spec).map_err(|declined| declined.to_string()));
        match overlap.map_or(plan, Err) {
            Ok(plan) => Ok(Lowered::Collective(format!("{plan} if NCCL is installed"))),
            Err(reason) => {
                tracing::debug!(instruction = name, %reason, "a collective passes through the host");
                Ok(Lowered::NotMine)
            }
        }
    }

    /// Plans the epilogue of a fusion's contraction as a kernel that updates the result in place. Empty for a
    /// contraction alone; `None` if no kernel can do it.
    fn goes_on(&mut self, cx: &LoweringContext<'_>, id: InstrId) -> Option<Vec<Command<NotGenerated>>> {
        let Op::Fusion(fusion) = cx.instruction().op() else { return Some(Vec::new()) };
        let mut source = KernelSource::of_computation(self.module, fusion.computation, |other| other == id)?;
        source.inputs.push(id);
        let result = cx.operands.len();
        let arguments = (0..result).chain([result, result]).map(KernelArgument::Array).collect();
        let code = SingleKernel::new(&source, &self.target)?.code(&source, ());
        let kernel = self.kernels.number(code);
        Some(vec![self.kernels.launch(kernel, arguments)])
    }

    /// Plans a library call on arrays of the thunk. Operands and result are copied if the library requires another
    /// layout.
    fn call(
        &mut self,
        scratch: &mut Vec<usize>,
        found: RecognizedCall,
        places: &[usize],
    ) -> Result<LibraryCommand<NotGenerated>> {
        let RecognizedCall { call, arrays, scaling } = found;
        let mut call =
            LibraryCommand { call, arrays: Vec::new(), before: Vec::new(), then: Vec::new(), otherwise: Vec::new() };
        let last = places.len().saturating_sub(1);
        for (number, (&place, how)) in places.iter().zip(arrays).enumerate() {
            let place = KernelArgument::Array(place);
            let Some(how) = how else {
                call.arrays.push(place);
                continue;
            };
            let copy = KernelArgument::Scratch(scratch.len());
            call.arrays.push(copy);
            let (bytes, commands, arguments) = match number == last {
                true => (how.from().byte_size(), &mut call.then, vec![copy, place]),
                false => (how.to().byte_size(), &mut call.before, vec![place, copy]),
            };
            scratch.push(bytes);
            commands.push(helper(&mut self.kernels, how.program()?, arguments));
        }
        if let (Some(scaling), Some(&result)) = (scaling, places.last()) {
            call.then.push(helper(&mut self.kernels, scaling.program()?, vec![KernelArgument::Array(result); 2]));
        }
        Ok(call)
    }

    /// Records the read-only arguments of launches: operands that do not overlap a result. Concurrent thunks do not
    /// write to any array of this thunk.
    fn record_unwritten(&mut self, cx: &LoweringContext<'_>, commands: &[Command<NotGenerated>]) {
        let is_unwritten = |argument: &KernelArgument| match *argument {
            KernelArgument::Array(number) => cx
                .operands
                .get(number)
                .is_some_and(|operand| !cx.results.iter().any(|result| operand.slice.overlaps(&result.slice))),
            KernelArgument::Scratch(_) | KernelArgument::Counter(_) | KernelArgument::Number(_) => false,
        };
        for command in commands {
            match command {
                Command::Launch { function, arguments, .. } => {
                    let unwritten = (0..).zip(arguments).filter(|(_, argument)| is_unwritten(argument));
                    self.kernels.launched(*function, unwritten.map(|(number, _)| number).collect());
                }
                Command::Copy { .. } => {}
                Command::Library(call) => {
                    for commands in [&call.before, &call.then, &call.otherwise] {
                        self.record_unwritten(cx, commands);
                    }
                }
                Command::Choice(choice) => choice.ways.iter().for_each(|way| self.record_unwritten(cx, way)),
            }
        }
    }
}

impl Lowering for GpuLowering<'_> {
    fn lower(&mut self, cx: &LoweringContext<'_>) -> Result<Lowered> {
        let plan = match cx.instruction().op() {
            Op::Collective(_) if !self.module.is_for_one_device() => return self.collective(cx),
            Op::Fft(_) => self.transform(cx)?,
            _ => match self.contraction(cx)? {
                Some(plan) => Some(plan),
                None => self.launches(cx),
            },
        };
        let Some(plan) = plan else { return Ok(Lowered::NotMine) };
        self.record_unwritten(cx, &plan.commands);
        let name = cx.instruction().name().to_string();
        let index = self.plans.len() as u32;
        let lowered = match plan.library_call() {
            Some(call) => {
                let epilogue =
                    if cx.instruction().opcode() == Opcode::Fusion { format!(", {name}") } else { String::new() };
                Lowered::LibraryCall(LibraryRef { index, op: call.op(), name: format!("{call}{epilogue}") })
            }
            None => Lowered::Kernel(KernelRef { index, name }),
        };
        self.plans.push(plan);
        Ok(lowered)
    }

    fn has_collectives(&self) -> bool {
        true
    }

    fn lower_loop(&mut self, cx: &LoopContext<'_>) -> Result<Option<KernelRef>> {
        let Some(plan) = kernels::block_loop::plan(&mut self.kernels, self.module, cx, &self.target) else {
            return Ok(None);
        };
        let name = self.module[cx.computation][cx.instruction].name().to_string();
        let index = self.plans.len() as u32;
        self.plans.push(plan);
        Ok(Some(KernelRef { index, name }))
    }
}

/// Whether an operation returns the id of a replica or partition.
fn is_id(op: &Op) -> bool {
    matches!(op, Op::Collective(Collective::ReplicaId | Collective::PartitionId))
}

/// Returns an error text if a result overlaps an operand of another number, or only partially. Equal places are
/// permitted for the operations that may be in place.
fn overlap(cx: &LoweringContext<'_>) -> Option<String> {
    let Op::Collective(op) = cx.instruction().op() else { return None };
    let may_be_in_place = matches!(op, Collective::AllReduce(_) | Collective::CollectiveBroadcast { .. });
    let conflicts = |(r, result): (usize, &ArraySlice)| {
        cx.operands.iter().enumerate().any(|(o, operand)| {
            let is_same = may_be_in_place && o == r && operand.slice == result.slice;
            operand.slice.overlaps(&result.slice) && !is_same
        })
    };
    cx.results.iter().enumerate().any(conflicts).then(|| "results overlap operands in memory".to_string())
}

/// Plans the launch of a helper program.
fn helper(kernels: &mut Kernels<'_>, program: VerifiedModule, arguments: Vec<KernelArgument>) -> Command<NotGenerated> {
    let kernel = kernels.number(KernelCode::new(HelperProgram::new(program)));
    kernels.launch(kernel, arguments)
}

/// Returns the dot or convolution that an instruction is or that its fusion contains, and the operands of the
/// instruction that it reads.
fn contraction<'m>(module: &'m Module, cx: &LoweringContext<'_>) -> Option<(&'m Computation, InstrId, Vec<usize>)> {
    let is_contraction = |op: &Op| matches!(op, Op::Dot(_) | Op::Convolution(_));
    match cx.instruction().op() {
        Op::Fusion(fusion) if fusion.kind == FusionKind::Output => {
            let graph = &module[fusion.computation];
            let id = graph.ids().find(|&id| is_contraction(graph[id].op()))?;
            let place = |&operand: &InstrId| graph.parameters().iter().position(|&p| p == operand);
            Some((graph, id, graph[id].operands().iter().map(place).collect::<Option<_>>()?))
        }
        op if is_contraction(op) => {
            let graph = &module[cx.computation];
            Some((graph, cx.instruction, (0..cx.operands.len()).collect()))
        }
        _ => None,
    }
}
