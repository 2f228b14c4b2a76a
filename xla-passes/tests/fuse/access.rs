//! Tests of the element accesses of kernels: their number, and how often they are computed.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};
use xla_hlo::Op;
use xla_hlo::text::parse_module;
use xla_passes::internals::accesses;
use xla_passes::{FuseOutputs, FusionProfile, Pass, PassContext, TargetProfile};

/// Returns a chain of normalisations of rows: each step reads the previous one at the loop's index and through its
/// sum.
fn normalizations(steps: usize) -> String {
    let last = steps;
    let step = |i: usize| {
        let next = i + 1;
        format!(
            "s{i} = f32[9] reduce(v{i}, zero), dimensions={{1}}, to_apply=add
  b{i} = f32[9,50] broadcast(s{i}), dimensions={{0}}
  v{next} = f32[9,50] divide(v{i}, b{i})
"
        )
    };
    let steps: String = (0..steps).map(step).collect();
    format!(
        "HloModule m
add {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}
ENTRY main {{
  v0 = f32[9,50] parameter(0)
  zero = f32[] constant(0)
{steps}  ROOT root = f32[9,50] negate(v{last})
}}
"
    )
}

#[test]
fn normalizations_in_a_chain_have_few_accesses() {
    let module = parse_module(&normalizations(20)).expect("a module");
    let body = module.entry();
    let accesses = accesses(body);
    assert_eq!(accesses[body.root()].len(), 1);
    assert!(accesses[body.root()][0].is_loop_index());
    let [argument] = body.parameters() else { panic!("one parameter") };
    let of_argument = &accesses[*argument];
    assert_eq!(of_argument.iter().filter(|a| a.is_loop_index()).count(), 1);
    assert_eq!(of_argument.iter().filter(|a| !a.is_loop_index()).count(), 1);
    assert!(body.ids().all(|id| accesses[id].len() <= 2));
}

/// Counts the trace events of computed accesses on this thread.
struct ComputedAccesses(Arc<AtomicUsize>);

impl Subscriber for ComputedAccesses {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target() == "xla_passes::fuse::access"
    }

    fn event(&self, _: &Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Returns kernels that sum the rows of one array. Each of them is a candidate for each of the others.
fn row_sums(kernels: usize) -> String {
    let mut text = "HloModule m
add {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}
"
    .to_string();
    let mut entry = "ENTRY main {\n  x = f32[8,256] parameter(0)\n".to_string();
    for i in 0..kernels {
        writeln!(
            text,
            "body.{i} {{
  p = f32[8,256] parameter(0)
  e = f32[8,256] exponential(p)
  zero = f32[] constant(0)
  ROOT r = f32[8] reduce(e, zero), dimensions={{1}}, to_apply=add
}}"
        )
        .unwrap();
        writeln!(entry, "  k.{i} = f32[8] fusion(x), kind=kInput, calls=body.{i}").unwrap();
    }
    let shapes = vec!["f32[8]"; kernels].join(", ");
    let results: Vec<String> = (0..kernels).map(|i| format!("k.{i}")).collect();
    format!("{text}{entry}  ROOT t = ({shapes}) tuple({})\n}}\n", results.join(", "))
}

/// Returns the numbers of merged kernels and of computations of a body's accesses.
fn merges(kernels: usize, max_instructions: usize) -> (usize, usize) {
    let mut module = parse_module(&row_sums(kernels)).expect("a module");
    let able = TargetProfile::able();
    let fusion = FusionProfile { max_instructions, ..able.fusion.clone() };
    let profile = TargetProfile { fusion, ..able };
    let computed = Arc::new(AtomicUsize::new(0));
    tracing::subscriber::with_default(ComputedAccesses(computed.clone()), || {
        FuseOutputs.run(&mut module, &PassContext::new(&profile)).expect("it runs");
    });
    let left = module.entry().iter().filter(|(_, i)| matches!(i.op(), Op::Fusion(_))).count();
    (kernels - left, computed.load(Ordering::Relaxed))
}

#[test]
fn accesses_are_computed_once_for_each_kernel() {
    // Kernels of 4 instructions each do not fit into 7, and each of them is tried with each other one.
    assert_eq!(merges(40, 7), (0, 40));
    // All kernels fit into one, and each of the merged kernels is a new one.
    assert_eq!(merges(20, 512), (19, 39));
}
