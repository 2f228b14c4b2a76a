//! The inner loops: a few positions times a few vectors of channels, summed in registers.
#![expect(unsafe_code, reason = "inner loops read packed buffers through pointers")]

use pulp::{Simd, WithSimd};

use super::number::{Number, lanes};

/// Offsets of a position's packed input and of its results, in elements.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub input: usize,
    pub output: usize,
}

/// Numbers of the packed input that are summed over in one go: the offset of the first, and how many.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub offset: usize,
    pub length: usize,
}

/// Vectors of channels that are computed at once.
pub(super) const VECTORS: usize = 2;

/// Adds products of runs of the input with a packed kernel to the results of some positions, for one block of channels.
pub(super) struct Tiles<'a, T, const SIDE_BY_SIDE: bool> {
    pub places: &'a [Place],
    pub runs: &'a [Run],
    /// Distance of a run's numbers.
    pub step: usize,
    /// The packed or original input, from which places and runs are counted.
    pub input: *const T,
    /// A row of `width` numbers for each number of the runs, in their order.
    pub kernel: *const T,
    /// Channels in a row of the kernel: whole vectors, at most [`VECTORS`].
    pub width: usize,
    /// The block's first channel of the result, from which places are counted.
    pub output: *mut T,
    /// Channels that exist.
    pub channels: usize,
    /// Distance of the result's channels.
    pub channel_step: usize,
    /// Whether results are added to those in memory.
    pub adds: bool,
}

impl<T: Number, const SIDE_BY_SIDE: bool> WithSimd for Tiles<'_, T, SIDE_BY_SIDE> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // SAFETY: whoever made the tiles promised that the pointers reach all places and runs; see `Tiles::run`.
        unsafe {
            if self.width <= lanes::<T, S>() {
                self.all::<S, 1>(simd);
            } else {
                self.all::<S, VECTORS>(simd);
            }
        }
    }
}

impl<T: Number, const SIDE_BY_SIDE: bool> Tiles<'_, T, SIDE_BY_SIDE> {
    /// Computes all positions.
    ///
    /// # Safety
    /// `input` plus a place plus any number of a run (and, side by side, the channels of the block after it) is inside
    /// the input; `kernel` has `width` numbers for each number of the runs; `output` plus a place plus any of
    /// `channels` is inside the result, where nobody else reads or writes meanwhile. `width` is that of one or two
    /// vectors of the best instruction set.
    pub(super) unsafe fn run(self, arch: pulp::Arch) {
        arch.dispatch(self);
    }

    /// # Safety
    /// As for [`Tiles::run`].
    #[inline(always)]
    unsafe fn all<S: Simd, const V: usize>(&self, simd: S) {
        let mut places = self.places;
        // SAFETY: the caller's promise. Heights are those whose sums fit the registers beside a row and a factor.
        unsafe {
            if S::REGISTER_COUNT >= 32 {
                self.while_left::<S, V, 14>(simd, &mut places);
            }
            self.while_left::<S, V, 6>(simd, &mut places);
            self.while_left::<S, V, 2>(simd, &mut places);
            self.while_left::<S, V, 1>(simd, &mut places);
        }
    }

    /// # Safety
    /// As for [`Tiles::run`].
    #[inline(always)]
    unsafe fn while_left<S: Simd, const V: usize, const H: usize>(&self, simd: S, places: &mut &[Place]) {
        while let Some((tile, rest)) = places.split_first_chunk::<H>() {
            // SAFETY: the caller's promise.
            unsafe { self.store(simd, tile, self.sums::<S, V, H>(simd, tile)) };
            *places = rest;
        }
    }

    /// # Safety
    /// As for [`Tiles::run`].
    #[inline(always)]
    #[allow(clippy::needless_range_loop, reason = "rows and columns of registers read best by number")]
    unsafe fn sums<S: Simd, const V: usize, const H: usize>(
        &self,
        simd: S,
        places: &[Place; H],
    ) -> [[T::Register<S>; V]; H] {
        let n = lanes::<T, S>();
        let mut sums = [[T::splat(simd, T::ZERO); V]; H];
        let mut row = self.kernel;
        for run in self.runs {
            // SAFETY: the caller's promise: runs of all places are inside the input.
            let from: [*const T; H] = std::array::from_fn(|i| unsafe { self.input.add(places[i].input + run.offset) });
            let mut at = 0;
            for _ in 0..run.length {
                // SAFETY: `at` is that of a number of the run, `row` that of its row of the kernel.
                unsafe {
                    let kernel: [T::Register<S>; V] = std::array::from_fn(|v| load(row.add(v * n)));
                    for i in 0..H {
                        for v in 0..V {
                            let x = if SIDE_BY_SIDE {
                                load(from[i].add(at + v * n))
                            } else {
                                T::splat(simd, *from[i].add(at))
                            };
                            sums[i][v] = T::multiply_add(simd, x, kernel[v], sums[i][v]);
                        }
                    }
                    row = row.add(V * n);
                }
                at += self.step;
            }
        }
        sums.map(|row| row.map(|sum| T::sum_from_zero(simd, sum)))
    }

    /// # Safety
    /// As for [`Tiles::run`].
    #[inline(always)]
    unsafe fn store<S: Simd, const V: usize, const H: usize>(
        &self,
        simd: S,
        places: &[Place; H],
        sums: [[T::Register<S>; V]; H],
    ) {
        let n = lanes::<T, S>();
        let whole = self.channels == V * n && self.channel_step == 1;
        for (place, sums) in places.iter().zip(sums) {
            // SAFETY: the place's channels are inside the result; sums are `V * n` numbers, of which `channels` exist.
            unsafe {
                let out = self.output.add(place.output);
                if whole {
                    for (v, mut sum) in sums.into_iter().enumerate() {
                        if self.adds {
                            sum = T::add(simd, load(out.add(v * n)), sum);
                        }
                        out.add(v * n).cast::<T::Register<S>>().write_unaligned(sum);
                    }
                } else {
                    let sums = std::ptr::from_ref(&sums).cast::<T>();
                    for channel in 0..self.channels {
                        let (to, sum) = (out.add(channel * self.channel_step), *sums.add(channel));
                        to.write(if self.adds { (*to).plus(sum) } else { sum });
                    }
                }
            }
        }
    }
}

/// # Safety
/// A whole vector may be read at `from`.
#[inline(always)]
unsafe fn load<R: Copy>(from: *const impl Number) -> R {
    // SAFETY: the caller's promise.
    unsafe { from.cast::<R>().read_unaligned() }
}
