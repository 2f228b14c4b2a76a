//! Lowers each scheduled instruction to a kernel or a library call; equal ones share their code.

mod alone;
mod choice;
mod scalar_loop;

use xla_cpu_runtime::calls::{self, NamedCall};
use xla_cpu_runtime::{Epilogue, LibraryCall};
use xla_hlo::ops::{Dot, Fusion, FusionKind, Op, Scatter, Sort};
use xla_hlo::{ArrayShape, InstrId, Module, Result};
use xla_llvm::fused::{KernelSource, KernelTable, ScatterPlan, is_scalar_computation};
use xla_llvm::target::Target;
use xla_service::CompileOptions;
use xla_service::thunks::{
    ArraySlice, KernelRef, LibraryRef, LoopContext, Lowered, Lowering, LoweringContext, Thunk, ThunkKind, ThunkSequence,
};

/// Number of multiplications from which a dot calls the library; for smaller dots, packing costs more than the product.
pub(crate) const LIBRARY_DOT: f64 = 8192.0;

/// Lowering of a module, with the kernels and library calls that it has collected.
pub(crate) struct CpuLowering<'m> {
    /// Kernels, indexed by [`KernelRef::index`].
    pub kernels: KernelTable<'m>,
    /// Library calls, indexed by [`LibraryRef::index`].
    pub library_calls: Vec<LibraryCall>,
    module: &'m Module,
    /// Whether all contractions become kernels, because there is no library to call.
    self_contained: bool,
    /// Number of threads that run the program.
    threads: usize,
    /// Target of the kernels, and whether they may flush subnormals.
    target: Option<(Target, bool)>,
}

