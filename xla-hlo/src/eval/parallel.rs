//! Parallel evaluation of independent elements, on the threads of rayon's pool.
//!
//! Every element is computed by the operations that one thread would do, in their order: results are the same, bit for
//! bit. Nothing here calls a computation but by a [`ScalarFunction`](super::ScalarFunction) compiled to a program, so
//! that the small stacks of rayon's threads suffice and nothing draws random numbers or has other effects.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use super::Evaluator;
use crate::{ArrayShape, ElementType, Literal, Result, Scalar, has_thread_pool};

/// Nanoseconds of one thread's work from which on several threads share an operation. Waking them takes 20 to 50
/// microseconds.
const THRESHOLD: usize = 200_000;

/// Nanoseconds of work that a thread takes at a time.
const CHUNK: usize = 50_000;

/// Nanoseconds of an elementwise operation, roughly: 5 to 60.
pub(crate) const ELEMENT: usize = 10;

/// Nanoseconds of adding a product of two numbers to a sum, roughly.
pub(crate) const PRODUCT: usize = 1;

/// A run of elements of several arrays, the same of each.
pub(crate) struct Chunk<'a> {
    /// The row-major numbers of the elements.
    pub(crate) range: Range<usize>,
    arrays: Vec<(ElementType, &'a mut [u8])>,
}

impl Chunk<'_> {
    /// Sets element `i`, a number of the range, of each array.
    pub(crate) fn set(&mut self, i: usize, values: &[Scalar]) {
        for ((ty, bytes), value) in self.arrays.iter_mut().zip(values) {
            let width = ty.byte_width();
            value.write(*ty, &mut bytes[(i - self.range.start) * width..][..width]);
        }
    }
}

/// Runs of `length` elements of arrays that have as many elements each.
fn chunks(arrays: &mut [Literal], length: usize) -> Vec<Chunk<'_>> {
    let count = arrays.first().map_or(0, |array| array.array_shape().element_count());
    let firsts = (0..count).step_by(length);
    let empty = |first: usize| Chunk { range: first..first.saturating_add(length).min(count), arrays: Vec::new() };
    let mut chunks: Vec<Chunk<'_>> = firsts.map(empty).collect();
    for array in arrays {
        let ty = array.array_shape().element_type();
        let runs = array.bytes_mut().chunks_mut(length * ty.byte_width());
        chunks.iter_mut().zip(runs).for_each(|(chunk, run)| chunk.arrays.push((ty, run)));
    }
    chunks
}

impl<'m> Evaluator<'m> {
    /// An array whose element `i` in row-major order is `f(i)`, which takes about `work` nanoseconds.
    pub(crate) fn array(
        &mut self,
        shape: &ArrayShape,
        work: usize,
        f: impl Fn(usize) -> Scalar + Sync,
    ) -> Result<Literal> {
        let mut array = Literal::zeros(shape)?;
        let (ty, length) = (shape.element_type(), self.chunk_length(shape.element_count(), Some(work)));
        let parts = array.bytes_mut().chunks_mut(length * ty.byte_width()).enumerate().collect();
        self.for_each(parts, &mut (), |_, (), (part, bytes): (usize, &mut [u8])| {
            let elements = bytes.chunks_exact_mut(ty.byte_width()).enumerate();
            elements.for_each(|(i, element)| f(part * length + i).write(ty, element));
            Ok(())
        })?;
        Ok(array)
    }

    /// Values `f(i)` for each `i` below `count`, each of about `work` nanoseconds; `blank` may be anything.
    pub(crate) fn values<T: Clone + Send>(
        &mut self,
        count: usize,
        work: usize,
        blank: T,
        f: impl Fn(usize) -> T + Sync,
    ) -> Result<Vec<T>> {
        let mut values = vec![blank; count];
        let length = self.chunk_length(count, Some(work));
        self.for_each(values.chunks_mut(length).enumerate().collect(), &mut (), |_, (), (part, values)| {
            values.iter_mut().enumerate().for_each(|(i, value): (usize, &mut T)| *value = f(part * length + i));
            Ok(())
        })?;
        Ok(values)
    }

    /// Calls `f` for the elements of arrays that have as many elements each: see [`Evaluator::for_each`]. An element
    /// takes about `work` nanoseconds.
    pub(crate) fn fill<S: Clone + Sync>(
        &mut self,
        arrays: &mut [Literal],
        work: Option<usize>,
        state: &mut S,
        f: impl Fn(&mut Evaluator<'m>, &mut S, Chunk<'_>) -> Result<()> + Sync,
    ) -> Result<()> {
        let count = arrays.first().map_or(0, |array| array.array_shape().element_count());
        self.for_each(chunks(arrays, self.chunk_length(count, work)), state, f)
    }

    /// Number of elements, of `count`, that a thread takes at a time, each about `work` nanoseconds. All of them where
    /// that is little, where no other thread may compute them (`None`), and on a thread of a rayon pool: the pool's
    /// other threads have work of their own, and while waiting for them this one would begin more of it on the same
    /// stack.
    pub(crate) fn chunk_length(&self, count: usize, work: Option<usize>) -> usize {
        let alone = || self.threads < 2 || rayon::current_thread_index().is_some() || !has_thread_pool();
        match work {
            Some(work) if work.saturating_mul(count) >= THRESHOLD && !alone() => (CHUNK / work.max(1)).max(1),
            Some(_) | None => count.max(1),
        }
    }

