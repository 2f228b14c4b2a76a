//! Splits windows by dimension: a reduction over multi-dimensional windows becomes one reduction per dimension.
//!
//! ```text
//! reduce-window(x, init), size=AxB     p = reduce-window(x, neutral), size=Ax1
//!                                ─>    reduce-window(p, init), size=1xB
//! ```
//!
//! Each result then takes A + B steps instead of A * B.

use xla_hlo::ops::{BinaryOp, ReduceWindow, Window, WindowDim, combiner_identity, simple_combiner};
use xla_hlo::{CompId, InstrId, Literal, Module, Op, Result};

use crate::rewrite::builder::Inserter;
use crate::rewrite::graph::{is_free, is_static};
use crate::rewrite::replace::replace_one;
use crate::{Pass, PassContext};

/// Splits a `reduce-window` if that saves most of the work. The combiner must permit it by the evaluator's rule
/// ([`ReduceWindow::dimension_order`]). Partial results are rounded to the combiner's type in both.
pub struct SplitWindows;

/// Number of steps that cost as much as writing and reading an element of a partial result.
const STEPS_PER_ELEMENT: f64 = 8.0;

/// Minimum factor by which the number of steps must shrink.
const WORTH_IT: f64 = 2.0;

impl Pass for SplitWindows {
    fn name(&self) -> &'static str {
        "split-windows"
    }

    fn rewrite(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<()> {
        let computations: Vec<CompId> = module.ids().collect();
        for computation in computations {
            for id in module[computation].post_order() {
                let Some(split) = WindowSplit::of(module, computation, id) else { continue };
                if cx.allow_rewrite(self.name()) {
                    replace_one(module, computation, id, |at, id| split.write(at, id))?;
                }
            }
        }
        Ok(())
    }
}

struct WindowSplit {
    combiner: CompId,
    dims: Vec<WindowDim>,
    /// Dimensions in which windows have several elements, in the order of their reduction.
    order: Vec<usize>,
    /// Initial value of partial results.
    neutral: Neutral,
}

enum Neutral {
    Value(Literal),
    /// The initial value, which may be combined several times.
    Init,
}

impl WindowSplit {
    /// Returns the split of an instruction's windows; `None` if it is not split.
    fn of(module: &Module, computation: CompId, id: InstrId) -> Option<WindowSplit> {
        let graph = &module[computation];
        let Op::ReduceWindow(op) = graph[id].op() else { return None };
        let (base, output) = (graph[graph[id].operand(0)].shape().as_array()?, graph[id].shape().as_array()?);
        if !is_static(graph, id) || !is_free(&graph[id]) {
            return None;
        }
        let order = op.dimension_order(module, base.dims(), output.dims())?;
        let dims = op.window.dims_for(base.rank()).ok()?;
        if order.len() < 2 || !saves_work(&dims, &order, base.dims(), output.dims()) {
            return None;
        }
        let (ty, init) = (output.element_type(), graph[graph[id].operand(1)].shape().element_type()?);
        let neutral = match simple_combiner(&module[op.computation])? {
            BinaryOp::Maximum | BinaryOp::Minimum | BinaryOp::And | BinaryOp::Or if init == ty => Neutral::Init,
            op => Neutral::Value(Literal::scalar(ty, combiner_identity(op, ty)?)),
        };
        Some(WindowSplit { combiner: op.computation, dims, order, neutral })
    }

    fn write(&self, at: &mut Inserter<'_>, id: InstrId) -> Result<InstrId> {
        let (mut value, init) = (at.graph()[id].operand(0), at.graph()[id].operand(1));
        let neutral = match &self.neutral {
            Neutral::Value(literal) => at.literal(literal.clone())?,
            Neutral::Init => init,
        };
        for (i, &d) in self.order.iter().enumerate() {
            let mut dims = vec![WindowDim::UNIT; self.dims.len()];
            dims[d] = self.dims[d];
            let begin = if i + 1 == self.order.len() { init } else { neutral };
            value = at.add(ReduceWindow { window: Window { dims }, computation: self.combiner }, [value, begin])?;
        }
        Ok(value)
    }
}

fn saves_work(window: &[WindowDim], order: &[usize], base: &[usize], output: &[usize]) -> bool {
    let elements = |dims: &[usize]| dims.iter().map(|&n| n as f64).product::<f64>();
    let at_once = elements(output) * order.iter().map(|&d| window[d].size as f64).product::<f64>();
    let mut dims = base.to_vec();
    let step = |&d: &usize| {
        dims[d] = output[d];
        elements(&dims) * (window[d].size as f64 + STEPS_PER_ELEMENT)
    };
    at_once >= WORTH_IT * order.iter().map(step).sum::<f64>()
}
