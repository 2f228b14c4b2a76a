//! Level 2: each operation with each element type that it supports, with ordinary, extreme and no values, against the
//! evaluator.

use xla::compare::Tolerance;
use xla::{Client, CompilationCache, CompileOptions, Error, FallbackPolicy, Literal, LoadedExecutable, VerifiedModule};
use xla_hlo::eval::Evaluator;
use xla_hlo::ops::CustomCallRegistry;
use xla_hlo::{ElementType, Opcode};

use super::Sizes;
use crate::conformance::case::{Case, Check, Level, Notes, Stop, Subject, ensure};
use crate::conformance::judge;
use crate::coverage::{self, Status, Trial, recipe, trial, trial_with};
use crate::generate::{Random, Temper, epsilon, least, literal};

/// Number of programs with extreme values for each operation and type.
const EXTREMES: u64 = 4;
/// Element types that quick runs also test with empty arrays.
const QUICK_EMPTY: [ElementType; 3] = [ElementType::Pred, ElementType::F32, ElementType::C64];

pub fn cases(sizes: &Sizes) -> Vec<Case> {
    let mut cases = Vec::new();
    // Opcodes without a recipe have no text form.
    for &opcode in Opcode::ALL.iter().filter(|&&opcode| recipe(opcode).is_some()) {
        for &ty in ElementType::ALL {
            if matches!(trial(opcode, ty), Err(Status::NotAllowed)) {
                continue;
            }
            let also_empty = !sizes.quick || QUICK_EMPTY.contains(&ty);
            let work = move |subject: &Subject, notes: &mut Notes| operation(subject, notes, (opcode, ty), also_empty);
            let case = Case::noting(Level::Operations, format!("{opcode}/{ty}"), work);
            cases.push(Case { operation: Some((opcode, ty)), ..case });
        }
    }
    cases
}

fn operation(subject: &Subject, notes: &mut Notes, (opcode, ty): (Opcode, ElementType), also_empty: bool) -> Check {
    let registry = coverage::with_handler(subject.registry());
    let client = Client::for_device(&registry, subject.name(), 0, CompilationCache::new(0).into())?;
    let Trial { module, check } = trial(opcode, ty).map_err(|status| {
        notes.status = Some(status);
        Stop::Failed("the compiler does not have the operation".to_string())
    })?;
    let Some(check) = check else {
        let status = coverage::refused(&client, opcode, &module);
        ensure!(status == Status::DeviceOnly, "it must be refused by name when compiling: {status:?}");
        notes.status = Some(status);
        return Ok(());
    };
    let (compiled, status) = compile(&client, &module).inspect_err(|error| {
        if let Error::Unimplemented(_) = error {
            notes.status = Some(Status::Refused(error.to_string()));
        }
    })?;
    notes.status = Some(status);
    let has_values = check == coverage::Check::Values;
    let trial = |module, compiled| Trying { module, compiled, custom_calls: registry.custom_calls(), ty };
    let ordinary = Some(Accuracy::Reduced).filter(|_| has_values);
    trial(&module, &compiled).compare(coverage::arguments(&module), ordinary)?;
    if let Some(accuracy) = extreme_accuracy(opcode, ty).filter(|_| has_values) {
        for seed in 0..EXTREMES {
            let compared = trial(&module, &compiled).compare(extremes(&module, seed), Some(accuracy));
            compared.map_err(|stop| stop.when("with extreme values"))?;
        }
    }
    // Empty arrays are tested only if the shape rules allow an outermost dimension of size zero.
    if also_empty
        && let Ok(Trial { module: empty, .. }) = trial_with(opcode, ty, without_elements)
        && empty.to_string() != module.to_string()
    {
        let (compiled, _) = compile(&client, &empty).map_err(|error| Stop::from(error).when("without elements"))?;
        let compared = trial(&empty, &compiled).compare(coverage::arguments(&empty), ordinary);
        compared.map_err(|stop| stop.when("without elements"))?;
    }
    Ok(())
}

/// Sets outermost dimensions to zero; in recipes most of them are 3.
fn without_elements(text: &str) -> String {
    text.replace("[3,", "[0,").replace("[3]", "[0]")
}

/// Compiles without host fallbacks if possible, otherwise with them.
fn compile(client: &Client, module: &VerifiedModule) -> xla::Result<(LoadedExecutable, Status)> {
    let with = |host_fallback| client.compile(module, &CompileOptions { host_fallback, ..CompileOptions::default() });
    match with(FallbackPolicy::Forbid) {
        Err(Error::Unimplemented(_)) => Ok((with(FallbackPolicy::Allow)?, Status::Fallback)),
        compiled => Ok((compiled?, Status::Native)),
    }
}

/// Compiled program of an operation with a type.
struct Trying<'a> {
    module: &'a VerifiedModule,
    compiled: &'a LoadedExecutable,
    custom_calls: &'a CustomCallRegistry,
    ty: ElementType,
}