    /// Calls `f` with each part. One part: on this thread, with this evaluator and this state. Several: on threads of
    /// the pool, with evaluators that share cancellation and step limit, and clones of the state. Returns the error of
    /// the first part that has one.
    pub(crate) fn for_each<P: Send, S: Clone + Sync>(
        &mut self,
        parts: Vec<P>,
        state: &mut S,
        f: impl Fn(&mut Evaluator<'m>, &mut S, P) -> Result<()> + Sync,
    ) -> Result<()> {
        if parts.len() < 2 {
            return parts.into_iter().try_for_each(|part| f(self, state, part));
        }
        let (module, limit, cancelled, state) = (self.module, self.steps_left, &self.cancelled, &*state);
        let spent = AtomicU64::new(0);
        let init = || (Evaluator { cancelled: cancelled.clone(), ..Evaluator::new(module) }, state.clone());
        let run = |(evaluator, state): &mut (Evaluator<'m>, S), part| {
            let left = limit.saturating_sub(spent.load(Ordering::Relaxed));
            evaluator.steps_left = left;
            let result = f(evaluator, state, part);
            spent.fetch_add(left - evaluator.steps_left, Ordering::Relaxed);
            result
        };
        // Where fewer threads are wanted than the pool has, there are no more tasks than that.
        let shortest = if self.threads < rayon::current_num_threads() { parts.len().div_ceil(self.threads) } else { 1 };
        let results: Vec<Result<()>> = parts.into_par_iter().with_min_len(shortest).map_init(init, run).collect();
        results.into_iter().collect::<Result<()>>()?;
        self.spend_steps(spent.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::Error;
    use crate::text::parse_module;

    const MODULE: &str = "HloModule m\n\nENTRY e {\n  ROOT x = f32[] parameter(0)\n}\n";

    /// Parts of much work, of each of which `steps` are spent.
    fn spend(threads: usize, steps: u64, limit: u64) -> (Result<()>, u64) {
        let module = parse_module(MODULE).unwrap();
        let mut evaluator = Evaluator::new(&module).with_threads(threads).with_step_limit(limit);
        let length = evaluator.chunk_length(100, Some(THRESHOLD));
        let mut numbers: Vec<usize> = (0..100).collect();
        let parts = numbers.chunks_mut(length).collect();
        let result = evaluator.for_each(parts, &mut (), |evaluator, (), part: &mut [usize]| {
            part.iter_mut().try_for_each(|_| evaluator.spend_steps(steps))
        });
        (result, evaluator.steps_left)
    }

    #[test]
    fn steps_of_all_threads_count_against_one_limit() {
        for threads in [1, 2, 64] {
            let (result, left) = spend(threads, 10, 1000);
            assert!(result.is_ok());
            assert_eq!(left, 0);
            assert!(matches!(spend(threads, 10, 999).0, Err(Error::ResourceExhausted(_))));
        }
    }

    #[test]
    fn the_first_error_is_returned_whatever_the_threads() {
        let module = parse_module(MODULE).unwrap();
        for threads in [1, 2, 64] {
            let mut evaluator = Evaluator::new(&module).with_threads(threads);
            let length = evaluator.chunk_length(100, Some(THRESHOLD));
            let numbers: Vec<usize> = (0..100).collect();
            let result = evaluator.for_each(numbers.chunks(length).collect(), &mut (), |_, (), part: &[usize]| {
                part.iter().try_for_each(|i| match i {
                    ..30 => Ok(()),
                    _ => Err(Error::internal(format!("element {i}"))),
                })
            });
            assert!(result.unwrap_err().to_string().contains("element 30"));
        }
    }

    #[test]
    fn cancellation_stops_all_threads() {
        let module = parse_module(MODULE).unwrap();
        let cancelled = Arc::new(AtomicBool::new(true));
        let mut evaluator = Evaluator::new(&module).with_threads(2).with_cancellation(cancelled);
        let parts: Vec<usize> = (0..100).collect();
        let result = evaluator.for_each(parts, &mut (), |evaluator, (), _| evaluator.spend_steps(1));
        assert!(matches!(result, Err(Error::Cancelled(_))));
    }

    #[test]
    fn calls_of_the_evaluator_and_little_work_stay_on_this_thread() {
        let module = parse_module(MODULE).unwrap();
        let evaluator = Evaluator::new(&module).with_threads(8);
        assert_eq!(evaluator.chunk_length(1 << 30, None), 1 << 30);
        assert_eq!(evaluator.chunk_length(100, Some(THRESHOLD / 100 - 1)), 100);
        assert_eq!(evaluator.chunk_length(0, Some(1)), 1);
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        assert_eq!(pool.install(|| evaluator.chunk_length(100, Some(THRESHOLD))), 100);
    }
}
