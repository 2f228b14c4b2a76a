//! Tests of CUDA graphs of programs, counted in the log.

use tracing::Level;
use xla_hlo::text::parse_module;
use xla_hlo::{ArrayShape, ElementType, Literal, Scalar, VerifiedModule, eval};
use xla_service::{Client, CompileOptions, PlatformRegistry};

use crate::log::Log;

/// Dots of small matrices, each a kernel, before and after a conditional that the host evaluates, since one of its
/// branches draws random numbers; and another conditional, which the device evaluates.
const PROGRAM: &str = "HloModule m

drawn {
  x = f32[8,8] parameter(0)
  low = f32[] constant(0)
  high = f32[] constant(1)
  ROOT r = f32[8,8] rng(low, high), distribution=rng_uniform
}

squared {
  x = f32[8,8] parameter(0)
  ROOT p = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

same {
  ROOT x = f32[8,8] parameter(0)
}

ENTRY main {
  x = f32[8,8] parameter(0)
  draws = pred[] parameter(1)
  choice = s32[] parameter(2)
  a0 = f32[8,8] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  a1 = f32[8,8] dot(a0, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  a2 = f32[8,8] dot(a1, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  a3 = f32[8,8] dot(a2, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[8,8] conditional(draws, a3, a3), true_computation=drawn, false_computation=squared
  b0 = f32[8,8] dot(c, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b1 = f32[8,8] dot(b0, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b2 = f32[8,8] dot(b1, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b3 = f32[8,8] dot(b2, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT d = f32[8,8] conditional(choice, b3, b3, a0), branch_computations={same, squared, same}
}";

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
