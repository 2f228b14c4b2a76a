//! Many repetitions, with and without failures: no hang, and no member a step ahead.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use xla_hlo::ops::BinaryOp;
use xla_hlo::{ElementType, Error, Result};
use xla_service::CancelToken;
use xla_service::collective::{
    CollectiveCall, CollectiveEngine, CollectiveRun, CollectiveSpec, Communicator, InProcess, MemberArguments,
    Operation, Part, Reduction, RunKey, Source, Target,
};

use crate::support::{PROMPT, Random, instruction, key, on_threads};

/// A sum of `count` numbers, `s32`.
pub fn sum(count: usize, members: usize) -> Arc<CollectiveSpec> {
    let reduction = Reduction::simple(BinaryOp::Add, ElementType::S32);
    let arrays = vec![Part::whole(ElementType::S32, count)];
    Arc::new(CollectiveSpec::new(Operation::AllReduce(reduction), arrays, members).unwrap())
}

/// Executes a sum. Each member's numbers are all equal to `number`. Returns the bytes of the result.
pub fn execute_sum(clique: &dyn Communicator, rank: usize, spec: &Arc<CollectiveSpec>, number: i32) -> Result<Vec<u8>> {
    let operand = number.to_le_bytes().repeat(spec.arrays()[0].inner);
    let mut result = vec![0; operand.len()];
    let call = CollectiveCall {
        spec,
        operands: vec![Source::from(&operand[..])],
        results: vec![Target::from(&mut result[..])],
        arguments: MemberArguments::None,
        cancel: &CancelToken::never(),
    };
    clique.run(rank, call)?;
    Ok(result)
}

#[test]
fn a_thousand_repetitions_in_one_clique_are_in_step() {
    let engine = InProcess::default();
    for (members, count, repetitions) in [(2, 3, 1000), (8, 3, 1000), (4, 400_000, 5)] {
        let devices: Vec<usize> = (0..members).collect();
        let clique = &*engine.clique(&key(RunKey::next(), &devices)).unwrap();
        let spec = sum(count, members);
        on_threads(members, |rank| {
            for i in 0..repetitions {
                let result = execute_sum(clique, rank, &spec, i + rank as i32).unwrap();
                let members = members as i32;
                let sum = members * i + members * (members - 1) / 2;
                assert!(result.chunks(4).all(|x| x == sum.to_le_bytes()), "repetition {i}");
            }
        });
    }
}

#[test]
fn a_thousand_runs_at_once_do_not_mix() {
    let engine = InProcess::default();
    let (spec, run) = (sum(3, 2), RunKey::next());
    let runs: Vec<RunKey> = (0..100).map(|i| RunKey(run.0 + 1000 + i)).collect();
    on_threads(20, |thread| {
        let (rank, pair) = (thread % 2, thread / 2);
        for &run in &runs {
            // Ten pairs of devices execute the same instruction in the same run.
            let clique = engine.clique(&key(run, &[2 * pair, 2 * pair + 1])).unwrap();
            let result = execute_sum(&*clique, rank, &spec, thread as i32).unwrap();
            assert_eq!(result, (4 * pair as i32 + 1).to_le_bytes().repeat(3));
        }
    });
    runs.into_iter().for_each(|run| engine.finish(run));
}

#[test]
fn aborts_at_random_times_never_hang() {
    let random = &mut Random(5);
    for repetition in 0..1000 {
        let engine: Arc<dyn CollectiveEngine> = Arc::new(InProcess::default());
        let run = CollectiveRun::new(engine, RunKey::next());
        let spec = sum(if repetition % 16 == 0 { 400_000 } else { 3 }, 3);
        let (failing, last) = (random.below(3), random.below(6));
        let failed = OnceLock::new();
        on_threads(3, |rank| {
            let program = || {
                for i in 0.. {
                    if rank == failing && i == last {
                        failed.set(Instant::now()).unwrap();
                        return Err(Error::resource_exhausted("no memory"));
                    }
                    execute_sum(&*run.clique(&instruction(), &[0, 1, 2].into())?, rank, &spec, 1)?;
                }
                Ok(())
            };
            let error = run.device(rank, program).unwrap_err().to_string();
            let text = if rank == failing { "no memory".to_string() } else { format!("device {failing}: no memory") };
            assert_eq!(error, text);
        });
        assert!(failed.get().unwrap().elapsed() < PROMPT, "repetition {repetition}");
    }
}
