//! Progress bars on standard error, only for long work and only on a terminal.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Delay before a progress bar appears.
const PATIENCE: Duration = Duration::from_millis(500);

/// Progress bar that appears after a delay. Only [`Progress::advance`] draws, so that no thread disturbs the
/// measurement.
pub struct Progress {
    bar: ProgressBar,
    start: Instant,
    what: &'static str,
    total: u64,
}

impl Progress {
    /// Creates a bar for work of `total` steps.
    pub fn new(what: &'static str, total: usize) -> Progress {
        Progress { bar: ProgressBar::hidden(), start: Instant::now(), what, total: total as u64 }
    }

    /// Records that one step is done.
    pub fn advance(&mut self) {
        if self.bar.length().is_none() && self.start.elapsed() >= PATIENCE {
            self.show();
        }
        self.bar.inc(1);
    }

    fn show(&mut self) {
        self.bar.set_length(self.total);
        self.bar.set_message(self.what);
        if let Ok(style) = ProgressStyle::with_template("{msg} {bar:40} {pos}/{len}") {
            self.bar.set_style(style);
        }
        // Hidden unless standard error is a terminal.
        self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(8));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
