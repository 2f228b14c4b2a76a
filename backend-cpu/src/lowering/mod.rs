//! One scheduled instruction to a kernel or a matrix product; equal ones share their code.

pub(crate) mod chunks;
pub(crate) mod convolution;
pub(crate) mod dot;
mod self_contained;
pub(crate) mod sort;

use xla_hlo::ops::{Convolution, Dot, Fusion, FusionKind, Op, Scatter, Sort, SparsityConfig, TopK};
use xla_hlo::{ArrayShape, InstrId, Module, Result};
use xla_llvm::fused::{KernelSource, KernelTable, ScatterPlan, is_scalar_computation};
use xla_llvm::order::key_of_comparator;
use xla_service::thunks::{
    ArraySlice, KernelRef, LibraryRef, Lowered, Lowering, LoweringContext, Thunk, ThunkKind, ThunkSequence,
};

use crate::runtime::{
    ConvolutionElement, DotElement, Epilogue, LibraryCall, LibraryFunction, NarrowTypes, cholesky_descriptor,
    convolution_descriptor, dot_descriptor, fft_descriptor, triangular_solve_descriptor,
};
use convolution::ConvolutionPlan;
use dot::DotPlan;
use sort::{Rows, SortOrder, SortPlan, TopKPlan};

/// Multiplications from which on the library is called; below, its packing costs more than the product.
pub(crate) const LIBRARY_DOT: f64 = 8192.0;

/// A call with its types and sizes for people.
type NamedCall = (LibraryCall, String);

/// A call of a library function, with kernels by their number.
fn call(function: LibraryFunction, descriptor: Vec<i64>, kernels: Vec<u32>) -> LibraryCall {
    LibraryCall { function, descriptor, kernels, epilogue: None }
}

/// Collects the kernels and library calls of the sequence.
pub(crate) struct CpuLowering<'m> {
    /// Kernels, by [`KernelRef::index`].
    pub kernels: KernelTable<'m>,
    /// Library calls, by [`LibraryRef::index`].
    pub library_calls: Vec<LibraryCall>,
    module: &'m Module,
    /// Whether contractions are kernels, however large, since there is no library to call.
    self_contained: bool,
}

