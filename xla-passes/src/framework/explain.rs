//! Fusion decisions and their reasons as data, for `xla opt --explain`.

use std::fmt;

use serde::{Serialize, Serializer};
use xla_hlo::{CompId, InstrId, Module, Opcode};

/// Decision on whether one value is computed in the kernel that reads it, with the reason. Reported to
/// [`PassObserver::fusion`](crate::PassObserver::fusion).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FusionDecision {
    /// Pass that decided: `fuse`, `fuse-rows` or `fuse-outputs`.
    pub pass: &'static str,
    /// Name of the computation.
    pub computation: String,
    /// Name, at the start of the pass, of the instruction that defines the value.
    pub producer: String,
    /// Name of the instruction that reads the value, or of the other kernel if two readers of the same array were
    /// considered.
    pub consumer: String,
    /// Name of the value that the consumer's kernel writes, if it differs from the consumer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The reason.
    pub reason: FusionReason,
}

/// Reason for computing a value in the kernel that reads it, or for not doing so.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FusionReason {
    /// Fused: a generator (constant, iota) that costs almost nothing, so that it is never read from memory.
    Generator,
    /// Fused: each element is used once, so that fusion duplicates no work.
    Once {
        /// Bytes that are neither written nor read back.
        saved_bytes: usize,
    },
    /// Fused: recomputing elements takes less time than writing and reading them.
    Cheaper(Repeat),
    /// Fused: both iterate over the same rows, and each reduction is used in its own row.
    SameRows,
    /// Fused: the consumer reads the value element by element in a loop over the same dimensions.
    SameLoop,
    /// Fused: the consumer is an elementwise epilogue of the contraction and uses each element in registers.
    Epilogue,
    /// Fused: attention scores are consumed in the kernel that computes them.
    Attention,
    /// Fused: two kernels over the same dimensions read the same array.
    SharedInput,
    /// Fused: two small kernels over the same dimensions, where one launch costs more than the work of one kernel.
    SmallKernels,
    /// Not fused: the instruction computes nothing (a parameter or an element of a tuple); its value is in memory.
    ComputesNothing(#[serde(serialize_with = "by_name")] Opcode),
    /// Not fused: the target only compiles this operation as a kernel of its own.
    NotFusible(#[serde(serialize_with = "by_name")] Opcode),
    /// Not fused: the reader is not a kernel (a dot, a call or a tuple) and reads the value from memory.
    ReaderIsNoKernel(#[serde(serialize_with = "by_name")] Opcode),
    /// Not fused: the reader requires this operand in memory (a reduction's initial value or an array updated in
    /// place).
    OperandFromMemory,
    /// Not fused: the kernel updates an array in place, and this instruction reads other elements of that array.
    UpdateInPlace,
    /// Not fused: the kernel would reduce the same elements more than once, or before its loop.
    ReducesTwice,
    /// Not fused: the instruction has several results, or its result is not an array.
    NoArray,
    /// Not fused: the shape has a dynamic size.
    DynamicSize,
    /// Not fused: control dependencies determine when the instruction runs.
    ControlDependency,
    /// Not fused: a constant with several elements is an array in memory.
    LargeConstant,
    /// Not fused: strided reads over such a large array are slow.
    TransposeTooLarge {
        /// Size of the array in bytes.
        bytes: usize,
        /// Maximum size in bytes that the target reads with strides.
        limit: usize,
    },
    /// Not fused: the kernel would evaluate too many instructions.
    TooManyInstructions {
        /// Number of instructions.
        count: usize,
        /// Limit of the target.
        limit: usize,
    },
    /// Not fused: the kernel's code would be too large to compile.
    TooMuchCode {
        /// Estimated number of machine instructions.
        count: u64,
        /// Limit of the target.
        limit: u64,
    },
    /// Not fused: the register pressure of the kernel would be too high.
    TooManyLiveValues {
        /// Estimated number of live 32-bit registers.
        registers: usize,
        /// Limit of the target.
        limit: usize,
    },
    /// Not fused: the kernel would read and write too many arrays.
    TooManyOperands {
        /// Number of arrays.
        count: usize,
        /// Limit of the target.
        limit: usize,
    },
    /// Not fused: the value is a result of the program and must be in memory.
    IsResult,
    /// Not fused: another reader requires the value in memory.
    InMemoryFor {
        /// The other reader.
        reader: String,
    },
    /// Not fused: recomputing the value takes too much work.
    Expensive {
        /// Vector instructions per vector of elements, where an addition takes 1.
        work: f64,
        /// Number of evaluations per element.
        times: f64,
    },
    /// Not fused: recomputing elements takes longer than writing and reading them.
    MoreExpensive(Repeat),
    /// Not fused: a reshape of an array in memory only renames the same bytes.
    FreeReshape,
    /// Not fused: the two do not iterate over the same rows, or a reduction is used outside of its row.
    NotRowByRow,
    /// Not fused: the loops have other dimensions.
    OtherLoop {
        /// Loop dimensions of the producer.
        producer: Vec<usize>,
        /// Loop dimensions of the consumer.
        consumer: Vec<usize>,
    },
    /// Not fused: the consumer reads other elements than that of its current iteration.
    OtherElements,
    /// Not fused: fusion would create a dependency cycle through an instruction in between.
    Cycle,
}

/// Cost of recomputing elements compared with storing them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Repeat {
    /// Number of evaluations per element.
    pub times: f64,
    /// Seconds of repeated computation.
    pub again_seconds: f64,
    /// Seconds for writing the value and reading it back.
    pub stored_seconds: f64,
}

fn by_name<S: Serializer>(opcode: &Opcode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(opcode.name())
}

impl FusionDecision {
    /// Creates a decision on the instructions with these ids.
    pub(crate) fn new(
        pass: &'static str,
        module: &Module,
        computation: CompId,
        producer: InstrId,
        consumer: InstrId,
        reason: FusionReason,
    ) -> FusionDecision {
        let graph = &module[computation];
        FusionDecision {
            pass,
            computation: graph.name().to_string(),
            producer: graph[producer].name().to_string(),
            consumer: graph[consumer].name().to_string(),
            kernel: None,
            reason,
        }
    }

    /// Whether the decision concerns an instruction with that name; a leading `%` is ignored.
    pub fn concerns(&self, name: &str) -> bool {
        let name = name.trim_start_matches('%');
        [Some(&self.producer), Some(&self.consumer), self.kernel.as_ref()].into_iter().flatten().any(|n| n == name)
    }
}

impl FusionReason {
    /// Whether the value is computed in the kernel that reads it.
    pub fn is_fused(&self) -> bool {
        use FusionReason::*;
        matches!(
            self,
            Generator
                | Once { .. }
                | Cheaper(_)
                | SameRows
                | SameLoop
                | Epilogue
                | Attention
                | SharedInput
                | SmallKernels
        )
    }
}

/// Formats as `fuse: exp -> sum: fused: ...`.
impl fmt::Display for FusionDecision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FusionDecision { pass, producer, consumer, kernel, reason, .. } = self;
        let arrow =
            if matches!(reason, FusionReason::SharedInput | FusionReason::SmallKernels) { "with" } else { "->" };
        let verdict = if reason.is_fused() { "fused" } else { "not fused" };
        write!(f, "{pass}: %{producer} {arrow} %{consumer}")?;
        if let Some(kernel) = kernel {
            write!(f, " (kernel of %{kernel})")?;
        }
        write!(f, ": {verdict}: {reason}")
    }
}

