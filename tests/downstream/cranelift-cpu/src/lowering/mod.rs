//! Lowering of one scheduled instruction to a library call or a kernel; all others use the host fallback.

mod arithmetic;
mod convert;
mod element;
mod fold;
mod indexing;
mod movement;

use xla::hlo::ops::{Op, Scatter, Sort};
use xla::hlo::{InstrId, Module, Result};
use xla::service::thunks::{KernelRef, LibraryRef, Lowered, Lowering, LoweringContext};
use xla_cpu_runtime::LibraryCall;
use xla_cpu_runtime::calls::{self, NamedCall};

use crate::builder::KernelBuilder;
use crate::code::CodeBuilder;
use crate::launcher::CraneliftLauncher;
use crate::machine::Work;
use element::Expression;

/// Collects kernels and library calls of a module.
pub(crate) struct CraneliftLowering<'m> {
    module: &'m Module,
    code: CodeBuilder,
    calls: Vec<LibraryCall>,
}

impl<'m> CraneliftLowering<'m> {
    pub fn new(module: &'m Module) -> Result<CraneliftLowering<'m>> {
        Ok(CraneliftLowering { module, code: CodeBuilder::new()?, calls: Vec::new() })
    }

    /// Links all lowered kernels.
    pub fn finish(self, threads: usize) -> Result<CraneliftLauncher> {
        Ok(CraneliftLauncher { code: self.code.finish()?, calls: self.calls, threads })
    }

    /// Lowers an operation to a library call, if there is one.
    fn library(&mut self, cx: &LoweringContext<'_>) -> Result<Option<NamedCall>> {
        Ok(match cx.instruction().op() {
            Op::Dot(op) => calls::dot(cx, op, 0.0),
            Op::Convolution(op) => calls::convolution(cx, op),
            Op::TopK(op) => calls::top_k(cx, op),
            Op::Sort(op) => self.sort(cx, op)?,
            Op::Scatter(op) => self.scatter(cx, op)?,
            _ => calls::alone(cx),
        })
    }

    fn sort(&mut self, cx: &LoweringContext<'_>, op: &Sort) -> Result<Option<NamedCall>> {
        if let Some(by_key) = calls::sort(self.module, cx, op, || None) {
            return Ok(Some(by_key));
        }
        let comparator = &self.module[op.computation];
        let parameters = comparator.parameters().len();
        let kernel = self.code.define(parameters + 1, |k| {
            let mut expression = Expression::of_arrays(self.module, comparator, comparator.parameters(), k)?;
            let answer = expression.element(k, comparator.root(), &[])?;
            let result = k.array(parameters, comparator.result_shape().as_array()?);
            k.store(answer, &result, &[]);
            Some(Work { items: 1, elements: 1 })
        })?;
        Ok(kernel.and_then(|kernel| calls::sort(self.module, cx, op, || Some(kernel))))
    }

    fn scatter(&mut self, cx: &LoweringContext<'_>, op: &Scatter) -> Result<Option<NamedCall>> {
        let arrays = cx.operands.len() + cx.results.len();
        let kernel = self.code.define(arrays, |k| indexing::scatter(k, self.module, cx, op))?;
        Ok(kernel.map(|kernel| calls::scatter(cx, 1, kernel)))
    }

    fn kernel(&mut self, cx: &LoweringContext<'_>) -> Result<Option<u32>> {
        let arrays = cx.operands.len() + cx.results.len();
        self.code.define(arrays, |k| match cx.instruction().op() {
            Op::Fusion(fusion) => {
                let graph = &self.module[fusion.computation];
                let expression = Expression::of_arrays(self.module, graph, graph.parameters(), k)?;
                store_all(k, cx, expression, graph.root())
            }
            _ => {
                let (graph, instruction) = (&self.module[cx.computation], cx.instruction());
                let expression = Expression::of_arrays(self.module, graph, instruction.operands(), k)?;
                store_all(k, cx, expression, cx.instruction)
            }
        })
    }
}

impl Lowering for CraneliftLowering<'_> {
    fn lower(&mut self, cx: &LoweringContext<'_>) -> Result<Lowered> {
        if cx.operands.iter().chain(cx.results).any(|array| !array.shape.is_static()) {
            return Ok(Lowered::NotMine);
        }
        if let Some((call, name)) = self.library(cx)? {
            let (index, op) = (self.calls.len() as u32, call.function.op());
            self.calls.push(call);
            return Ok(Lowered::LibraryCall(LibraryRef { index, op, name }));
        }
        let name = cx.instruction().name().to_string();
        Ok(self.kernel(cx)?.map_or(Lowered::NotMine, |index| Lowered::Kernel(KernelRef { index, name })))
    }
}

/// Emits loops over the elements of the results, which have equal dimensions, and stores the elements of `root`: an
/// array, or a tuple of arrays. Iterations of the first loop are work items.
fn store_all(
    k: &mut KernelBuilder<'_>,
    cx: &LoweringContext<'_>,
    mut expression: Expression<'_>,
    root: InstrId,
) -> Option<Work> {
    let dims = cx.results.first()?.shape.dims();
    if cx.results.iter().any(|result| result.shape.dims() != dims) {
        return None;
    }
    let spread = dims.iter().position(|&extent| extent > 1).unwrap_or(0);
    let mut at = Vec::with_capacity(dims.len());
    let mut loops = Vec::with_capacity(dims.len());
    for (d, &extent) in dims.iter().enumerate() {
        let this = if d == spread { k.begin_loop(k.items, &[]) } else { k.begin_loop_of(extent, &[]) };
        at.push(this.index);
        loops.push(this);
    }
    let values = expression.elements(k, root, &at)?;
    if values.len() != cx.results.len() {
        return None;
    }
    // All values are computed before the first one is stored, since results may alias operands.
    for (i, (value, result)) in values.into_iter().zip(cx.results).enumerate() {
        let array = k.array(cx.operands.len() + i, &result.shape);
        k.store(value, &array, &at);
    }
    while let Some(this) = loops.pop() {
        k.end_loop(this, &[]);
    }
    let elements = dims.iter().product::<usize>();
    let items = dims.get(spread).copied().unwrap_or(1);
    Some(Work { items, elements: elements.checked_div(items).unwrap_or(0) })
}