impl<'m> CpuLowering<'m> {
    pub fn new(module: &'m Module) -> CpuLowering<'m> {
        CpuLowering { kernels: KernelTable::default(), library_calls: Vec::new(), module, self_contained: false }
    }

    /// For code without a library beside it.
    pub fn self_contained(module: &'m Module) -> CpuLowering<'m> {
        CpuLowering { self_contained: true, ..CpuLowering::new(module) }
    }

    fn kernel(&mut self, cx: &LoweringContext<'_>, source: KernelSource<'m>) -> Lowered {
        Lowered::Kernel(KernelRef { index: self.kernels.number(source), name: cx.instruction().name().to_string() })
    }

    /// `None` where the comparator cannot be compiled as a kernel.
    fn sort(&mut self, cx: &LoweringContext<'_>, sort: &Sort) -> Option<NamedCall> {
        let (order, kernels) = match key_of_comparator(self.module, sort.computation) {
            Some((array, key)) => (SortOrder::Key { array, key }, Vec::new()),
            None => {
                let comparator = KernelSource::of_computation(self.module, sort.computation, |_| false)?;
                (SortOrder::Comparator, vec![self.kernels.number(comparator)])
            }
        };
        let first = cx.operands.first()?;
        let rows = Rows::new(&first.shape, sort.dimension);
        let widths = cx.operands.iter().map(|o| o.shape.element_type().byte_width()).collect();
        let name = format!("{} of {}", rows.count, rows.length);
        let plan = SortPlan { rows, widths, order };
        Some((call(LibraryFunction::Sort, plan.to_numbers(), kernels), name))
    }

    fn top_k(&mut self, cx: &LoweringContext<'_>, op: &TopK) -> Option<NamedCall> {
        let plan = TopKPlan::new(&cx.operands.first()?.shape, op.k, op.largest)?;
        let name = format!("{} of {} x {}", plan.k, plan.rows, plan.length);
        Some((call(LibraryFunction::TopK, plan.to_numbers(), Vec::new()), name))
    }

    fn dot(&mut self, cx: &LoweringContext<'_>, dot: &Dot) -> Option<NamedCall> {
        let ([lhs, rhs], [out]) = (cx.operands, cx.results) else { return None };
        let ty = out.shape.element_type();
        let types = [lhs, rhs, out].map(|array| array.shape.element_type());
        let (function, elements) = match DotElement::of(ty).filter(|_| types == [ty; 3]) {
            Some(element) => (LibraryFunction::Dot, element as i64),
            None => (LibraryFunction::NarrowDot, NarrowTypes::of(types)?.to_number()),
        };
        let plan = DotPlan::new(&dot.dims, &lhs.shape, &rhs.shape, &out.shape);
        if plan.multiplications() < LIBRARY_DOT {
            return None;
        }
        let name = format!(
            "{ty} {}x{}x{}{}",
            plan.m.extent,
            plan.n.extent,
            plan.k.extent,
            if plan.matmuls() > 1 { format!(" x{}", plan.matmuls()) } else { String::new() }
        );
        let descriptor = dot_descriptor(elements, &plan);
        Some((call(function, descriptor, Vec::new()), name))
    }

    /// `None` where the combiner cannot be compiled into a kernel.
    fn scatter(&mut self, cx: &LoweringContext<'_>, scatter: &Scatter) -> Option<NamedCall> {
        let shapes: Vec<&ArrayShape> = cx.operands.iter().map(|operand| &operand.shape).collect();
        let (inputs, rest) = shapes.split_at_checked(cx.results.len())?;
        let (&indices, updates) = rest.split_first()?;
        let (&input, &update) = (inputs.first()?, updates.first()?);
        if !is_scalar_computation(self.module, scatter.computation) || !shapes.iter().all(|shape| shape.is_static()) {
            return None;
        }
        let work_items = ScatterPlan::new(scatter, input, indices, update).work_items();
        let bytes = inputs.iter().map(|shape| shape.element_count() * shape.element_type().byte_width());
        let descriptor = [work_items as i64].into_iter().chain(bytes.map(|bytes| bytes as i64)).collect();
        let (module, computation, root) = (self.module, cx.computation, cx.instruction);
        let operands = cx.instruction().operands().to_vec();
        let kernel = self.kernels.number(KernelSource { module, computation, root, inputs: operands, in_place: true });
        let name = cx.instruction().shape().without_layout().to_string();
        Some((call(LibraryFunction::Scatter, descriptor, vec![kernel]), name))
    }

    /// A convolution in the runtime; `None` for operands that are not stored in full, and for element types that a pass
    /// should have replaced but could not.
    fn convolution(&mut self, cx: &LoweringContext<'_>, op: &Convolution) -> Option<NamedCall> {
        let ([input, kernel], [out]) = (cx.operands, cx.results) else { return None };
        let ty = out.shape.element_type();
        let element = ConvolutionElement::of(ty)?;
        let same_types = input.shape.element_type() == ty && kernel.shape.element_type() == ty;
        if !same_types || op.sparsity != SparsityConfig::default() {
            return None;
        }
        let plan = ConvolutionPlan::new(op, &input.shape, &kernel.shape, &out.shape);
        let name = format!("{ty} {}x{}", plan.results(), plan.k());
        let descriptor = convolution_descriptor(element, &plan);
        Some((call(LibraryFunction::Convolution, descriptor, Vec::new()), name))
    }

    /// The library call that an operation becomes, if it becomes one.
    fn library(&mut self, cx: &LoweringContext<'_>) -> Option<NamedCall> {
        let instruction = cx.instruction();
        let first = || cx.operands.first().map(|operand| &operand.shape);
        let (function, descriptor) = match instruction.op() {
            Op::Dot(_) | Op::Convolution(_) | Op::Sort(_) | Op::TopK(_) | Op::Scatter(_) if self.self_contained => {
                return None;
            }
            Op::Dot(dot) => return self.dot(cx, dot),
            Op::Convolution(op) => return self.convolution(cx, op),
            Op::Fusion(fusion) if fusion.kind == FusionKind::Output => return self.epilogue(cx, fusion),
            Op::Sort(sort) => return self.sort(cx, sort),
            Op::TopK(op) => return self.top_k(cx, op),
            Op::Scatter(scatter) => return self.scatter(cx, scatter),
            Op::RngGetAndUpdateState(op) => (LibraryFunction::RandomState, vec![op.delta]),
            Op::Fft(op) => (LibraryFunction::Fft, fft_descriptor(op, first()?)),
            Op::Cholesky(op) => (LibraryFunction::Cholesky, cholesky_descriptor(op, first()?)?),
            Op::TriangularSolve(op) => {
                let right = &cx.operands.get(1)?.shape;
                (LibraryFunction::TriangularSolve, triangular_solve_descriptor(op, right)?)
            }
            _ => return None,
        };
        let name = first().map_or_else(|| instruction.shape().to_string(), ToString::to_string);
        Some((call(function, descriptor, Vec::new()), name))
    }

    /// A contraction in the library, and a kernel for its epilogue.
    fn epilogue(&mut self, cx: &LoweringContext<'_>, fusion: &Fusion) -> Option<NamedCall> {
        let graph = &self.module[fusion.computation];
        let contraction = graph.ids().find(|&id| matches!(graph[id].op(), Op::Dot(_) | Op::Convolution(_)))?;
        // It is computed where the result goes to.
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

    /// The number of a library call. Equal calls share their description.
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
        if let Some(call) = self.library(cx) {
            return Ok(self.library_call(call));
        }
        let alone = if self.self_contained { self_contained::source(self.module, cx) } else { None };
        Ok(match alone.or_else(|| KernelSource::of_instruction(self.module, cx)) {
            Some(source) => self.kernel(cx, source),
            None => Lowered::NotMine,
        })
    }
}

/// Thunks that need the host: custom calls and what it evaluates, in the order of their numbers.
pub(crate) fn host_calls(sequence: &ThunkSequence) -> impl Iterator<Item = &Thunk> {
    sequence.walk().filter(|t| matches!(t.kind, ThunkKind::CustomCall | ThunkKind::HostFallback))
}
