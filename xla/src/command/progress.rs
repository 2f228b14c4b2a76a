//! Progress on standard error, only while a person watches and only when something takes long.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Nothing is shown before.
const PATIENCE: Duration = Duration::from_millis(500);

/// A bar that appears after a while. Drawing happens in [`Progress::advance`] alone: no thread disturbs the
/// measurement.
pub struct Progress {
    bar: ProgressBar,
    start: Instant,
    what: &'static str,
    total: u64,
}

impl Progress {
    /// Work of `total` steps.
    pub fn new(what: &'static str, total: usize) -> Progress {
        Progress { bar: ProgressBar::hidden(), start: Instant::now(), what, total: total as u64 }
    }

    /// One step is done.
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
        // Hidden where standard error is not a terminal.
        self.bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(8));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
