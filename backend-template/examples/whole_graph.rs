//! Whole-graph backend: an alternative for hardware with its own graph compiler, which takes whole modules.
//!
//! Such a backend only implements the compiler: `run_hlo_passes` prepares the module, and `run_backend` sends it to the
//! graph compiler as a protobuf message and wraps the compiled graph in an `Executable`. There are no thunks, no buffer
//! assignment and no lowering. Devices, streams, memory and layouts work as in any other backend; this example uses
//! those of the simulated accelerator.

use std::sync::Arc;

use xla_hlo::text::parse_module;
use xla_hlo::{ArrayShape, ElementType, Literal, Module, Result, Scalar, VerifiedModule};
use xla_passes::{TargetProfile, stages};
use xla_service::{
    Argument, Client, CompileOptions, Compiler, CostAnalysis, DeviceMemory, Executable, ExecutionContext, HloPasses,
    MemoryAnalysis, OptimizedModule, Platform, PlatformRegistry, Signature, StreamExecutor, TransferManager, optimize,
};

/// Stand-in for the vendor's graph compiler: compiles an `HloModuleProto` to a graph that can run.
mod vendor {
    use xla_hlo::{Literal, Module, Result, eval, proto};

    /// Compiled graph.
    #[derive(Debug)]
    pub struct Graph(Module);

    /// Compiles a serialised module.
    pub fn compile(module: &[u8]) -> Result<Graph> {
        proto::parse_module(module).map(Graph)
    }

    impl Graph {
        /// Runs the graph.
        pub fn run(&self, parameters: Vec<Literal>) -> Result<Literal> {
            eval::evaluate(&self.0, parameters)
        }
    }
}

/// Compiler: runs the passes that the graph compiler benefits from, then calls it.
#[derive(Debug)]
struct GraphCompiler {
    transfer: Arc<dyn TransferManager>,
}

impl Compiler for GraphCompiler {
    fn run_hlo_passes(&self, module: VerifiedModule, options: &CompileOptions) -> Result<OptimizedModule> {
        // A graph compiler fuses and schedules by itself; it receives a canonicalized and simplified module.
        let profile = TargetProfile::generic();
        let pipeline = stages::canonicalize(&profile).stage(stages::simplify(&profile));
        Ok(optimize(module, &HloPasses { pipeline, profile }, options, None)?.0)
    }

    fn run_backend(&self, module: OptimizedModule, _: &CompileOptions) -> Result<Arc<dyn Executable>> {
        let graph = vendor::compile(&xla_hlo::proto::serialize_module(&module)?)?;
        let signature = Signature::new(&module, |shape| self.transfer.device_shape(shape))?;
        Ok(Arc::new(GraphExecutable { module, signature, graph }))
    }
}

/// Executable: the optimised module, its signature, and the vendor's compiled graph.
#[derive(Debug)]
struct GraphExecutable {
    module: OptimizedModule,
    signature: Signature,
    graph: vendor::Graph,
}

impl Executable for GraphExecutable {
    fn module(&self) -> &Module {
        &self.module
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    /// Runs the graph on the host. A real graph would use device memory.
    fn execute(&self, context: &ExecutionContext<'_>, arguments: Vec<Argument>) -> Result<Vec<DeviceMemory>> {
        let parameters = context.read_arguments(&self.signature, &arguments)?;
        context.write_results(&self.signature, self.graph.run(parameters)?)
    }

    fn memory_analysis(&self) -> MemoryAnalysis {
        MemoryAnalysis::default()
    }

    fn cost_analysis(&self) -> CostAnalysis {
        CostAnalysis::default()
    }
}

/// Platform: devices and layouts of the simulated accelerator, with the graph compiler.
#[derive(Debug)]
struct GraphPlatform(Arc<dyn Platform>);

impl Platform for GraphPlatform {
    fn name(&self) -> &str {
        "graph"
    }

    fn check(&self) -> Result<()> {
        self.0.check()
    }

    fn device_count(&self) -> usize {
        self.0.device_count()
    }

    fn executor(&self, ordinal: usize) -> Result<Arc<dyn StreamExecutor>> {
        self.0.executor(ordinal)
    }

    fn compiler(&self) -> Arc<dyn Compiler> {
        Arc::new(GraphCompiler { transfer: self.transfer_manager() })
    }

    fn transfer_manager(&self) -> Arc<dyn TransferManager> {
        self.0.transfer_manager()
    }
}

/// Compiles and runs a small program with the graph compiler; returns the norm of (3, 4).
fn run() -> Result<Scalar> {
    let mut registry = PlatformRegistry::new();
    registry.register(Arc::new(GraphPlatform(backend_template::platform())));
    let client = Client::new(&registry, "graph")?;
    let module = VerifiedModule::new(parse_module(
        "HloModule norm
        ENTRY main {
          x = f32[2] parameter(0)
          s = f32[] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}
          ROOT r = f32[] sqrt(s)
        }",
    )?)?;
    let program = client.compile(&module, &CompileOptions::default())?;
    let x = Literal::from_fn(&ArrayShape::new(ElementType::F32, [2]), |i| Scalar::Float(3.0 + i as f64))?;
    Ok(program.run(vec![x])?.get(0))
}

fn main() -> Result<()> {
    // An example prints its result.
    #[expect(clippy::print_stdout, reason = "an example's result")]
    {
        println!("the norm of (3, 4) is {:?}", run()?);
    }
    Ok(())
}

#[test]
fn the_graph_runs() {
    assert_eq!(run().expect("it runs"), Scalar::Float(5.0));
}
