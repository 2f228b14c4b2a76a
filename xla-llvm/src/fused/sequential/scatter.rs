//! Scatter: loads the start of each window of the updates, checks its bounds, and combines it into the arrays.
//!
//! One loop nest: the batch dimensions in row-major order, so that each element receives its updates in that order;
//! then the dimensions of a window; then the lanes of a run.

use std::fmt;

use xla_hlo::ops::{Op, Scatter};
use xla_hlo::{ArrayShape, ElementKind, ElementType, Error, InstrId, Result};

use crate::elemental::{self, Value};
use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::core::address::compute_bits;
use crate::fused::emitter::FusedEmitter;
use crate::fused::kernel::Launch;
use crate::fused::loops::affine::AffineExpr;
use crate::fused::loops::frame::{Frame, WorkItems};
use crate::fused::loops::range::Range;
use crate::fused::scatter_plan::{Apart, ScatterPlan};
use crate::fused::strategy::{Choice, Strategy};
use crate::fused::tuning::fitting;
use crate::fused::value::Source;
use crate::lanes::Lanes;

/// Scatter of update windows: sequential, except between windows that are known to be disjoint.
pub(crate) struct WindowScatter;

impl fmt::Display for WindowScatter {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

impl Strategy for WindowScatter {
    fn names() -> &'static [&'static str] {
        &["scatter"]
    }

    fn choose(choice: &Choice<'_, '_, '_, '_>) -> Result<Option<WindowScatter>> {
        Ok(matches!(choice.root(), Op::Scatter(_)).then_some(WindowScatter))
    }

    fn emit<'ctx>(
        &self,
        kernel: &FusedKernel<'_, '_>,
        emitter: &Emitter<'ctx>,
        frame: Frame<'_, 'ctx>,
    ) -> Result<Launch> {
        kernel.emit_scatter(emitter, frame).map(Launch::alone)
    }
}

impl FusedKernel<'_, '_> {
    /// Emits the body of a scatter's function, as described by [`crate::fused::emit_kernel`], and returns the number of
    /// work items.
    pub(crate) fn emit_scatter<'ctx>(&self, emitter: &Emitter<'ctx>, frame: Frame<'_, 'ctx>) -> Result<u64> {
        let (graph, root) = (self.graph(), self.source.root);
        let Op::Scatter(op) = graph[root].op() else {
            return Err(Error::internal(format!("%{} is not a scatter", graph[root].name())));
        };
        let operands = graph[root].operands();
        let count = operands.len() / 2;
        let shapes = operands.iter().map(|&id| graph[id].shape().expect_array()).collect::<Result<Vec<_>>>()?;
        let (&input, &indices, &update) = match (shapes.first(), shapes.get(count), shapes.last()) {
            (Some(input), Some(indices), Some(update)) if count > 0 => (input, indices, update),
            _ => return Err(Error::internal(format!("scatter %{} has no arrays", graph[root].name()))),
        };
        let in_place = self.source.in_place;
        let plan = ScatterPlan::new(op, input, indices, update);
        let plan = if in_place { plan } else { plan.alone() };
        if in_place && plan.work_items() == 0 || input.element_count() == 0 {
            return Ok(0);
        }
        let mut fused = FusedEmitter::new(emitter, self.source.module, self.source.computation)?;
        let bases = frame.pointers;
        if !in_place {
            if emitter.target().simt().is_some() {
                return Err(Error::internal(format!(
                    "scatter %{} on a target with threads is not in place",
                    graph[root].name()
                )));
            }
            for (i, shape) in shapes[..count].iter().enumerate() {
                fused.copy_array(shape, [bases[i], bases[2 * count + 1 + i]])?;
            }
            if plan.work_items() == 0 {
                return Ok(1);
            }
        }
        // Treat each array as one row of elements.
        let line = |pointer: usize, shape: &ArrayShape| Source {
            base: bases[pointer],
            shape: ArrayShape::new(shape.element_type(), [shape.element_count()]),
        };
        let bits = shapes.iter().map(|shape| compute_bits(shape.element_type())).max().unwrap_or(32);
        let windows = |share| Windows {
            op,
            root,
            plan: &plan,
            arrays: (0..count).map(|i| line(2 * count + 1 + i, shapes[i])).collect(),
            indices: line(count, indices),
            updates: (0..count).map(|i| line(count + 1 + i, shapes[count + 1 + i])).collect(),
            share,
            width: fitting(emitter.target().lanes(bits), plan.run as u64),
        };
        match frame.work_items {
            WorkItems::Range { begin, end } => {
                windows(Share { begin, count: end - begin }).each(&mut fused, 0, Place::default())?;
            }
            WorkItems::Thread | WorkItems::Group { .. } | WorkItems::Block { .. } | WorkItems::BlockGroups { .. } => {
                fused.for_work_items(frame.work_items, plan.work_items(), &mut |s, item| {
                    let number = s.number_of(&AffineExpr::symbol(item))?;
                    let share = Share { begin: s.lanes_of(number), count: s.number(1) };
                    windows(share).each(s, 0, Place::default())
                })?
            }
        }
        Ok(plan.work_items())
    }
}