impl Trying<'_> {
    /// Runs the program and the evaluator. Without an accuracy only the shapes are compared.
    fn compare(&self, arguments: Vec<Literal>, accuracy: Option<Accuracy>) -> Check {
        let mut evaluator = Evaluator::new(self.module).with_custom_calls(self.custom_calls);
        let expected = evaluator.call_entry(arguments.clone())?;
        let actual = self.compiled.run(arguments.clone())?;
        let Some(accuracy) = accuracy else {
            ensure!(actual.shape() == expected.shape(), "{} instead of {}", actual.shape(), expected.shape());
            return Ok(());
        };
        let leaves = expected.leaves();
        let is_float = |i: usize| leaves.get(i).is_some_and(|leaf| epsilon(leaf.array_shape().element_type()) > 0.0);
        // Counted or selected numbers are exact, whatever they were computed from.
        let within = |i: usize| tolerance(self.ty, if is_float(i) { accuracy } else { Accuracy::Values });
        judge::same(self.compiled, &arguments, &expected, &actual, &within)
    }
}

/// Required accuracy of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accuracy {
    /// Every bit, except for the payloads of NaNs.
    Bits,
    /// Every value; a zero may have either sign.
    Values,
    /// Functions: a few units in the last place.
    Rounded,
    /// Sums of a few small numbers in any order.
    Reduced,
}

fn tolerance(ty: ElementType, accuracy: Accuracy) -> Tolerance {
    let (rtol, atol) = match accuracy {
        Accuracy::Bits | Accuracy::Values => (0.0, 0.0),
        Accuracy::Rounded => (16.0 * epsilon(ty), 16.0 * least(ty.real_part())),
        Accuracy::Reduced => (16.0 * epsilon(ty), 16.0 * epsilon(ty)),
    };
    Tolerance { rtol, atol, signed_zero: accuracy == Accuracy::Bits }
}

/// Returns the accuracy of an operation on NaN, infinities, greatest and least values; `None` if the result is not
/// determined: sums in unspecified order, orders of unordered values, series whose terms overflow.
fn extreme_accuracy(opcode: Opcode, ty: ElementType) -> Option<Accuracy> {
    use Opcode::*;
    match opcode {
        Abs if ty.is_complex() => Some(Accuracy::Rounded),
        Abs | Negate | Not | Popcnt | CountLeadingZeros | IsFinite | Real | Imag | OptBarrier | Complex | Compare
        | Select | Copy | BitcastConvert | Broadcast | Reshape | Bitcast | Transpose | Slice | Pad | Concatenate
        | Reverse | DynamicSlice | DynamicUpdateSlice | Gather | AfterAll | AddDependency | GetDimensionSize
        | SetDimensionSize | Ceil | Floor | RoundNearestAfz | RoundNearestEven => Some(Accuracy::Bits),
        Multiply | Divide | Sign | Sqrt | Remainder | Map if ty.is_complex() => None,
        // GPUs divide within 2 ulp.
        Divide if ty == ElementType::F32 => Some(Accuracy::Rounded),
        Add | Subtract | Multiply | Divide | Sign | Sqrt | Remainder | Maximum | Minimum | Clamp | And | Or | Xor
        | Mulhi | ShiftLeft | ShiftRightArithmetic | ShiftRightLogical | Convert | ReducePrecision | Map | Call
        | Conditional | Fusion | Iota => Some(Accuracy::Values),
        Acos | Acosh | Asin | Asinh | Atan | Atanh | Atan2 | Cbrt | Cosh | Cosine | Erf | Exponential
        | ExponentialMinusOne | Log | LogPlusOne | Logistic | Power | Rsqrt | Sine | Sinh | Tan | Tanh => {
            (!ty.is_complex()).then_some(Accuracy::Rounded)
        }
        Sort | TopK => (!ty.is_float()).then_some(Accuracy::Bits),
        // The number of iterations depends on its first number.
        While => None,
        // Sums and products in unspecified order.
        Dot | RaggedDot | ScaledDot | Convolution | Reduce | ReduceWindow | Scan | Scatter | SelectAndScatter | Fft
        | Cholesky | TriangularSolve | BatchNormTraining | BatchNormInference | BatchNormGrad => None,
        // No result depends on the values, or the result is platform-specific.
        Rng | RngBitGenerator | RngGetAndUpdateState | StochasticConvert | PartitionId | ReplicaId => None,
        AllReduce | AllGather | AllToAll | CollectivePermute | CollectiveBroadcast | ReduceScatter => None,
        // Not tested separately.
        Parameter
        | Constant
        | Tuple
        | GetTupleElement
        | CustomCall
        | Domain
        | Shuffle
        | DynamicReshape
        | Infeed
        | Outfeed
        | Send
        | SendDone
        | Recv
        | RecvDone
        | AsyncStart
        | AsyncUpdate
        | AsyncDone
        | CopyStart
        | CopyDone
        | AllGatherStart
        | AllGatherDone
        | AllReduceStart
        | AllReduceDone
        | CollectivePermuteStart
        | CollectivePermuteDone
        | CollectiveReduce
        | RaggedAllToAll => None,
    }
}

/// Returns extreme values for each parameter.
fn extremes(module: &VerifiedModule, seed: u64) -> Vec<Literal> {
    let mut random = Random::new(1000 + seed);
    let entry = module.entry();
    let shapes = entry.parameters().iter().filter_map(|&id| entry[id].shape().as_array());
    shapes.map(|shape| literal(&mut random, &shape.clone().with_layout(None), Temper::Wild).0).collect()
}
