//! Tests of a backend that launches runs of thunks between host steps as one unit.

use std::sync::{Arc, Mutex};

use super::*;

/// Launcher that accepts runs of at least three thunks and records them.
#[derive(Debug, Default)]
struct Runs(Mutex<Vec<Vec<String>>>);

impl Launcher for Runs {
    fn kernel(&self, kernel: &KernelRef, launch: &mut Launch<'_>) -> Result<()> {
        Adder.kernel(kernel, launch)
    }

    fn library_call(&self, call: &LibraryRef, launch: &mut Launch<'_>) -> Result<()> {
        Adder.library_call(call, launch)
    }

    fn sequences(&self) -> Option<&dyn SequenceLauncher> {
        Some(self)
    }
}

impl SequenceLauncher for Runs {
    fn shortest_run(&self) -> usize {
        3
    }

    fn run(&self, thunks: &[Thunk], context: &ExecutionContext<'_>, buffers: &mut ExecutionBuffers) -> Result<bool> {
        self.0.lock().unwrap().push(thunks.iter().map(|thunk| thunk.name.clone()).collect());
        for thunk in thunks {
            match &thunk.kind {
                ThunkKind::Kernel(kernel) => Adder.kernel(kernel, &mut Launch { thunk, context, buffers })?,
                ThunkKind::Copy => buffers.copy(context, thunk.operands[0].slice, thunk.results[0].slice)?,
                other => panic!("{other:?} is no launch"),
            }
        }
        Ok(true)
    }
}

/// Returns the runs of a program, after comparing its results with the evaluator.
fn runs(module: VerifiedModule, arguments: &[Literal]) -> Vec<Vec<String>> {
    let expected = eval::evaluate(&module, arguments.to_vec()).unwrap();
    let launcher = Arc::new(Runs::default());
    let (module, program) = lowered(module);
    let program = ThunkExecutable::new(module, program, launcher.clone());
    let host = Host::new();
    let result = host.launch(&program, arguments.iter().map(|l| Argument::Donated(host.upload(l))).collect());
    assert_eq!(result.unwrap(), expected, "\n{}", program.sequence());
    launcher.0.lock().unwrap().clone()
}

#[test]
fn what_is_between_steps_of_the_host_is_sent_at_once() {
    let module = entry(|b, x| {
        let chain = |b: &mut ComputationBuilder<'_>, mut value, count| {
            for _ in 0..count {
                value = b.add(value, x).unwrap();
            }
            value
        };
        let before = chain(b, x, 3);
        let negated = b.negate(before).unwrap();
        let between = chain(b, negated, 2);
        let negated = b.negate(between).unwrap();
        chain(b, negated, 4)
    });
    let runs = runs(module, &[f32s(&[0.5, -1.0, 7.0, 0.0])]);
    let lengths: Vec<usize> = runs.iter().map(Vec::len).collect();
    assert_eq!(lengths, [3, 2, 4], "{runs:?}");
}

#[test]
fn short_runs_are_sent_thunk_by_thunk() {
    let module = entry(|b, x| {
        let sum = b.add(x, x).unwrap();
        let negated = b.negate(sum).unwrap();
        b.add(negated, x).unwrap()
    });
    assert!(runs(module, &[f32s(&[0.5, -1.0, 7.0, 0.0])]).is_empty());
}

#[test]
fn loops_and_branches_have_runs_of_their_own() {
    let mut module = ModuleBuilder::new("test");
    let chosen = branch(&mut module, "chosen", |b, x| {
        let two = b.add(x, x).unwrap();
        let three = b.add(two, x).unwrap();
        b.add(three, two).unwrap()
    });
    let other = branch(&mut module, "other", |b, x| b.negate(x).unwrap());
    let mut b = module.computation("main");
    let index = b.parameter(Shape::scalar(S32)).unwrap();
    let x = b.parameter(vector()).unwrap();
    let root = b.switch(index, &[(chosen, x), (other, x)]).unwrap();
    let main = b.finish(root);
    let module = module.finish(main).unwrap();
    for (index, expected) in [(0, 1), (1, 0), (-1, 0)] {
        let runs = runs(module.clone(), &[s32(index), f32s(&[1.0, 2.0, 3.0, 4.0])]);
        assert_eq!(runs.iter().filter(|run| run.len() >= 3).count(), expected, "{index}: {runs:?}");
    }
}