/// Work items that a call of the kernel executes.
#[derive(Clone, Copy)]
struct Share<'e, 'ctx> {
    begin: Lanes<'e, 'ctx>,
    count: Lanes<'e, 'ctx>,
}

/// Positions of a window in the indices, in the updates, and in the inputs as far as they are known statically.
#[derive(Clone, Default)]
struct Place {
    indices: AffineExpr,
    updates: AffineExpr,
    inputs: AffineExpr,
}

/// Windows of a scatter.
struct Windows<'a, 'e, 'ctx> {
    op: &'a Scatter,
    root: InstrId,
    plan: &'a ScatterPlan,
    /// Arrays that updates are combined into.
    arrays: Vec<Source<'ctx>>,
    indices: Source<'ctx>,
    updates: Vec<Source<'ctx>>,
    share: Share<'e, 'ctx>,
    /// Lanes of a run that are combined at once.
    width: u32,
}

impl<'e, 'ctx> Windows<'_, 'e, 'ctx> {
    /// Combines the windows from batch dimension `axis` on.
    fn each(&self, s: &mut FusedEmitter<'e, 'ctx, '_>, axis: usize, place: Place) -> Result<()> {
        let Some(steps) = self.plan.batch.get(axis) else { return self.one(s, &place) };
        let extent = steps.extent as u64;
        let range = match self.plan.apart {
            Apart::Batch(shared) if shared == axis => {
                let Share { begin, count } = self.share;
                Range { start: begin, end: begin + count, extent: Some(extent), width: 1, step: 1, whole: true }
            }
            Apart::No | Apart::Batch(_) | Apart::Component(_) => s.full_range(extent, 1),
        };
        s.for_each(range, Vec::new(), &mut |s, number, _| {
            let moved =
                |from: &AffineExpr, step: usize| from.clone().plus(&AffineExpr::symbol(number).scaled(step as i64));
            let place = Place {
                indices: moved(&place.indices, steps.indices),
                updates: moved(&place.updates, steps.updates),
                inputs: moved(&place.inputs, steps.inputs),
            };
            self.each(s, axis + 1, place).map(|()| Vec::new())
        })?;
        Ok(())
    }

    /// Combines one window if it is within bounds and belongs to this share.
    fn one(&self, s: &mut FusedEmitter<'e, 'ctx, '_>, place: &Place) -> Result<()> {
        let mut into = place.inputs.clone();
        let mut fits: Option<Lanes<'e, 'ctx>> = None;
        for (i, component) in self.plan.components.iter().enumerate() {
            let number = self.number(s, &place.indices.clone().plus(&AffineExpr::constant(component.offset as i64)))?;
            // Starts below the first one wrap to numbers above any place.
            let fits_here = match self.plan.apart {
                Apart::Component(shared) if shared == i => (number - self.share.begin).ult(self.share.count),
                Apart::No | Apart::Batch(_) | Apart::Component(_) => number.ult(component.places as i64),
            };
            fits = Some(fits.map_or(fits_here, |fits| fits & fits_here));
            let level = s.depth();
            into = into.plus(&s.computed(number, None, None, level).scaled(component.inputs as i64));
        }
        match fits {
            Some(fits) => {
                s.when(fits, &[], |s| self.runs(s, 0, into, place.updates.clone()).map(|()| Vec::new())).map(|_| ())
            }
            None => self.runs(s, 0, into, place.updates.clone()),
        }
    }

    /// Loads a start index as 64 bits; as an unsigned number, a negative one exceeds any place.
    fn number(&self, s: &mut FusedEmitter<'e, 'ctx, '_>, at: &AffineExpr) -> Result<Lanes<'e, 'ctx>> {
        let number = s.load(self.root, &self.indices, &vec![at.clone()])?;
        let wide = match number.element_type().kind() {
            ElementKind::Signed => ElementType::S64,
            ElementKind::Unsigned => ElementType::U64,
            ElementKind::Pred | ElementKind::Float | ElementKind::Complex => {
                return Err(Error::internal(format!("scatter indices are {}, not integers", number.element_type())));
            }
        };
        Ok(elemental::convert(s.emitter, number, wide)?.lanes())
    }

    /// Combines the runs of a window from window dimension `axis` on.
    fn runs(&self, s: &mut FusedEmitter<'e, 'ctx, '_>, axis: usize, into: AffineExpr, from: AffineExpr) -> Result<()> {
        let Some(steps) = self.plan.window.get(axis) else { return self.run(s, &into, &from) };
        let range = s.full_range(steps.extent as u64, 1);
        s.for_each(range, Vec::new(), &mut |s, i, _| {
            let step = |by: usize| AffineExpr::symbol(i).scaled(by as i64);
            let (into, from) = (into.clone().plus(&step(steps.inputs)), from.clone().plus(&step(steps.updates)));
            self.runs(s, axis + 1, into, from).map(|()| Vec::new())
        })?;
        Ok(())
    }

    /// Combines one run.
    fn run(&self, s: &mut FusedEmitter<'e, 'ctx, '_>, into: &AffineExpr, from: &AffineExpr) -> Result<()> {
        if self.plan.run == 1 {
            return self.combine(s, into, from);
        }
        let range = s.full_range(self.plan.run as u64, self.width);
        s.for_each(range, Vec::new(), &mut |s, lane, _| {
            let lane = AffineExpr::symbol(lane);
            self.combine(s, &into.clone().plus(&lane), &from.clone().plus(&lane)).map(|()| Vec::new())
        })?;
        Ok(())
    }

    /// Combines the elements of the updates at `from` into the elements of the arrays at `into`.
    fn combine(&self, s: &mut FusedEmitter<'e, 'ctx, '_>, into: &AffineExpr, from: &AffineExpr) -> Result<()> {
        let (into, from) = (vec![into.clone()], vec![from.clone()]);
        let mut arguments: Vec<Value<'e, 'ctx>> = Vec::new();
        for array in &self.arrays {
            arguments.push(s.load(self.root, array, &into)?);
        }
        for update in &self.updates {
            arguments.push(s.load(self.root, update, &from)?);
        }
        let combiner = &s.module[self.op.computation];
        for (argument, &parameter) in arguments.iter_mut().zip(combiner.parameters()) {
            let taken_as = combiner[parameter].shape().element_type();
            if let Some(ty) = taken_as.filter(|&ty| ty != argument.element_type()) {
                *argument = elemental::convert(s.emitter, *argument, ty)?;
            }
        }
        let results = s.call(self.op.computation, &arguments)?;
        if results.len() != self.arrays.len() {
            return Err(Error::internal(format!(
                "combiner of a scatter of {} arrays returns {} values",
                self.arrays.len(),
                results.len()
            )));
        }
        for (array, value) in self.arrays.iter().zip(results) {
            s.store(array, &into, value)?;
        }
        Ok(())
    }
}
