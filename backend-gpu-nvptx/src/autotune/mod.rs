//! Autotuning: measures the candidates for a library call or a matmul kernel of our own on the device, and caches the
//! fastest.
//!
//! ```text
//! AutotuneCache::decide ── known, in memory or on disk (cache.rs) ──> candidate
//!        └── otherwise, if it may be measured: fastest(Trial) ──> candidate, stored
//!              on random operands (random.rs), among the candidates that agree (agreement.rs)
//! ```

pub(crate) mod agreement;
pub(crate) mod cache;
pub(crate) mod random;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use xla_hlo::Result;

use crate::program::library_call::LibraryCall;
use agreement::{Results, majority};

/// Measuring time of one candidate in an iteration, if it is fast; a slow candidate runs once.
const ROUND: Duration = Duration::from_millis(2);
/// Maximum runs of a candidate in an iteration.
const MOST_RUNS: u32 = 50;
/// Number of iterations. Each runs every candidate; the best time of a candidate counts.
const ROUNDS: u32 = 3;
/// Maximum ratio of a candidate's first run time to that of the fastest; slower candidates are dropped.
const HOPELESS: u32 = 2;
/// Minimum fraction of time that a later candidate must save to beat an earlier one; smaller differences are noise.
const LEAST_GAIN: f64 = 0.03;

/// Implementation of some work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Candidate {
    /// Library call, with the algorithm at this index of the library's order of preference.
    Library(u32),
    /// Our own kernels, in the alternative of this index; 0 is the default.
    Own(u32),
}

/// Work that has several candidates.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Work {
    /// Library call that does the work, if there is one.
    pub call: Option<LibraryCall>,
    /// Name of the alternatives of our own, if there are several. Equal names mean equal alternatives in equal order.
    pub own: Option<String>,
}

/// Candidates that can run repeatedly without side effects.
pub(crate) trait Trial {
    /// Returns the candidates, the most promising first.
    fn candidates(&self) -> Vec<Candidate>;

    /// Returns a description of the work for log messages.
    fn call(&self) -> String;

    /// Runs a candidate once and returns its results, or an error if it cannot run.
    fn results(&mut self, candidate: Candidate) -> Result<Results>;

    /// Returns the time of `runs` runs of a candidate, from the start of the first to the end of the last, or an error
    /// if it cannot run.
    fn time(&mut self, candidate: Candidate, runs: u32) -> Result<Duration>;
}

/// Returns the fastest of the candidates that agree with the majority; `None` if none can run.
pub(crate) fn fastest(trial: &mut dyn Trial) -> Option<Candidate> {
    let mut tried: Vec<(Candidate, Duration)> = Vec::new();
    for candidate in agreeing(trial) {
        match trial.time(candidate, 1) {
            Ok(time) => tried.push((candidate, time)),
            Err(error) => tracing::debug!(?candidate, %error, "a candidate cannot be timed"),
        }
    }
    let best = tried.iter().map(|(_, time)| *time).min()?;
    tried.retain(|(_, time)| *time <= best.saturating_mul(HOPELESS));
    if tried.len() > 1 {
        measure(trial, &mut tried);
    }
    let mut winner = *tried.first()?;
    for &(candidate, time) in &tried[1..] {
        if time.as_secs_f64() < winner.1.as_secs_f64() * (1.0 - LEAST_GAIN) {
            winner = (candidate, time);
        }
    }
    tracing::debug!(candidate = ?winner.0, time = ?winner.1, of = ?tried, "measured");
    Some(winner.0)
}

/// Returns the candidates that can run and agree with the majority, or with the first one if there is no majority. Each
/// candidate is loaded and planned here, so later runs measure execution alone.
fn agreeing(trial: &mut dyn Trial) -> Vec<Candidate> {
    let (mut candidates, mut all) = (Vec::new(), Vec::new());
    for candidate in trial.candidates() {
        match trial.results(candidate) {
            Ok(results) => {
                candidates.push(candidate);
                all.push(results);
            }
            Err(error) => tracing::debug!(?candidate, %error, "a candidate cannot be run"),
        }
    }
    let is_right = majority(&all);
    for (candidate, _) in candidates.iter().zip(&is_right).filter(|(_, is_right)| !**is_right) {
        let call = trial.call();
        tracing::warn!(
            ?candidate,
            call,
            "the results of a candidate differ from those of the majority; the candidate is not used"
        );
    }
    candidates.into_iter().zip(is_right).filter_map(|(candidate, is_right)| is_right.then_some(candidate)).collect()
}

