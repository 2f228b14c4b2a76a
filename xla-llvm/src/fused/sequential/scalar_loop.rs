//! Loops whose steps compute single elements: one kernel, with the elements in registers.
//!
//! Places of one element that a step writes are loaded in front of the loop, carried in registers, and stored after it.
//! Other arrays stay in memory: they are read by index, and updated in place.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use inkwell::basic_block::BasicBlock;
use inkwell::values::{BasicValueEnum, PhiValue, PointerValue};
use xla_hlo::ops::Op;
use xla_hlo::{ElementType, Error, InstrId, Result, ResultExt};

use crate::denormals::Denormals;
use crate::elemental::{self, Value};
use crate::emitter::Emitter;
use crate::fused::analysis::FusedKernel;
use crate::fused::kernel::{Kernel, Launch};
use crate::fused::loops::affine::{AffineExpr, Index};
use crate::fused::loops::frame::Frame;
use crate::fused::source::{KernelSource, ScalarLoop, ScalarPlace, ScalarRounds, ScalarStep};
use crate::fused::tuning::scalar_loop::{MOST_OPERATIONS, MOST_PLACES};
use crate::lanes::Lanes;

impl<'m> ScalarLoop<'m> {
    /// Creates the loop; `None` if a step is not a computation of one element from elements, or if the loop is too
    /// large.
    pub fn new(
        (condition, body): (Vec<ScalarStep<'m>>, Vec<ScalarStep<'m>>),
        rounds: ScalarRounds,
        places: Vec<ScalarPlace>,
        pointers: usize,
    ) -> Option<ScalarLoop<'m>> {
        let steps = || condition.iter().chain(&body);
        let is_single = |place: &usize| places.get(*place).is_some_and(|place| place.shape.element_count() == 1);
        let mut carried = BTreeSet::new();
        let (mut operations, mut denormals) = (0, Denormals::Unaffected);
        for step in steps() {
            match step {
                ScalarStep::Copy { from, to } => {
                    let ty = |place: usize| places[place].shape.element_type();
                    if ![from, to].into_iter().all(is_single) || ty(*from) != ty(*to) {
                        return None;
                    }
                    carried.insert(*to);
                }
                ScalarStep::Compute { source, places: numbers } => {
                    let kernel = FusedKernel::new(source).ok()?;
                    let results = numbers.get(source.inputs.len()..)?;
                    let stays = source.in_place && !results.iter().all(is_single);
                    if !is_scalar(&kernel) || !(stays || results.iter().all(is_single)) {
                        return None;
                    }
                    operations += kernel.computed().len();
                    denormals = together(denormals, kernel.denormals())?;
                    carried.extend(results.iter().filter(|_| !stays));
                }
            }
        }
        let mut valid: BTreeSet<usize> = (0..places.len()).collect();
        // Check twice, since the body overwrites places that the condition reads.
        for _ in 0..2 {
            run(&condition, &places, &mut valid)?;
            run(&body, &places, &mut valid)?;
        }
        run(&condition, &places, &mut valid)?;
        if let ScalarRounds::Tested { predicate, .. } = rounds
            && !(carried.contains(&predicate) && valid.contains(&predicate))
        {
            return None;
        }
        let fits = operations <= MOST_OPERATIONS && places.len() <= MOST_PLACES;
        fits.then_some(ScalarLoop { condition, body, rounds, places, pointers, carried, valid, denormals })
    }

    /// Emits the kernel's function into the emitter's module.
    pub(crate) fn emit(&self, emitter: &Emitter<'_>, name: &str) -> Result<Kernel> {
        let pointers = Frame::open(emitter, name, self.pointers)?.pointers;
        LoopWriter { plan: self, emitter, pointers, registers: BTreeMap::new() }.write()?;
        let ended = Kernel::end(emitter, name, Launch::alone(1), self.to_string())?;
        Ok(Kernel { denormals: self.denormals, ..ended })
    }
}

/// Prints for example `scalar-loop of 3 steps, 4 values in registers`.
impl fmt::Display for ScalarLoop<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps = self.condition.len() + self.body.len();
        write!(f, "scalar-loop of {steps} steps, {} values in registers", self.carried.len())
    }
}

