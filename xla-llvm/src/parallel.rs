//! Parallel code generation: several LLVM modules with separate contexts, on the threads of rayon's pool.

use std::sync::{Mutex, PoisonError};

use xla_hlo::{Result, has_thread_pool};

/// Calls `work` for each item on at most `threads` threads: the current one, and others of the current rayon pool.
/// Returns the results in the order of the items, or the first error in that order.
pub fn map<T: Send, R: Send>(items: Vec<T>, threads: usize, work: impl Fn(T) -> Result<R> + Sync) -> Result<Vec<R>> {
    let helpers = if has_thread_pool() { threads.min(items.len()).saturating_sub(1) } else { 0 };
    let results: Mutex<Vec<(usize, Result<R>)>> = Mutex::new(Vec::with_capacity(items.len()));
    let items = Mutex::new(items.into_iter().enumerate());
    let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = || {
        while let Some((number, item)) = next() {
            let result = work(item);
            results.lock().unwrap_or_else(PoisonError::into_inner).push((number, result));
        }
    };
    match helpers {
        0 => run(),
        _ => rayon::in_place_scope(|scope| {
            (0..helpers).for_each(|_| scope.spawn(|_| run()));
            run();
        }),
    }
    let mut results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
    results.sort_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}