impl<'m> CpuLowering<'m> {
    /// Creates a lowering for code that calls the runtime library, for a target and compile options.
    pub fn new(module: &'m Module, target: &Target, options: &CompileOptions) -> CpuLowering<'m> {
        let target = Some((target.clone(), options.flush_denormals));
        CpuLowering { threads: options.thread_count(), target, ..CpuLowering::of(module, false) }
    }

    /// Creates a lowering for code without the runtime library.
    pub fn self_contained(module: &'m Module) -> CpuLowering<'m> {
        CpuLowering::of(module, true)
    }

    fn of(module: &'m Module, self_contained: bool) -> CpuLowering<'m> {
        let (kernels, library_calls) = (KernelTable::default(), Vec::new());
        CpuLowering { kernels, library_calls, module, self_contained, threads: 1, target: None }
    }

    fn kernel(&mut self, cx: &LoweringContext<'_>, source: KernelSource<'m>) -> Lowered {
        Lowered::Kernel(KernelRef { index: self.kernels.number(source), name: cx.instruction().name().to_string() })
    }

    /// Returns the library call of a sort; `None` if its comparator cannot be compiled to a kernel.
    fn sort(&mut self, cx: &LoweringContext<'_>, sort: &Sort) -> Option<NamedCall> {
        calls::sort(self.module, cx, sort, || {
            let comparator = KernelSource::of_computation(self.module, sort.computation, |_| false)?;
            Some(self.kernels.number(comparator))
        })
    }

    fn dot(&mut self, cx: &LoweringContext<'_>, dot: &Dot) -> Option<NamedCall> {
        calls::dot(cx, dot, LIBRARY_DOT)
    }

    /// Returns the library call of a scatter; `None` if its combiner cannot be compiled into a kernel.
    fn scatter(&mut self, cx: &LoweringContext<'_>, scatter: &Scatter) -> Option<NamedCall> {
        let shapes: Vec<&ArrayShape> = cx.operands.iter().map(|operand| &operand.shape).collect();
        let (inputs, rest) = shapes.split_at_checked(cx.results.len())?;
        let (&indices, updates) = rest.split_first()?;
        let (&input, &update) = (inputs.first()?, updates.first()?);
        if !is_scalar_computation(self.module, scatter.computation) || !shapes.iter().all(|shape| shape.is_static()) {
            return None;
        }
        let work_items = ScatterPlan::new(scatter, input, indices, update).work_items();
        let (module, computation, root) = (self.module, cx.computation, cx.instruction);
        let operands = cx.instruction().operands().to_vec();
        let kernel = self.kernels.number(KernelSource {
            module,
            computation,
            root,
            inputs: operands,
            in_place: true,
            overwrites: Vec::new(),
            scalar_loop: None,
        });
        Some(calls::scatter(cx, work_items, kernel))
    }

    /// Returns the library call that implements an operation, if there is one.
    fn library(&mut self, cx: &LoweringContext<'_>) -> Option<NamedCall> {
        match cx.instruction().op() {
            Op::Dot(_) | Op::Convolution(_) | Op::Sort(_) | Op::TopK(_) | Op::Scatter(_) if self.self_contained => None,
            Op::Dot(dot) => self.dot(cx, dot),
            Op::Convolution(op) => calls::convolution(cx, op),
            Op::Fusion(fusion) if fusion.kind == FusionKind::Output => self.epilogue(cx, fusion),
            Op::Sort(sort) => self.sort(cx, sort),
            Op::TopK(op) => calls::top_k(cx, op),
            Op::Scatter(scatter) => self.scatter(cx, scatter),
            _ => calls::alone(cx),
        }
    }

    /// Returns the library call of a contraction, with a kernel for its epilogue.
    fn epilogue(&mut self, cx: &LoweringContext<'_>, fusion: &Fusion) -> Option<NamedCall> {
        let graph = &self.module[fusion.computation];
        let contraction = graph.ids().find(|&id| matches!(graph[id].op(), Op::Dot(_) | Op::Convolution(_)))?;
        // The contraction writes to the memory of the result, so the shapes must match.
        if graph[contraction].shape() != graph[graph.root()].shape() {
            return None;
        }
        let place = |&operand: &InstrId| graph.parameters().iter().position(|&p| p == operand);
        let places: Vec<usize> = graph[contraction].operands().iter().map(place).collect::<Option<_>>()?;
        let operands: Vec<ArraySlice> = places.iter().map(|&p| cx.operands.get(p).cloned()).collect::<Option<_>>()?;
        let alone = LoweringContext {
            module: cx.module,
            computation: fusion.computation,
            instruction: contraction,
            operands: &operands,
            results: cx.results,
        };
        let (mut call, name) = self.library(&alone)?;
        let mut source = KernelSource::of_computation(self.module, fusion.computation, |id| id == contraction)?;
        source.inputs.push(contraction);
        call.epilogue = Some(Epilogue { operands: places, kernel: self.kernels.number(source) });
        Some((call, format!("{name}, {}", cx.instruction().name())))
    }

    /// Whether a kernel computes the operation faster than the library.
    fn is_sooner_as_kernel(&self, cx: &LoweringContext<'_>) -> bool {
        let by_groups = |(target, flush_denormals): &(Target, bool)| {
            choice::multiplies_groups(self.module, cx, target, *flush_denormals)
        };
        choice::is_sooner_as_kernel(self.module, cx, self.threads) || self.target.as_ref().is_some_and(by_groups)
    }

    /// Stores a library call in the table. Equal calls share one entry.
    fn library_call(&mut self, (call, name): NamedCall) -> Lowered {
        let op = call.function.op();
        let index = self.library_calls.iter().position(|known| *known == call).unwrap_or_else(|| {
            self.library_calls.push(call);
            self.library_calls.len() - 1
        });
        Lowered::LibraryCall(LibraryRef { index: index as u32, op, name })
    }
}

impl Lowering for CpuLowering<'_> {
    fn lower(&mut self, cx: &LoweringContext<'_>) -> Result<Lowered> {
        let is_kernel = self.self_contained || self.is_sooner_as_kernel(cx);
        let source = || alone::source(self.module, cx).or_else(|| KernelSource::of_instruction(self.module, cx));
        if is_kernel && let Some(source) = source() {
            return Ok(self.kernel(cx, source));
        }
        if let Some(call) = self.library(cx) {
            return Ok(self.library_call(call));
        }
        Ok(match KernelSource::of_instruction(self.module, cx) {
            Some(source) => self.kernel(cx, source),
            None => Lowered::NotMine,
        })
    }

    fn has_collectives(&self) -> bool {
        !self.self_contained
    }

    fn lower_loop(&mut self, cx: &LoopContext<'_>) -> Result<Option<KernelRef>> {
        let name = || self.module[cx.computation][cx.instruction].name().to_string();
        let source = scalar_loop::source(self.module, cx);
        Ok(source.map(|source| KernelRef { name: name(), index: self.kernels.number(source) }))
    }
}

/// Returns the thunks that run on the host (collectives, custom calls and fallbacks), in order of their numbers.
pub(crate) fn host_calls(sequence: &ThunkSequence) -> impl Iterator<Item = &Thunk> {
    let is_on_host =
        |kind: &ThunkKind| matches!(kind, ThunkKind::Collective(_) | ThunkKind::CustomCall | ThunkKind::HostFallback);
    sequence.walk().filter(move |thunk| is_on_host(&thunk.kind))
}
