//! Many collectives in one clique and at once, and aborts at random times.

use std::sync::{Arc, OnceLock};
use std::time::Instant;

use xla_hlo::Error;
use xla_service::collective::{CollectiveEngine, CollectiveRun, RunKey, Timeouts};

use super::cluster::Cluster;
use crate::repetitions::{execute_sum, sum};
use crate::support::{PROMPT, Random, instruction, key, on_threads};

#[test]
fn repetitions_in_one_clique_are_in_step() {
    let random = &mut Random(31);
    for (placement, count, repetitions) in
        [(vec![0, 1], 3, 300), (vec![0, 1, 1, 2, 0], 3, 100), (vec![1, 0], 90_000, 5)]
    {
        let members = placement.len();
        let cluster = Cluster::new(placement, Timeouts::default(), random);
        let devices: Vec<usize> = (0..members).collect();
        let (key, spec) = (&key(RunKey::next(), &devices), sum(count, members));
        on_threads(members, |rank| {
            let clique = cluster.engine(rank).clique(key).unwrap();
            for i in 0..repetitions {
                let result = execute_sum(&*clique, rank, &spec, i + rank as i32).unwrap();
                let members = members as i32;
                let sum = members * i + members * (members - 1) / 2;
                assert!(result.chunks(4).all(|x| x == sum.to_le_bytes()), "repetition {i}");
            }
        });
    }
}

#[test]
fn runs_at_once_do_not_mix() {
    let cluster = Cluster::new(vec![0, 1, 2, 0, 1, 2, 2, 1], Timeouts::default(), &mut Random(32));
    let (spec, first) = (sum(3, 2), RunKey::next());
    let runs: Vec<RunKey> = (0..30).map(|i| RunKey(first.0 + 100_000 + i)).collect();
    on_threads(8, |device| {
        let (rank, pair) = (device % 2, device / 2);
        for &run in &runs {
            // Four pairs of devices execute the same instruction in the same run.
            let clique = cluster.engine(device).clique(&key(run, &[2 * pair, 2 * pair + 1])).unwrap();
            let result = execute_sum(&*clique, rank, &spec, device as i32).unwrap();
            assert_eq!(result, (4 * pair as i32 + 1).to_le_bytes().repeat(3));
        }
    });
}

#[test]
fn aborts_at_random_times_never_hang() {
    let random = &mut Random(33);
    for repetition in 0..200 {
        let cluster = Cluster::new(vec![0, 1, 1, 2], Timeouts::default(), random);
        let key = RunKey::next();
        let run = |engine: &Arc<_>| CollectiveRun::new(Arc::clone(engine) as Arc<dyn CollectiveEngine>, key);
        let runs: Vec<CollectiveRun> = cluster.engines.iter().map(run).collect();
        let spec = sum(if repetition % 8 == 0 { 40_000 } else { 3 }, 4);
        let (failing, last) = (random.below(4), random.below(6));
        let failed = OnceLock::new();
        on_threads(4, |device| {
            let run = &runs[cluster.placement[device]];
            let program = || {
                for i in 0.. {
                    if device == failing && i == last {
                        failed.set(Instant::now()).unwrap();
                        return Err(Error::resource_exhausted("no memory"));
                    }
                    execute_sum(&*run.clique(&instruction(), &[0, 1, 2, 3].into())?, device, &spec, 1)?;
                }
                Ok(())
            };
            let error = run.device(device, program).unwrap_err();
            let text = if device == failing { "no memory".to_string() } else { format!("device {failing}: no memory") };
            assert_eq!(error.to_string(), text);
            assert!(matches!(error, Error::ResourceExhausted(_)), "{error:?}");
        });
        assert!(failed.get().unwrap().elapsed() < PROMPT, "repetition {repetition}");
    }
}