/// Stores the best time of one run of each candidate.
fn measure(trial: &mut dyn Trial, tried: &mut [(Candidate, Duration)]) {
    for round in 0..ROUNDS {
        for (candidate, best) in tried.iter_mut() {
            let runs = (ROUND.as_nanos() / best.as_nanos().max(1)).clamp(1, u128::from(MOST_RUNS)) as u32;
            // A candidate that ran before and fails now keeps its time.
            if let Ok(time) = trial.time(*candidate, runs) {
                let one = time / runs;
                // The first estimate, from a single run, includes the time for the host to wait.
                *best = if round == 0 { one } else { one.min(*best) };
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use xla_hlo::Error;

    use super::*;

    /// Candidates with their microseconds per run; `None` cannot run. All agree except `wrong`.
    #[derive(Default)]
    pub struct Fake {
        pub candidates: Vec<(Candidate, Option<u64>)>,
        pub wrong: Option<Candidate>,
        pub runs: u32,
    }

    impl Trial for Fake {
        fn candidates(&self) -> Vec<Candidate> {
            self.candidates.iter().map(|(candidate, _)| *candidate).collect()
        }

        fn call(&self) -> String {
            "a call".to_string()
        }

        fn results(&mut self, candidate: Candidate) -> Result<Results> {
            self.time(candidate, 1)?;
            Ok(Results::of(if self.wrong == Some(candidate) { 2.0 } else { 1.0 }))
        }

        fn time(&mut self, candidate: Candidate, runs: u32) -> Result<Duration> {
            self.runs += runs;
            let time = self.candidates.iter().find(|(known, _)| *known == candidate).and_then(|(_, time)| *time);
            let time = time.ok_or_else(|| Error::unimplemented("no such algorithm"))?;
            // Waiting takes 10 microseconds, regardless of the number of runs.
            Ok(Duration::from_micros(10 + time * u64::from(runs)))
        }
    }

    fn chosen(times: &[Option<u64>]) -> Option<Candidate> {
        let (own, library) = times.split_last().unwrap();
        let library = library.iter().enumerate().map(|(number, time)| (Candidate::Library(number as u32), *time));
        let candidates = library.chain([(Candidate::Own(0), *own)]).collect();
        fastest(&mut Fake { candidates, ..Fake::default() })
    }

    #[test]
    fn the_fastest_way_is_chosen() {
        assert_eq!(chosen(&[Some(30), Some(20), Some(40)]), Some(Candidate::Library(1)));
        assert_eq!(chosen(&[Some(30), Some(20), Some(10)]), Some(Candidate::Own(0)));
        assert_eq!(chosen(&[Some(30), None, Some(40)]), Some(Candidate::Library(0)));
        assert_eq!(chosen(&[None, None]), None);
    }

    #[test]
    fn who_computes_something_else_never_wins() {
        let of = |times: [u64; 3], wrong| {
            let numbers = [Candidate::Library(0), Candidate::Library(1), Candidate::Own(0)];
            let candidates = numbers.into_iter().zip(times.map(Some)).collect();
            fastest(&mut Fake { candidates, wrong: Some(wrong), runs: 0 })
        };
        assert_eq!(of([30, 10, 20], Candidate::Library(1)), Some(Candidate::Own(0)));
        assert_eq!(of([10, 30, 20], Candidate::Library(0)), Some(Candidate::Own(0)));
        assert_eq!(of([30, 20, 10], Candidate::Own(0)), Some(Candidate::Library(1)));
        // If two candidates disagree, the library's result is considered correct.
        let candidates = vec![(Candidate::Library(0), Some(30)), (Candidate::Own(0), Some(10))];
        let mut two = Fake { candidates, wrong: Some(Candidate::Own(0)), runs: 0 };
        assert_eq!(fastest(&mut two), Some(Candidate::Library(0)));
    }

    #[test]
    fn the_fastest_of_our_own_ways_is_chosen_and_a_wrong_one_never() {
        use Candidate::{Library, Own};
        let of = |times: &[(Candidate, u64)], wrong| {
            let candidates = times.iter().map(|&(candidate, time)| (candidate, Some(time))).collect();
            fastest(&mut Fake { candidates, wrong, runs: 0 })
        };
        // With a library and without one.
        let own = [(Own(0), 40), (Own(1), 30), (Own(2), 20), (Own(3), 35)];
        let both = [&[(Library(0), 30)], &own[..]].concat();
        for times in [&own[..], &both] {
            assert_eq!(of(times, None), Some(Own(2)));
            assert_eq!(of(times, Some(Own(1))), Some(Own(2)));
        }
        assert_eq!(of(&own, Some(Own(2))), Some(Own(1)));
        assert_eq!(of(&both, Some(Own(2))), Some(Library(0)));
        // If two alternatives disagree, the default is considered correct.
        assert_eq!(of(&[(Own(0), 40), (Own(1), 10)], Some(Own(1))), Some(Own(0)));
    }

    #[test]
    fn noise_decides_nothing() {
        assert_eq!(chosen(&[Some(1000), Some(980), Some(975)]), Some(Candidate::Library(0)));
        assert_eq!(chosen(&[Some(1000), Some(980), Some(940)]), Some(Candidate::Own(0)));
    }

    #[test]
    fn hopeless_and_long_ways_are_not_run_often() {
        let mut slow = Fake {
            candidates: vec![(Candidate::Library(0), Some(100)), (Candidate::Own(0), Some(1_000_000))],
            ..Fake::default()
        };
        assert_eq!(fastest(&mut slow), Some(Candidate::Library(0)));
        assert_eq!(slow.runs, 4);
        let mut long = Fake {
            candidates: vec![(Candidate::Library(0), Some(900_000)), (Candidate::Own(0), Some(1_000_000))],
            ..Fake::default()
        };
        assert_eq!(fastest(&mut long), Some(Candidate::Library(0)));
        assert_eq!(long.runs, 4 + 2 * ROUNDS);
    }
}
