//! Parallel evaluation of independent elements on the threads of rayon's pool.
//!
//! Every element is computed by the same operations in the same order as on one thread, so results are bit-identical.
//! Code in this module calls computations only through a [`ScalarFunction`](super::ScalarFunction) that is compiled to
//! a program. The small stacks of rayon's threads therefore suffice, and no random numbers are drawn and no other
//! effects occur.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use super::Evaluator;
use crate::{ArrayShape, ElementType, Literal, Result, Scalar, has_thread_pool};

/// Minimum work, in nanoseconds of one thread, at which several threads share an operation. Waking them takes 20 to 50
/// microseconds.
const THRESHOLD: usize = 200_000;

/// Work, in nanoseconds, that a thread takes at a time.
const CHUNK: usize = 50_000;

/// Ranges of parts per thread, so that threads finish at about the same time.
const RANGES: usize = 8;

/// Approximate cost of an elementwise operation in nanoseconds; the real cost is 5 to 60.
pub(crate) const ELEMENT: usize = 10;

/// Approximate cost of one multiply-add in nanoseconds.
pub(crate) const PRODUCT: usize = 1;

/// Contiguous run of elements, at the same positions of several arrays.
pub(crate) struct Chunk<'a> {
    /// Row-major numbers of the elements.
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

/// Splits arrays of equal element count into runs of `length` elements.
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
    /// Creates an array whose element `i` in row-major order is `f(i)`; one call takes about `work` nanoseconds.
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

    /// Returns `f(i)` for each `i` below `count`; one call takes about `work` nanoseconds. `blank` is an arbitrary
    /// initial value.
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

    /// Calls `f` for the elements of arrays of equal element count, as [`Evaluator::for_each`] does. An element takes
    /// about `work` nanoseconds.
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

    /// Returns the number of elements, of `count`, that a thread takes at a time; an element takes about `work`
    /// nanoseconds. Returns all of them if the total is small, if only this thread may compute them (`work` is `None`),
    /// or on a thread of a rayon pool: the other threads of the pool have their own work, and while this thread waits
    /// for them it would start more of that work on the same stack.
    pub(crate) fn chunk_length(&self, count: usize, work: Option<usize>) -> usize {
        let alone = || self.threads < 2 || rayon::current_thread_index().is_some() || !has_thread_pool();
        match work {
            Some(work) if work.saturating_mul(count) >= THRESHOLD && !alone() => (CHUNK / work.max(1)).max(1),
            Some(_) | None => count.max(1),
        }
    }

    /// Calls `f` with each part. A single part runs on this thread with this evaluator and this state. Several parts
    /// run on threads of the pool, with evaluators that share the cancellation flag and the step limit, and with clones
    /// of the state. Returns the error of the first part that failed.
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
        let parts: Vec<Mutex<Option<P>>> = parts.into_iter().map(|part| Mutex::new(Some(part))).collect();
        let run = |range: Range<usize>| {
            let mut evaluator = Evaluator { cancelled: cancelled.clone(), ..Evaluator::new(module) };
            let mut state = state.clone();
            let parts =
                parts[range].iter().filter_map(|part| part.lock().unwrap_or_else(PoisonError::into_inner).take());
            for part in parts {
                let left = limit.saturating_sub(spent.load(Ordering::Relaxed));
                evaluator.steps_left = left;
                let result = f(&mut evaluator, &mut state, part);
                spent.fetch_add(left - evaluator.steps_left, Ordering::Relaxed);
                result?;
            }
            Ok(())
        };
        in_parallel(parts.len(), self.threads, &run)?;
        self.spend_steps(spent.into_inner())
    }
}

/// Calls `run` with ranges that cover `0..count`, on at most `threads` threads of the pool. Returns the error of the
/// first range that failed. Not generic, so that rayon's code is compiled once.
fn in_parallel(count: usize, threads: usize, run: &(dyn Fn(Range<usize>) -> Result<()> + Sync)) -> Result<()> {
    // A thread that finishes early takes further ranges, unless fewer threads are wanted than the pool has.
    let ranges = if threads < rayon::current_num_threads() { threads } else { RANGES * rayon::current_num_threads() };
    let length = count.div_ceil(ranges.max(1)).max(1);
    let ranges: Vec<Range<usize>> =
        (0..count).step_by(length).map(|first| first..(first + length).min(count)).collect();
    let results: Vec<Result<()>> = ranges.into_par_iter().with_max_len(1).map(run).collect();
    results.into_iter().collect()
}
