//! Timing with the rules of the benchmark, and checksums of outputs.

use std::time::{Duration, Instant};

use serde::Serialize;
use xla::hlo::{Literal, Scalar};

/// Warm-up limits: minimum number of calls, minimum time, maximum number of calls, maximum time.
const WARM_UP: (usize, Duration, usize, Duration) = (3, Duration::from_millis(250), 1000, Duration::from_secs(20));
/// Minimum number of timed calls.
const LEAST: usize = 7;
/// Maximum number of timed calls, unless a number is given.
const MOST: usize = 5000;

/// Durations of calls in ascending order; never empty.
pub struct Times(Vec<Duration>);

impl Times {
    /// Sorts the durations.
    pub fn new(mut times: Vec<Duration>) -> Times {
        times.sort_unstable();
        Times(times)
    }

    /// Returns the number of calls.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the median: the middle duration, or the mean of the two in the middle.
    pub fn median(&self) -> Duration {
        let middle = self.0.len() / 2;
        match self.0.len() % 2 {
            0 => (self.at(middle.wrapping_sub(1)) + self.at(middle)) / 2,
            _ => self.at(middle),
        }
    }

    /// Returns the quantile for `share` (0 to 1) of the calls.
    pub fn quantile(&self, share: f64) -> Duration {
        self.at((share * self.0.len() as f64) as usize)
    }

    fn at(&self, i: usize) -> Duration {
        self.0.get(i.min(self.0.len().saturating_sub(1))).copied().unwrap_or_default()
    }
}

/// Calls `once` until the program is warm; returns the duration of the last call. `once` measures itself.
pub fn warm_up<E>(mut once: impl FnMut() -> Result<Duration, E>) -> Result<Duration, E> {
    let (least, enough, most, too_long) = WARM_UP;
    let (mut calls, mut spent, mut last) = (0, Duration::ZERO, Duration::ZERO);
    while (calls < least || (spent < enough && calls < most)) && spent <= too_long {
        last = once()?;
        spent += last;
        calls += 1;
    }
    Ok(last)
}

/// Returns the number of calls that take about `seconds` in total, when one takes `each`.
pub fn repetitions(seconds: f64, each: Duration) -> usize {
    ((seconds / each.as_secs_f64().max(1e-7)) as usize).clamp(LEAST, MOST)
}

/// Converts to microseconds, with a resolution of nanoseconds.
pub fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

/// Runs `work` and returns its result and its duration.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed())
}

/// Checksums of an output, over its finite elements v[i] in row-major order, in `f64`. Integers and booleans are
/// converted to numbers, and complex numbers to their real part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Sums {
    /// Sum of v.
    pub sum: f64,
    /// Sum of |v|.
    pub abs_sum: f64,
    /// Sum of v * ((i mod 1021) + 1) / 1021, which detects permutations.
    pub wsum: f64,
    /// Number of elements that are not finite.
    pub nonfinite: usize,
}

impl Sums {
    /// Computes the checksums of an array.
    pub fn of(literal: &Literal) -> Sums {
        const PERIOD: usize = 1021;
        let mut total = Sums::default();
        let count = literal.array_shape().element_count();
        // Partial sums have a smaller rounding error than one long sum.
        for start in (0..count).step_by(PERIOD) {
            let mut part = Sums::default();
            for i in start..count.min(start + PERIOD) {
                let v = number(literal.get(i));
                if v.is_finite() {
                    part.sum += v;
                    part.abs_sum += v.abs();
                    part.wsum += v * ((i - start + 1) as f64 / PERIOD as f64);
                } else {
                    part.nonfinite += 1;
                }
            }
            total.sum += part.sum;
            total.abs_sum += part.abs_sum;
            total.wsum += part.wsum;
            total.nonfinite += part.nonfinite;
        }
        total
    }
}

fn number(value: Scalar) -> f64 {
    match value {
        Scalar::Pred(v) => f64::from(u8::from(v)),
        Scalar::Signed(v) => v as f64,
        Scalar::Unsigned(v) => v as f64,
        Scalar::Float(v) | Scalar::Complex(v, _) => v,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xla::hlo::{ArrayShape, ElementType};

    #[test]
    fn quantiles_are_those_of_the_baseline() {
        let times = Times::new([5, 1, 4, 2, 3, 10, 9, 6, 8, 7].map(Duration::from_micros).to_vec());
        assert_eq!(times.median(), Duration::from_nanos(5500));
        assert_eq!(times.quantile(0.1), Duration::from_micros(2));
        assert_eq!(times.quantile(0.9), Duration::from_micros(10));
        assert_eq!(times.quantile(0.0), Duration::from_micros(1));
        let one = Times::new(vec![Duration::from_micros(3)]);
        assert_eq!((one.median(), one.quantile(0.9)), (Duration::from_micros(3), Duration::from_micros(3)));
    }

    #[test]
    fn warming_up_takes_three_calls_and_a_quarter_of_a_second() {
        let calls = |each| {
            let mut calls = 0;
            let last = warm_up(|| {
                calls += 1;
                Ok::<_, ()>(each)
            });
            assert_eq!(last, Ok(each));
            calls
        };
        assert_eq!(calls(Duration::from_secs(1)), 3);
        assert_eq!(calls(Duration::from_millis(10)), 25);
        assert_eq!(calls(Duration::from_nanos(1)), 1000);
        assert_eq!(calls(Duration::from_secs(30)), 1);
    }

    #[test]
    fn repetitions_fill_the_time() {
        assert_eq!(repetitions(1.0, Duration::from_millis(10)), 100);
        assert_eq!(repetitions(1.0, Duration::from_secs(10)), 7);
        assert_eq!(repetitions(1.0, Duration::ZERO), 5000);
    }

    #[test]
    fn sums_leave_out_what_is_not_finite() {
        let shape = ArrayShape::new(ElementType::F32, [1023]);
        let value = |i: usize| match i {
            0 => -2.0,
            1 => f64::NAN,
            1022 => 3.0,
            _ => 0.0,
        };
        let sums = Sums::of(&Literal::from_fn(&shape, |i| Scalar::Float(value(i))).unwrap());
        assert_eq!((sums.sum, sums.abs_sum, sums.nonfinite), (1.0, 5.0, 1));
        // Element 1022 has the weight of element 1.
        assert!((sums.wsum - (-2.0 + 3.0 * 2.0) / 1021.0).abs() < 1e-15);
    }
}
