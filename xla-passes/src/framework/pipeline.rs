//! Pipelines: named lists of passes, stages and fixpoint groups, with verification, reports and limits.

use std::fmt;
use std::time::{Duration, Instant};

use xla_hlo::out_of_memory::ensure_room;
use xla_hlo::{Error, Module, Result, ResultExt, verify};

use crate::framework::observer::PassEvent;
use crate::framework::report::{PassRun, PipelineReport};
use crate::{Pass, PassContext};

/// A named list of passes, inner pipelines and fixpoint groups that run in order.
///
/// `Display` prints the pipeline as an indented list.
pub struct Pipeline {
    name: &'static str,
    steps: Vec<PipelineStep>,
    /// Maximum number of iterations of a fixpoint group; 1 for a plain stage.
    iterations: usize,
}

enum PipelineStep {
    Pass(Box<dyn Pass>),
    Pipeline(Pipeline),
}

impl Pipeline {
    /// Creates an empty pipeline that runs its list once.
    pub fn new(name: &'static str) -> Pipeline {
        Pipeline { name, steps: Vec::new(), iterations: 1 }
    }

    /// Creates an empty pipeline that runs its list until an iteration changes nothing, at most `iterations` times.
    pub fn fixed_point(name: &'static str, iterations: usize) -> Pipeline {
        Pipeline { name, steps: Vec::new(), iterations: iterations.max(1) }
    }

    /// Appends a pass.
    #[must_use]
    pub fn pass(self, pass: impl Pass + 'static) -> Pipeline {
        self.boxed(Box::new(pass))
    }

    /// Appends a boxed pass, for example from the registry.
    #[must_use]
    pub fn boxed(mut self, pass: Box<dyn Pass>) -> Pipeline {
        self.steps.push(PipelineStep::Pass(pass));
        self
    }

    /// Appends an inner pipeline.
    #[must_use]
    pub fn stage(mut self, pipeline: Pipeline) -> Pipeline {
        self.steps.push(PipelineStep::Pipeline(pipeline));
        self
    }

    /// Returns the name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the names of the pipeline and all passes and inner pipelines, outermost first.
    pub fn names(&self) -> Vec<&'static str> {
        let mut names = vec![self.name];
        for step in &self.steps {
            match step {
                PipelineStep::Pass(pass) => names.push(pass.name()),
                PipelineStep::Pipeline(inner) => names.extend(inner.names()),
            }
        }
        names
    }

    /// Runs the list on the module under the context's options.
    ///
    /// An error names the pass that failed or after which the module was invalid.
    pub fn run(&self, module: &mut Module, cx: &PassContext<'_>) -> Result<PipelineReport> {
        self.check_names(cx)?;
        let mut run = PipelineRun { cx, report: PipelineReport::default() };
        run.pipeline(self, module, "")?;
        Ok(run.report)
    }

    fn check_names(&self, cx: &PassContext<'_>) -> Result<()> {
        let names = self.names();
        match &cx.options().until {
            Some(until) if !names.contains(&until.as_str()) => Err(Error::invalid_argument(format!(
                "cannot stop after {until}: pipeline {} has no pass or stage of that name; it has {}",
                self.name,
                names.join(", ")
            ))),
            Some(_) | None => Ok(()),
        }
    }

    fn fmt_indented(&self, f: &mut fmt::Formatter<'_>, depth: usize) -> fmt::Result {
        let iterations =
            if self.iterations > 1 { format!(" (at most {} iterations)", self.iterations) } else { String::new() };
        writeln!(f, "{:depth$}{}{iterations}:", "", self.name, depth = 2 * depth)?;
        for step in &self.steps {
            match step {
                PipelineStep::Pass(pass) => writeln!(f, "{:depth$}{}", "", pass.name(), depth = 2 * depth + 2)?,
                PipelineStep::Pipeline(inner) => inner.fmt_indented(f, depth + 1)?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fmt_indented(f, 0)
    }
}

/// Whether the pipeline continues.
#[derive(PartialEq)]
enum Flow {
    Continue,
    Cut,
}

struct PipelineRun<'c, 'a> {
    cx: &'c PassContext<'a>,
    report: PipelineReport,
}

impl PipelineRun<'_, '_> {
    fn pipeline(&mut self, pipeline: &Pipeline, module: &mut Module, outer: &str) -> Result<Flow> {
        let path = join(outer, pipeline.name);
        let _span = tracing::debug_span!("stage", name = %path).entered();
        for iteration in 1..=pipeline.iterations {
            let before = module.revision();
            for step in &pipeline.steps {
                let flow = match step {
                    PipelineStep::Pass(pass) => self.pass(pass.as_ref(), module, &path)?,
                    PipelineStep::Pipeline(inner) => self.pipeline(inner, module, &path)?,
                };
                if flow == Flow::Cut {
                    return Ok(Flow::Cut);
                }
            }
            if module.revision() == before {
                break;
            }
            if iteration == pipeline.iterations && iteration > 1 {
                tracing::warn!(group = %path, iterations = iteration, "a fixed-point group reached its limit");
                self.report.unfinished.push(path.clone());
            }
        }
        Ok(self.cut_after(pipeline.name, &path))
    }

    fn pass(&mut self, pass: &dyn Pass, module: &mut Module, outer: &str) -> Result<Flow> {
        let options = self.cx.options();
        let index = self.report.runs.len();
        let path = join(outer, pass.name());
        if options.disabled.contains(pass.name()) {
            return Ok(Flow::Continue);
        }
        if options.max_passes.is_some_and(|limit| index >= limit) {
            self.report.cut_at = Some(path);
            return Ok(Flow::Cut);
        }
        let _span = tracing::debug_span!("pass", name = %path).entered();
        let observer = self.cx.observer();
        observer.map_or(Ok(()), |o| o.before(&event(index, &path, pass, module, false)))?;
        ensure_room()?;
        let start = Instant::now();
        let changed = pass.run(module, self.cx).context(|| format!("in pass {path}"))?.is_changed();
        let time = start.elapsed();
        let verify_time = if changed && options.verify { verified(module, &path)? } else { Duration::ZERO };
        tracing::debug!(changed, micros = time.as_micros() as u64);
        observer.map_or(Ok(()), |o| o.after(&event(index, &path, pass, module, changed)))?;
        let instructions = module.instruction_count();
        let rewrites = self.cx.take_rewrite_counts();
        let flow = self.cut_after(pass.name(), &path);
        let pass = pass.name();
        self.report.runs.push(PassRun { index, path, pass, changed, time, verify_time, instructions, rewrites });
        Ok(flow)
    }

    fn cut_after(&mut self, name: &str, path: &str) -> Flow {
        if self.cx.options().until.as_deref() == Some(name) {
            self.report.cut_at = Some(path.to_string());
            return Flow::Cut;
        }
        Flow::Continue
    }
}

fn event<'a>(index: usize, path: &'a str, pass: &dyn Pass, module: &'a Module, changed: bool) -> PassEvent<'a> {
    PassEvent { index, path, pass: pass.name(), module, changed }
}

fn join(outer: &str, name: &str) -> String {
    if outer.is_empty() { name.to_string() } else { format!("{outer}.{name}") }
}

fn verified(module: &Module, path: &str) -> Result<Duration> {
    let start = Instant::now();
    // An invalid module after a pass is a bug in the pass, not in the input program.
    verify::check(module).map_err(|e| Error::internal(format!("after pass {path}: {}", e.message())))?;
    Ok(start.elapsed())
}
