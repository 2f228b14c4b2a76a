//! Code is generated in several modules side by side, each with an LLVM context of its own.

use std::sync::{Mutex, PoisonError};

use xla_hlo::Result;

/// What `work` makes of each item, in their order, by so many threads; the first error, in that order, if there is one.
pub fn map<T: Send, R: Send>(items: Vec<T>, threads: usize, work: impl Fn(T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let helpers = threads.min(items.len()).saturating_sub(1);
    let results: Mutex<Vec<(usize, Result<R>)>> = Mutex::new(Vec::with_capacity(items.len()));
    let items = Mutex::new(items.into_iter().enumerate());
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = || {
        while let Some((number, item)) = next() {
            let result = work(item);
            results.lock().unwrap_or_else(PoisonError::into_inner).push((number, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..helpers {
            scope.spawn(run);
        }
        run();
    });
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}
