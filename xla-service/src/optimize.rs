//! Runs a pass pipeline as the compile options specify, for the `run_hlo_passes` of every backend.

use std::fmt::Display;

use xla_hlo::{Error, Result, ResultExt, VerifiedModule};
use xla_passes::{FusionDecision, FusionRecorder, PassContext, PassEvent, PassObserver, PipelineReport, analysis};

use crate::compiler::{HloPasses, OptimizedModule};
use crate::dump::Dump;
use crate::options::CompileOptions;

/// Runs passes on a module, with pass options and dumps as specified, and verifies the result.
///
/// `observer`, if given, is notified of every pass. An error of a pass names the pass; if the resulting module is
/// invalid, the error is [`Error::Internal`].
pub fn optimize(
    module: VerifiedModule,
    passes: &HloPasses,
    options: &CompileOptions,
    observer: Option<&dyn PassObserver>,
) -> Result<(OptimizedModule, PipelineReport)> {
    let _span = tracing::debug_span!("optimize", module = module.name()).entered();
    let HloPasses { pipeline, profile } = passes;
    let recorder = options.dump_to.is_some().then(FusionRecorder::default);
    let watch = PassDumper { dump: Dump::new(options, &module), observer, recorder };
    let mut module = module.into_inner();
    let mut profile = profile.clone();
    profile.memory_bytes = options.memory_limit.or(profile.memory_bytes);
    let context = PassContext::new(&profile).with_options(options.passes.clone()).with_observer(&watch);
    let report = pipeline.run(&mut module, &context).context(|| format!("module {}", module.name()))?;
    let module = VerifiedModule::new(module)
        .map_err(|e| Error::internal(format!("pipeline {} broke the module: {}", pipeline.name(), e.message())))?;
    if options.dump_to.is_some() {
        let decisions = watch.recorder.map(|recorder| recorder.take()).unwrap_or_default();
        watch.dump.write("fusion.txt", || decisions.iter().map(|decision| format!("{decision}\n")).collect())?;
        watch.dump.write("fusion.json", || analysis::json(&decisions))?;
        analyses(&watch.dump, &module)?;
    }
    Ok((OptimizedModule::new(module), report))
}

/// Dumps analyses of the optimised module.
fn analyses(dump: &Dump, module: &VerifiedModule) -> Result<()> {
    let cost = analysis::cost::analyze(module);
    report(dump, "cost", &cost, &analysis::json(&cost))?;
    let calls = analysis::call_graph::analyze(module);
    report(dump, "call-graph", &calls, &analysis::json(&calls))?;
    let chains = analysis::reachability::chains(module);
    report(dump, "chains", &chains, &analysis::json(&chains))?;
    // A pipeline may leave the call graph unflattened; then a leaf of a callee may hold several values and the analysis
    // fails.
    match analysis::dataflow::analyze(module) {
        Ok(flow) => report(dump, "dataflow", &flow, &analysis::json(&flow)),
        Err(error) => dump.write("dataflow.txt", || format!("{error}\n")),
    }
}

/// Writes one report as text and as JSON.
fn report(dump: &Dump, name: &str, text: &impl Display, json: &str) -> Result<()> {
    dump.write(&format!("{name}.txt"), || text.to_string())?;
    dump.write(&format!("{name}.json"), || json.to_string())
}

/// Observer that dumps, and forwards events to another observer.
struct PassDumper<'a> {
    dump: Dump,
    observer: Option<&'a dyn PassObserver>,
    /// Recorder of fusion decisions for the dump.
    recorder: Option<FusionRecorder>,
}

impl PassObserver for PassDumper<'_> {
    fn before(&self, event: &PassEvent<'_>) -> Result<()> {
        self.dump.before(event)?;
        self.observer.map_or(Ok(()), |observer| observer.before(event))
    }

    fn after(&self, event: &PassEvent<'_>) -> Result<()> {
        self.dump.after(event)?;
        self.observer.map_or(Ok(()), |observer| observer.after(event))
    }

    fn explains(&self) -> bool {
        self.recorder.is_some() || self.observer.is_some_and(PassObserver::explains)
    }

    fn fusion(&self, decision: FusionDecision) {
        if let Some(observer) = self.observer.filter(|observer| observer.explains()) {
            observer.fusion(decision.clone());
        }
        if let Some(recorder) = &self.recorder {
            recorder.fusion(decision);
        }
    }
}

#[cfg(test)]
mod tests {
    use xla_hlo::builder::ModuleBuilder;
    use xla_hlo::{ElementType, Module, Shape};
    use xla_passes::{Pass, Pipeline, TargetProfile, stages};

    use super::*;

    fn module() -> VerifiedModule {
        let mut module = ModuleBuilder::new("dead");
        let mut b = module.computation("main");
        let x = b.parameter(Shape::scalar(ElementType::F32)).unwrap();
        b.negate(x).unwrap();
        let main = b.finish(x);
        module.finish(main).unwrap()
    }

    #[test]
    fn passes_run_and_are_dumped() {
        let directory = std::env::temp_dir().join(format!("xla-service-optimize-{}", std::process::id()));
        let profile = TargetProfile::generic();
        let options = CompileOptions { dump_to: Some(directory.clone()), ..CompileOptions::default() };
        let passes = HloPasses { pipeline: stages::canonicalize(&profile), profile };
        let (optimized, report) = optimize(module(), &passes, &options, None).unwrap();
        assert_eq!(optimized.entry().len(), 1);
        assert!(report.runs.iter().any(|run| run.pass == "dead-code" && run.changed));
        let files = std::fs::read_dir(&directory).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        let files: Vec<String> = files.collect();
        let reports = ["cost", "call-graph", "chains", "dataflow", "fusion"];
        let reports = reports.iter().flat_map(|name| [format!(".{name}.txt"), format!(".{name}.json")]);
        for end in reports.chain([".canonicalize.dead-code.hlo".to_string()]) {
            assert!(files.iter().any(|name| name.ends_with(&end)), "{end} is not in {files:?}");
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// Pass that produces an invalid module.
    struct Vandal;

    impl Pass for Vandal {
        fn name(&self) -> &'static str {
            "vandal"
        }
        fn rewrite(&self, module: &mut Module, _: &PassContext<'_>) -> Result<()> {
            let entry = module.entry_id();
            let root = module[entry].root();
            module.computation_mut(entry).set_shape(root, Shape::Tuple(vec![Shape::Token, Shape::Opaque]));
            let mut extra = xla_hlo::Computation::new("extra");
            let x = xla_hlo::Instruction::new(xla_hlo::ops::Parameter { number: 3 }.into(), Shape::Token, []);
            let x = extra.add(x);
            extra.set_root(x);
            module.add(extra);
            Ok(())
        }
    }

    #[test]
    fn a_broken_module_does_not_leave() {
        let profile = TargetProfile::generic();
        let mut options = CompileOptions::default();
        options.passes.verify = false;
        let passes = HloPasses { pipeline: Pipeline::new("bad").pass(Vandal), profile };
        let error = optimize(module(), &passes, &options, None).unwrap_err();
        assert!(matches!(error, Error::Internal(_)), "{error}");
        assert!(error.message().starts_with("pipeline bad broke the module"), "{error}");
    }
}
