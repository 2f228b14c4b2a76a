//! Tests of CUDA graphs of programs, counted in the log.

use tracing::Level;
use xla_hlo::text::parse_module;
use xla_hlo::{ArrayShape, ElementType, Literal, Scalar, VerifiedModule, eval};
use xla_service::{Client, CompileOptions, PlatformRegistry};

use crate::log::Log;

/// Dots of small matrices, each a kernel, before and after a conditional that the host evaluates, since one of its
/// branches draws random numbers; and another conditional, which the device evaluates.
const PROGRAM: &str = include_str!("programs/graphs.hlo");

#[test]
fn programs_that_run_again_build_no_graphs_again() {
    let platform = backend_gpu_nvptx::platform();
    if platform.check().is_err() {
        return;
    }
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_max_level(Level::DEBUG).with_writer(move || writer.clone());
    if tracing::subscriber::set_global_default(subscriber.finish()).is_err() {
        return;
    }
    let mut registry = PlatformRegistry::new();
    registry.register(platform);
    let client = Client::for_device(&registry, "gpu", 0, Default::default()).unwrap();
    let module = VerifiedModule::new(parse_module(PROGRAM).unwrap()).unwrap();
    let program = client.compile(&module, &CompileOptions::default()).unwrap();
    // The matrix permutes and doubles rows, so all products are exact.
    let number = |i: usize| Scalar::Float(if i % 8 == (i / 8 + 1) % 8 { 2.0 } else { 0.0 });
    let matrix = Literal::from_fn(&ArrayShape::new(ElementType::F32, [8, 8]), number).unwrap();
    let arguments = |choice: i64| {
        let choice = Literal::scalar(ElementType::S32, Scalar::Signed(choice));
        vec![matrix.clone(), Literal::scalar(ElementType::Pred, Scalar::Pred(false)), choice]
    };
    let mut counts = Vec::new();
    for run in 0..16 {
        let choice = run % 4 - 1;
        let expected = eval::evaluate(&module, arguments(choice)).unwrap();
        assert_eq!(program.run(arguments(choice)).unwrap(), expected, "choice {choice}");
        let text = log.text();
        counts.push(["a graph is built", "a graph is changed", "a graph is launched"].map(|t| text.matches(t).count()));
    }
    let [builds, changes, launches] = counts[15];
    assert!((3..=12).contains(&builds), "one for each run of launches and for a conditional: {counts:?}");
    assert_eq!([builds, changes], counts[7][..2], "buffers that were seen before change nothing: {counts:?}");
    assert_eq!(launches, 16 * 3, "{counts:?}");
}
