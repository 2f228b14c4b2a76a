//! Micro-kernel: sums of a tile of a few positions times a few vectors of channels, in registers.
#![expect(unsafe_code, reason = "inner loops read packed buffers through pointers")]

use pulp::{Simd, WithSimd};

use super::number::{Number, lanes};

/// Offsets of a position in the packed input and in the result, in elements.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub input: usize,
    pub output: usize,
}

/// Evenly spaced elements of the packed input that one loop sums over: the offset of the first, and their number.
#[derive(Clone, Copy)]
pub(super) struct Run {
    pub offset: usize,
    pub length: usize,
}

/// Maximum number of vectors of channels in a register tile.
pub(super) const VECTORS: usize = 2;

/// Loop nest that adds products of runs of the input with a packed kernel to the results of some positions, for one
/// block of channels.
pub(super) struct Tiles<'a, T, const SIDE_BY_SIDE: bool> {
    pub places: &'a [Place],
    pub runs: &'a [Run],
    /// Stride of the elements of a run.
    pub step: usize,
    /// Packed or original input, the base of the offsets of places and runs.
    pub input: *const T,
    /// Packed kernel: a row of `width` values for each element of the runs, in their order.
    pub kernel: *const T,
    /// Number of channels in a row of the kernel: a multiple of the vector length, at most [`VECTORS`] vectors.
    pub width: usize,
    /// First channel of the block in the result, the base of the offsets of places.
    pub output: *mut T,
    /// Number of channels that exist.
    pub channels: usize,
    /// Stride of the channels of the result.
    pub channel_step: usize,
    /// Whether sums are added to the results in memory.
    pub adds: bool,
}

impl<T: Number, const SIDE_BY_SIDE: bool> WithSimd for Tiles<'_, T, SIDE_BY_SIDE> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // SAFETY: the creator of the tiles has guaranteed that the pointers reach all places and runs; see
        // `Tiles::run`.
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
    /// `input` plus a place plus any element of a run (and, side by side, the channels of the block after it) must be
    /// inside the input. `kernel` must have `width` values for each element of the runs. `output` plus a place plus any
    /// of `channels` must be inside the result, and no other code may read or write there during the call. `width` must
    /// be one or two vectors of the best instruction set.
    pub(super) unsafe fn run(self, arch: pulp::Arch) {
        arch.dispatch(self);
    }

    /// # Safety
    /// The requirements of [`Tiles::run`].
    #[inline(always)]
    unsafe fn all<S: Simd, const V: usize>(&self, simd: S) {
        let mut places = self.places;
        // SAFETY: guaranteed by the caller. The tile heights are chosen so that the sums fit the registers, with one
        // row of the kernel and one factor.
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
    /// The requirements of [`Tiles::run`].
    #[inline(always)]
    unsafe fn while_left<S: Simd, const V: usize, const H: usize>(&self, simd: S, places: &mut &[Place]) {
        while let Some((tile, rest)) = places.split_first_chunk::<H>() {
            // SAFETY: guaranteed by the caller.
            unsafe { self.store(simd, tile, self.sums::<S, V, H>(simd, tile)) };
            *places = rest;
        }
    }

    /// # Safety
    /// The requirements of [`Tiles::run`].
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
            // SAFETY: guaranteed by the caller: runs of all places are inside the input.
            let from = unsafe { self.starts(places, run.offset) };
            let mut at = 0;
            for _ in 0..run.length {
                // SAFETY: `at` is the offset of an element of the run, `row` points to its row of the kernel.
                unsafe {
                    let mut kernel = [T::splat(simd, T::ZERO); V];
                    for v in 0..V {
                        kernel[v] = load(row.add(v * n));
                    }
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
        for i in 0..H {
            for v in 0..V {
                sums[i][v] = T::sum_from_zero(simd, sums[i][v]);
            }
        }
        sums
    }

    /// Returns the addresses of the first elements of a run at `offset`, for some places. Loops over arrays instead of
    /// closures keep the many instances of the micro-kernel quick to compile.
    ///
    /// # Safety
    /// The requirements of [`Tiles::run`].
    #[inline(always)]
    unsafe fn starts<const H: usize>(&self, places: &[Place; H], offset: usize) -> [*const T; H] {
        let mut starts = [self.input; H];
        for (start, place) in starts.iter_mut().zip(places) {
            // SAFETY: guaranteed by the caller.
            *start = unsafe { self.input.add(place.input + offset) };
        }
        starts
    }

    /// # Safety
    /// The requirements of [`Tiles::run`].
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
            // SAFETY: the place's channels are inside the result; `sums` has `V * n` values, at least `channels`.
            unsafe {
                let out = self.output.add(place.output);
                if whole {
                    for (v, &sum) in sums.iter().enumerate() {
                        let mut sum = sum;
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
/// A whole vector must be readable at `from`.
#[inline(always)]
unsafe fn load<R: Copy>(from: *const impl Number) -> R {
    // SAFETY: guaranteed by the caller.
    unsafe { from.cast::<R>().read_unaligned() }
}