impl fmt::Display for FusionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use FusionReason::*;
        match self {
            Generator => f.write_str("cheap to generate, never read from memory"),
            Once { saved_bytes } => write!(f, "each element once; {saved_bytes} bytes not written and not read"),
            Cheaper(repeat) => write!(f, "cheaper to recompute than to load: {repeat}"),
            SameRows => f.write_str("both iterate over the same rows"),
            SameLoop => f.write_str("read element by element in the same loop"),
            Attention => {
                f.write_str("scores stay in one kernel, which computes both dots and the softmax between them")
            }
            Epilogue => f.write_str("an elementwise epilogue, applied to the result of the contraction in place"),
            SmallKernels => f.write_str("the same loop, and both small"),
            SharedInput => f.write_str("the same loop, and an array that both read"),
            ComputesNothing(opcode) => write!(f, "{} computes nothing: the value is in memory", opcode.name()),
            NotFusible(opcode) => write!(f, "the target does not fuse {} into its readers", opcode.name()),
            ReaderIsNoKernel(opcode) => write!(f, "{} is not a kernel and reads from memory", opcode.name()),
            OperandFromMemory => f.write_str("the reader takes this operand from memory"),
            UpdateInPlace => f.write_str("reads the array that the kernel updates in place, but at other indices"),
            ReducesTwice => f.write_str("the kernel would reduce the same elements more than once, or before its loop"),
            NoArray => f.write_str("its result is not a single array"),
            DynamicSize => f.write_str("a size is dynamic"),
            ControlDependency => f.write_str("control dependencies determine its order"),
            LargeConstant => f.write_str("a constant of several elements is an array in memory"),
            TransposeTooLarge { bytes, limit } => {
                write!(f, "transposes {bytes} bytes; at most {limit} are read across memory")
            }
            TooManyInstructions { count, limit } => {
                write!(f, "the kernel would compute {count} instructions; at most {limit}")
            }
            TooMuchCode { count, limit } => {
                write!(f, "the kernel would be about {count} machine instructions; at most {limit}")
            }
            TooManyLiveValues { registers, limit } => {
                write!(f, "the kernel would keep values in {registers} registers at a time; at most {limit}")
            }
            TooManyOperands { count, limit } => {
                write!(f, "the kernel would read and write {count} arrays; at most {limit}")
            }
            IsResult => f.write_str("a result of the program, which is in memory anyway"),
            InMemoryFor { reader } => write!(f, "in memory anyway, for %{reader}"),
            Expensive { work, times } => {
                write!(f, "too expensive to compute {} times: work {work} a vector", rounded(*times))
            }
            MoreExpensive(repeat) => write!(f, "more expensive to recompute than to load: {repeat}"),
            FreeReshape => f.write_str("a reshape of an array in memory is the same bytes"),
            NotRowByRow => f.write_str("not the same rows, or a reduction is used outside of its row"),
            OtherLoop { producer, consumer } => write!(f, "loops over {producer:?} and {consumer:?}"),
            OtherElements => f.write_str("reads elements other than the current one of the loop"),
            Cycle => f.write_str("fusion would create a cycle through an instruction between them"),
        }
    }
}

impl fmt::Display for Repeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micro = |seconds: f64| rounded(seconds * 1e6);
        let (again, stored) = (micro(self.again_seconds), micro(self.stored_seconds));
        write!(f, "each element {} times, {again} us against {stored} us", rounded(self.times))
    }
}

/// Formats with three decimals at most, which is precise enough for an estimate.
fn rounded(value: f64) -> String {
    let text = if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.3}") };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}