/// Tracks through some steps which places still hold the value that was written to them; `None` if a step reads a place
/// that does not.
fn run(steps: &[ScalarStep<'_>], places: &[ScalarPlace], valid: &mut BTreeSet<usize>) -> Option<()> {
    for step in steps {
        let (reads, writes) = match step {
            ScalarStep::Compute { source, places } => places.split_at_checked(source.inputs.len())?,
            ScalarStep::Copy { from, to } => (std::slice::from_ref(from), std::slice::from_ref(to)),
        };
        if !reads.iter().all(|place| valid.contains(place)) {
            return None;
        }
        for place in writes {
            places[*place].clashes.iter().for_each(|other| _ = valid.remove(other));
            valid.insert(*place);
        }
    }
    Some(())
}

/// Whether a kernel computes one element by straight-line code.
fn is_scalar(kernel: &FusedKernel<'_, '_>) -> bool {
    let graph = kernel.graph();
    let is_straight = |id: &InstrId| {
        !matches!(
            graph[*id].op(),
            Op::Reduce(_)
                | Op::ReduceWindow(_)
                | Op::Dot(_)
                | Op::Convolution(_)
                | Op::Scatter(_)
                | Op::SelectAndScatter(_)
                | Op::Sort(_)
                | Op::TopK(_)
                | Op::Scan(_)
        )
    };
    let is_update = matches!(graph[kernel.source.root].op(), Op::DynamicUpdateSlice(_));
    kernel.dims.iter().all(|&size| size == 1)
        && kernel.computed().iter().all(is_straight)
        && (is_update || !kernel.source.in_place)
}

/// Returns the treatment of subnormal numbers in a kernel with two parts; `None` if they need different ones.
fn together(a: Denormals, b: Denormals) -> Option<Denormals> {
    match (a, b) {
        (Denormals::Unaffected, other) | (other, Denormals::Unaffected) => Some(other),
        (a, b) => (a == b).then_some(a),
    }
}

/// Emitter of a loop's code.
struct LoopWriter<'a, 'e, 'ctx, 'm> {
    plan: &'a ScalarLoop<'m>,
    emitter: &'e Emitter<'ctx>,
    pointers: Vec<PointerValue<'ctx>>,
    /// Current values of the carried places; complex types have two parts.
    registers: BTreeMap<usize, Value<'e, 'ctx>>,
}

impl<'e, 'ctx> LoopWriter<'_, 'e, 'ctx, '_> {
    fn write(mut self) -> Result<()> {
        for &place in &self.plan.carried {
            let (at, ty) = (self.number(0), self.element_type(place)?);
            let value = elemental::load(self.emitter, self.pointer(place)?, at, ty, 1, None);
            self.registers.insert(place, value);
        }
        let (front, head) = (self.block()?, self.new_block("while")?);
        self.jump(head)?;
        self.emitter.builder().position_at_end(head);
        let round = self.phi(self.number(0).raw(), front)?;
        let mut phis = Vec::new();
        for (place, value) in std::mem::take(&mut self.registers) {
            let own: Vec<PhiValue<'ctx>> =
                value.raws_in(true).into_iter().map(|raw| self.phi(raw, front)).collect::<Result<_>>()?;
            let raws: Vec<BasicValueEnum<'ctx>> = own.iter().map(|phi| phi.as_basic_value()).collect();
            let value = self.value(place, &raws)?;
            self.registers.insert(place, value);
            phis.push((place, own));
        }
        let round_number = self.emitter.lanes(round.as_basic_value());
        let again = self.goes_on(round_number)?;
        let last = self.registers.clone();
        let (work, done) = (self.new_block("do")?, self.new_block("done")?);
        let BasicValueEnum::IntValue(again) = again.raw() else {
            return Err(Error::internal("the predicate of a loop is not an integer"));
        };
        self.emitter.builder().build_conditional_branch(again, work, done).map_err(refused)?;
        self.emitter.builder().position_at_end(work);
        self.steps(&self.plan.body)?;
        let (next, back) = (round_number + 1, self.block()?);
        self.jump(head)?;
        round.add_incoming(&[(&next.raw(), back)]);
        for (place, own) in phis {
            for (phi, raw) in own.iter().zip(self.register(place)?.raws_in(true)) {
                phi.add_incoming(&[(&raw, back)]);
            }
        }
        self.emitter.builder().position_at_end(done);
        for (place, value) in last.into_iter().filter(|(place, _)| self.plan.valid.contains(place)) {
            elemental::store(self.emitter, value, self.pointer(place)?, self.number(0), None);
        }
        Ok(())
    }

    /// Emits the condition, and returns whether the body runs again after `round` iterations.
    fn goes_on(&mut self, round: Lanes<'e, 'ctx>) -> Result<Lanes<'e, 'ctx>> {
        match self.plan.rounds {
            ScalarRounds::Counted(count) => Ok(round.ult(count as i64)),
            ScalarRounds::Tested { predicate, at_most } => {
                self.steps(&self.plan.condition)?;
                Ok(self.register(predicate)?.lanes() & round.ult(at_most as i64))
            }
        }
    }

    fn steps(&mut self, steps: &[ScalarStep<'_>]) -> Result<()> {
        steps.iter().try_for_each(|step| match step {
            ScalarStep::Compute { source, places } => {
                let graph = &source.module[source.computation];
                self.compute(source, places).context(|| format!("%{} in {}", graph[source.root].name(), graph.name()))
            }
            ScalarStep::Copy { from, to } => {
                let value = match self.registers.get(from) {
                    Some(&value) => value,
                    None => {
                        let ty = self.element_type(*from)?;
                        elemental::load(self.emitter, self.pointer(*from)?, self.number(0), ty, 1, None)
                    }
                };
                self.registers.insert(*to, value);
                Ok(())
            }
        })
    }

    /// Computes the results of a step from registers and arrays.
    fn compute(&mut self, source: &KernelSource<'_>, places: &[usize]) -> Result<()> {
        let kernel = FusedKernel::new(source)?;
        let pointers = places.iter().map(|&place| self.pointer(place)).collect::<Result<_>>()?;
        let mut fused = kernel.bind(self.emitter, pointers)?;
        for (&input, place) in source.inputs.iter().zip(places) {
            if let Some(&value) = self.registers.get(place) {
                fused.registers.insert(input, value);
            }
        }
        let index: Index = vec![AffineExpr::default(); kernel.dims.len()];
        let results = &places[source.inputs.len()..];
        if results.iter().any(|place| !self.plan.carried.contains(place)) {
            return kernel.store_all(&mut fused, &index);
        }
        for (number, _, value) in kernel.values(&mut fused, &index, |_| true)? {
            // Round narrow floats, as a store to memory would.
            let value = self.value(results[number], &value.raws_in(true))?;
            self.registers.insert(results[number], value);
        }
        Ok(())
    }

    /// Rebuilds the value of a place from its raw parts.
    fn value(&self, place: usize, raws: &[BasicValueEnum<'ctx>]) -> Result<Value<'e, 'ctx>> {
        let ty = self.element_type(place)?;
        Ok(match raws {
            [lanes] => Value::stored(ty, self.emitter.lanes(*lanes)),
            raws => Value::from_raws(self.emitter, ty, raws),
        })
    }

    fn register(&self, place: usize) -> Result<Value<'e, 'ctx>> {
        let value = self.registers.get(&place).copied();
        value.ok_or_else(|| Error::internal(format!("loop reads place {place}, which is not in a register")))
    }

    fn element_type(&self, place: usize) -> Result<ElementType> {
        let shape = self.plan.places.get(place);
        shape
            .map(|place| place.shape.element_type())
            .ok_or_else(|| Error::internal(format!("loop has no place {place}")))
    }

    fn pointer(&self, place: usize) -> Result<PointerValue<'ctx>> {
        let number = self.plan.places.get(place).map(|place| place.pointer);
        let pointer = number.and_then(|number| self.pointers.get(number).copied());
        pointer.ok_or_else(|| Error::internal(format!("loop has no pointer to place {place}")))
    }

    fn number(&self, value: u64) -> Lanes<'e, 'ctx> {
        self.emitter.splat_constant(self.emitter.int_type(64).const_int(value, false).into(), 1)
    }

    fn phi(&self, first: BasicValueEnum<'ctx>, front: BasicBlock<'ctx>) -> Result<PhiValue<'ctx>> {
        let phi = self.emitter.builder().build_phi(first.get_type(), "").map_err(refused)?;
        phi.add_incoming(&[(&first, front)]);
        Ok(phi)
    }

    fn new_block(&self, name: &str) -> Result<BasicBlock<'ctx>> {
        self.emitter.block(name).ok_or_else(|| Error::internal("a loop is emitted outside of a function"))
    }

    fn block(&self) -> Result<BasicBlock<'ctx>> {
        let block = self.emitter.builder().get_insert_block();
        block.ok_or_else(|| Error::internal("a loop is emitted outside of a function"))
    }

    fn jump(&self, to: BasicBlock<'ctx>) -> Result<()> {
        self.emitter.builder().build_unconditional_branch(to).map(|_| ()).map_err(refused)
    }
}

fn refused(reason: inkwell::builder::BuilderError) -> Error {
    Error::internal(format!("LLVM refuses an instruction: {reason}"))
}
