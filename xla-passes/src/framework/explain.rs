//! Fusion decisions and their reasons as data, for `xla opt --explain`.

use std::fmt;

use serde::{Serialize, Serializer};
use xla_hlo::{CompId, InstrId, Module, Opcode};

/// Whether one value is computed in the kernel that reads it, and why. Told to
/// [`PassObserver::fusion`](crate::PassObserver::fusion).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FusionDecision {
    /// The pass that decided: `fuse`, `fuse-rows` or `fuse-outputs`.
    pub pass: &'static str,
    /// Name of the computation.
    pub computation: String,
    /// Name of the instruction whose value it is, as it was when the pass began.
    pub producer: String,
    /// Name of the instruction that reads it; of the other kernel, where two that read the same array were looked at.
    pub consumer: String,
    /// Name of the value that the consumer's kernel writes, if that is not the consumer itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The reason.
    pub reason: FusionReason,
}

/// Reason that a value is, or is not, computed in the kernel that reads it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FusionReason {
    /// Fused: made from next to nothing (constants, iotas), so that it is never read from memory.
    Generator,
    /// Fused: each element is needed once, so that nothing is computed twice.
    Once {
        /// Bytes that are neither written nor read back.
        saved_bytes: usize,
    },
    /// Fused: computing elements again takes less time than writing and reading them.
    Cheaper(Repeat),
    /// Fused: both go over the same rows, and each reduction is used in its own row.
    SameRows,
    /// Fused: the consumer reads it element by element in a loop over the same dimensions.
    SameLoop,
    /// Fused: the consumer goes on with each element of the contraction's result where it lies.
    Epilogue,
    /// Fused: scores of an attention stay in the kernel that makes them.
    Attention,
    /// Fused: two kernels over the same dimensions read the same array.
    SharedInput,
    /// Fused: two small kernels over the same dimensions, of which the launch of one costs more than its work.
    SmallKernels,
    /// Not fused: this computes nothing (a parameter, an element of a tuple); its value is in memory.
    ComputesNothing(#[serde(serialize_with = "by_name")] Opcode),
    /// Not fused: the target computes this operation alone.
    NotFusible(#[serde(serialize_with = "by_name")] Opcode),
    /// Not fused: its reader is not a kernel (a dot, a call, a tuple) and takes it from memory.
    ReaderIsNoKernel(#[serde(serialize_with = "by_name")] Opcode),
    /// Not fused: the reader takes this operand from memory (a reduction's initial value, an array updated in place).
    OperandFromMemory,
    /// Not fused: the kernel updates an array in place, and this reads other elements of that array.
    UpdateInPlace,
    /// Not fused: the kernel would reduce the same elements more than once, or in front of its loop.
    ReducesTwice,
    /// Not fused: several results, or none that is an array.
    NoArray,
    /// Not fused: a dynamic size.
    DynamicSize,
    /// Not fused: control dependencies say when it runs.
    ControlDependency,
    /// Not fused: a constant of several elements is an array in memory.
    LargeConstant,
    /// Not fused: reading across memory so far apart is slow.
    TransposeTooLarge {
        /// Bytes of the array.
        bytes: usize,
        /// Bytes that the target reads so.
        limit: usize,
    },
    /// Not fused: the kernel would compute too many instructions.
    TooManyInstructions {
        /// As many.
        count: usize,
        /// Limit of the target.
        limit: usize,
    },
    /// Not fused: the kernel would be too much code to compile.
    TooMuchCode {
        /// Machine instructions, about.
        count: u64,
        /// Limit of the target.
        limit: u64,
    },
    /// Not fused: the kernel would keep too many values at a time.
    TooManyLiveValues {
        /// Registers of 32 bits, about.
        registers: usize,
        /// Limit of the target.
        limit: usize,
    },
    /// Not fused: the kernel would read and write too many arrays.
    TooManyOperands {
        /// As many.
        count: usize,
        /// Limit of the target.
        limit: usize,
    },
    /// Not fused: it is in memory anyway, since it is a result of the program.
    IsResult,
    /// Not fused: it is in memory anyway, since another reader takes it from there.
    InMemoryFor {
        /// The other reader.
        reader: String,
    },
    /// Not fused: too much work to be done again.
    Expensive {
        /// Vector instructions for a vector of elements, where an addition takes one.
        work: f64,
        /// Number of evaluations of an element.
        times: f64,
    },
    /// Not fused: computing elements again takes longer than writing and reading them.
    MoreExpensive(Repeat),
    /// Not fused: a reshape of an array in memory is the same bytes.
    FreeReshape,
    /// Not fused: the two do not go over the same rows, or a reduction is used outside of its row.
    NotRowByRow,
    /// Not fused: the loops run over other dimensions.
    OtherLoop {
        /// The producer's.
        producer: Vec<usize>,
        /// The consumer's.
        consumer: Vec<usize>,
    },
    /// Not fused: the consumer reads other elements than the one its loop stands at.
    OtherElements,
    /// Not fused: something in between needs the one and makes the other.
    Cycle,
}

/// Cost of computing elements again, against storing them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Repeat {
    /// Times that an element is computed.
    pub times: f64,
    /// Seconds of repeated work.
    pub again_seconds: f64,
    /// Seconds to write it and to read it back.
    pub stored_seconds: f64,
}

fn by_name<S: Serializer>(opcode: &Opcode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(opcode.name())
}

impl FusionDecision {
    /// A decision on the instructions of these ids.
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

    /// Whether the decision is about an instruction of that name, a `%` in front aside.
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

/// `fuse: exp -> sum: fused: ...`.
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
            Generator => f.write_str("made from next to nothing, never read from memory"),
            Once { saved_bytes } => write!(f, "each element once; {saved_bytes} bytes not written and not read"),
            Cheaper(repeat) => write!(f, "cheaper again than from memory: {repeat}"),
            SameRows => f.write_str("both go over the same rows"),
            SameLoop => f.write_str("read element by element in the same loop"),
            Attention => {
                f.write_str("scores stay in the kernel that makes them, goes through their softmax and multiplies")
            }
            Epilogue => f.write_str("goes on with each element where the contraction leaves it"),
            SmallKernels => f.write_str("the same loop, and both small"),
            SharedInput => f.write_str("the same loop, and an array that both read"),
            ComputesNothing(opcode) => write!(f, "{} computes nothing: the value is in memory", opcode.name()),
            NotFusible(opcode) => write!(f, "the target computes {} alone", opcode.name()),
            ReaderIsNoKernel(opcode) => write!(f, "{} is not a kernel and reads from memory", opcode.name()),
            OperandFromMemory => f.write_str("the reader takes this operand from memory"),
            UpdateInPlace => f.write_str("reads the array that the kernel updates in place at other indices"),
            ReducesTwice => f.write_str("the kernel would reduce elsewhere than where its loop stands, more than once"),
            NoArray => f.write_str("its result is not a single array"),
            DynamicSize => f.write_str("a size is dynamic"),
            ControlDependency => f.write_str("control dependencies say when it runs"),
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
            IsResult => f.write_str("a result of the program, in memory anyway"),
            InMemoryFor { reader } => write!(f, "in memory anyway, for %{reader}"),
            Expensive { work, times } => {
                write!(f, "too expensive to compute {} times: work {work} a vector", rounded(*times))
            }
            MoreExpensive(repeat) => write!(f, "more expensive again than from memory: {repeat}"),
            FreeReshape => f.write_str("a reshape of an array in memory is the same bytes"),
            NotRowByRow => f.write_str("not the same rows, or a reduction is used outside of its row"),
            OtherLoop { producer, consumer } => write!(f, "loops over {producer:?} and {consumer:?}"),
            OtherElements => f.write_str("reads other elements than its loop stands at"),
            Cycle => f.write_str("something in between needs the one and makes the other"),
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

/// Three digits are enough for an estimate.
fn rounded(value: f64) -> String {
    let text = if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.3}") };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}
