//! Loops of scalar steps as single kernels.

use xla_hlo::{ArrayShape, ElementType, Module};
use xla_llvm::fused::{KernelSource, ScalarLoop, ScalarPlace, ScalarRounds, ScalarStep};
use xla_service::thunks::{ArraySlice, LoopContext, LoopRounds, LoopStep};

/// Returns the kernel of a loop whose steps compute single elements; `None` for other loops.
pub(super) fn source<'m>(module: &'m Module, cx: &LoopContext<'_>) -> Option<KernelSource<'m>> {
    let mut places = Places { cx, arrays: Vec::new() };
    let condition = places.steps(module, cx.condition)?;
    let body = places.steps(module, cx.body)?;
    let rounds = match cx.rounds {
        LoopRounds::Counted(count) => ScalarRounds::Counted(count),
        LoopRounds::Tested { at_most } => {
            let predicate = ArraySlice { slice: cx.predicate, shape: ArrayShape::new(ElementType::Pred, []) };
            ScalarRounds::Tested { predicate: places.number(&predicate), at_most }
        }
    };
    let pointers = cx.operands.len() + cx.results.len();
    let scalar_loop = ScalarLoop::new((condition, body), rounds, places.all()?, pointers)?;
    Some(KernelSource::of_loop(module, (cx.computation, cx.instruction), scalar_loop))
}

/// Memory locations of a loop's arrays.
struct Places<'a> {
    cx: &'a LoopContext<'a>,
    arrays: Vec<ArraySlice>,
}

impl Places<'_> {
    fn steps<'m>(&mut self, module: &'m Module, steps: &[LoopStep]) -> Option<Vec<ScalarStep<'m>>> {
        steps.iter().map(|step| self.step(module, step)).collect()
    }

    fn step<'m>(&mut self, module: &'m Module, step: &LoopStep) -> Option<ScalarStep<'m>> {
        let places: Vec<usize> = step.operands.iter().chain(&step.results).map(|array| self.number(array)).collect();
        if let (true, [from, to]) = (step.copies, &places[..]) {
            return Some(ScalarStep::Copy { from: *from, to: *to });
        }
        let source = KernelSource::of_instruction(module, &step.context(module))?;
        (source.pointer_count() == places.len()).then_some(ScalarStep::Compute { source, places })
    }

    /// Returns the number of an array's location.
    fn number(&mut self, array: &ArraySlice) -> usize {
        let known = self.arrays.iter().position(|known| {
            known.slice == array.slice
                && known.shape.element_type() == array.shape.element_type()
                && known.shape.element_count() == array.shape.element_count()
        });
        known.unwrap_or_else(|| {
            self.arrays.push(array.clone());
            self.arrays.len() - 1
        })
    }

    /// Returns all locations; `None` if one has no pointer.
    fn all(&self) -> Option<Vec<ScalarPlace>> {
        let pointers = || self.cx.operands.iter().chain(self.cx.results);
        let place = |(number, array): (usize, &ArraySlice)| {
            let clashes = |(other, known): (usize, &ArraySlice)| {
                (other != number && known.slice.overlaps(&array.slice)).then_some(other)
            };
            Some(ScalarPlace {
                pointer: pointers().position(|known| known.slice == array.slice)?,
                shape: array.shape.clone(),
                clashes: self.arrays.iter().enumerate().filter_map(clashes).collect(),
            })
        };
        self.arrays.iter().enumerate().map(place).collect()
    }
}
