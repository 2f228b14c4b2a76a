//! Hardware abilities of a target, determined by compiling probes with LLVM.

use inkwell::memory_buffer::MemoryBuffer;
use xla_hlo::{Error, Result};

use super::dots::{ByteDots, DotAbilities};
use super::machine::Generator;
use super::triple::family;
use crate::diagnostics::DiagnosticContext;

/// Hardware abilities of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Bits of the widest useful vector register; 0 if code should stay scalar (GPUs, processors without vectors).
    pub vector_bits: u32,
    /// Number of registers of that width; of scalar registers if there are no vectors.
    pub registers: u32,
    /// Abilities in f32 arithmetic.
    pub f32: FloatAbilities,
    /// Abilities in f64 arithmetic.
    pub f64: FloatAbilities,
    /// Whether conversions between f16 and f32 are inline code instead of library calls.
    pub half: bool,
    /// Whether masked loads and stores of vectors are instructions instead of a branch per lane.
    pub masked_memory: bool,
    /// Whether the high half of a 64-bit integer product is inline code instead of a library call.
    pub high_product: bool,
    /// Whether the target has AVX-512F.
    pub avx512: bool,
    /// Dot-product instructions.
    pub dots: DotAbilities,
}

/// Abilities in one floating-point type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FloatAbilities {
    /// Whether fused multiply-add is one instruction.
    pub fma: bool,
    /// Whether rounding to integral values is inline code instead of a library call.
    pub rounding: bool,
}

/// Abilities of GPUs: all in hardware, in scalar registers.
const SCALAR: Abilities = Abilities {
    vector_bits: 0,
    registers: 32,
    f32: FloatAbilities { fma: true, rounding: true },
    f64: FloatAbilities { fma: true, rounding: true },
    half: true,
    masked_memory: true,
    high_product: true,
    avx512: false,
    dots: DotAbilities::NONE,
};

/// Compiles small functions for the target and examines the assembly. This is the most reliable test whether an
/// operation is a single instruction, for any combination of CPU name and features. Dot-product instructions of x86 are
/// not probed, since LLVM cannot select their intrinsics for other targets.
pub(super) fn probe(triple: &str, generator: &Generator) -> Result<Abilities> {
    if triple.starts_with("nvptx") || triple.starts_with("amdgcn") {
        return Ok(SCALAR);
    }
    let words = words(PROBE, triple, generator)?;
    let found = Assembly { words: words.iter().map(String::as_str).collect() }
        .abilities(family(triple.split('-').next().unwrap_or_default()).unwrap_or_default());
    Ok(found)
}

/// Determines the dot-product instructions of a little-endian AArch64 processor.
pub(super) fn probe_byte_dots(triple: &str, generator: &Generator) -> Result<DotAbilities> {
    let extensions = [("sext", "sext"), ("zext", "zext"), ("zext", "sext")];
    let functions = extensions.map(|(x, y)| BYTE_DOT.replace("@X@", x).replace("@Y@", y));
    let words = words(&(BYTE_DOTS.to_string() + &functions.concat()), triple, generator)?;
    let has = |name: &str| words.iter().any(|word| word == name);
    let bytes = ByteDots { mixed: has("usdot"), equal: has("sdot") && has("udot") };
    Ok(DotAbilities { bytes, ..DotAbilities::NONE })
}

/// Compiles the functions of a probe. Returns the words of the assembly: mnemonics, registers, names.
fn words(probe: &str, triple: &str, generator: &Generator) -> Result<Vec<String>> {
    let listening = DiagnosticContext::new();
    let source = probe.replace("@TRIPLE@", triple);
    let buffer = MemoryBuffer::create_from_memory_range_copy(source.as_bytes(), "probe");
    let module = listening
        .context()
        .create_module_from_ir(buffer)
        .map_err(|reason| Error::internal(format!("the target probe does not parse: {reason}")))?;
    let text = generator.assembly(&module)?;
    if let Some(fault) = listening.take_reports().fault {
        return Err(Error::invalid_argument(format!("LLVM cannot generate code for {triple}: {fault}")));
    }
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && !"_.$%".contains(c));
    Ok(words.map(str::to_string).collect())
}

/// Assembly text as words: mnemonics, registers, names.
struct Assembly<'a> {
    words: Vec<&'a str>,
}

impl Assembly<'_> {
    fn abilities(&self, family: &str) -> Abilities {
        Abilities {
            vector_bits: self.vector_bits(family),
            registers: self.registers(family),
            f32: FloatAbilities { fma: !self.calls(&["fmaf"]), rounding: !self.calls(&["floorf"]) },
            f64: FloatAbilities { fma: !self.calls(&["fma"]), rounding: !self.calls(&["floor"]) },
            half: !self.calls(HALF_CALLS),
            masked_memory: !self.branches(),
            high_product: !self.calls(&["__multi3"]),
            avx512: self.has(|word| word.starts_with("%zmm")),
            dots: DotAbilities::NONE,
        }
    }

    fn has(&self, is: impl Fn(&str) -> bool) -> bool {
        self.words.iter().any(|word| is(word))
    }

    /// Whether a function with one of these names is called; some object formats add an underscore.
    fn calls(&self, names: &[&str]) -> bool {
        self.has(|word| names.iter().any(|name| word == *name || word.strip_prefix('_') == Some(name)))
    }

    /// Whether functions contain labels (`.LBB0_1`) or WebAssembly branches.
    fn branches(&self) -> bool {
        let label = |word: &str| {
            word.split_once("BB").is_some_and(|(_, number)| number.starts_with(|c: char| c.is_ascii_digit()))
        };
        self.has(|word| label(word) || word == "br_if")
    }

    /// Whether a register with this prefix and a number occurs.
    fn register(&self, prefix: &str) -> bool {
        let is = |word: &str| {
            word.strip_prefix(prefix).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        };
        self.has(is)
    }

    fn registers(&self, family: &str) -> u32 {
        match family {
            "x86" if !self.register("%zmm") => 16,
            "x86" | "aarch64" | "riscv" | "powerpc" | "mips" | "loongarch" => 32,
            // Scalar registers, some of which hold addresses; WebAssembly's map to the registers of any processor.
            _ => 16,
        }
    }

    fn vector_bits(&self, family: &str) -> u32 {
        let narrow = |there: bool| if there { 128 } else { 0 };
        match family {
            "x86" if self.register("%zmm") => 512,
            "x86" if self.register("%ymm") => 256,
            "x86" => narrow(self.register("%xmm")),
            "aarch64" => narrow(self.has(|word| word.ends_with(".4s") || word.ends_with(".s"))),
            // 32-bit ARM vectors flush subnormal numbers to zero.
            "arm" => 0,
            // Register group (LMUL) that 16 lanes of f32 occupy.
            "riscv" => [("m4", 128), ("m2", 256), ("m1", 512), ("mf2", 1024)]
                .into_iter()
                .find_map(|(registers, bits)| self.has(|word| word == registers).then_some(bits))
                .unwrap_or(0),
            // LLVM 22 miscompiles shuffles here: bytes next to zeros become zeros when converted to floats.
            "systemz" => 0,
            "powerpc" => narrow(self.has(|word| word.starts_with("xvmadd") || word == "vmaddfp")),
            "webassembly" => narrow(self.has(|word| word.starts_with("f32x4."))),
            "mips" => narrow(self.register("$w")),
            "loongarch" if self.register("$xr") => 256,
            "loongarch" => narrow(self.register("$vr")),
            _ => 0,
        }
    }
}

/// Library calls for conversions between f16 and f32.
const HALF_CALLS: &[&str] =
    &["__extendhfsf2", "__truncsfhf2", "__gnu_h2f_ieee", "__gnu_f2h_ieee", "__aeabi_h2f", "__aeabi_f2h"];

const PROBE: &str = r#"
target triple = "@TRIPLE@"
declare <16 x float> @llvm.fma.v16f32(<16 x float>, <16 x float>, <16 x float>)
declare <16 x float> @llvm.floor.v16f32(<16 x float>)
declare <8 x double> @llvm.fma.v8f64(<8 x double>, <8 x double>, <8 x double>)
declare <8 x double> @llvm.floor.v8f64(<8 x double>)
declare <16 x float> @llvm.masked.load.v16f32.p0(ptr, i32, <16 x i1>, <16 x float>)
define void @single(ptr %p, ptr %q) #0 {
  %a = load <16 x float>, ptr %p
  %b = load <16 x float>, ptr %q
  %c = call <16 x float> @llvm.fma.v16f32(<16 x float> %a, <16 x float> %b, <16 x float> %b)
  %d = call <16 x float> @llvm.floor.v16f32(<16 x float> %c)
  store <16 x float> %d, ptr %p
  ret void
}
define void @twice(ptr %p, ptr %q) #0 {
  %a = load <8 x double>, ptr %p
  %b = load <8 x double>, ptr %q
  %c = call <8 x double> @llvm.fma.v8f64(<8 x double> %a, <8 x double> %b, <8 x double> %b)
  %d = call <8 x double> @llvm.floor.v8f64(<8 x double> %c)
  store <8 x double> %d, ptr %p
  ret void
}
define void @half(ptr %p, ptr %q) #0 {
  %a = load <4 x half>, ptr %p
  %b = fpext <4 x half> %a to <4 x float>
  store <4 x float> %b, ptr %q
  %c = load <4 x float>, ptr %p
  %d = fptrunc <4 x float> %c to <4 x half>
  store <4 x half> %d, ptr %q
  ret void
}
define void @masked(ptr %p, ptr %q) #0 {
  %n = load <16 x i32>, ptr %q
  %m = icmp ult <16 x i32> <i32 0, i32 1, i32 2, i32 3, i32 4, i32 5, i32 6, i32 7, i32 8, i32 9, i32 10, i32 11, i32 12, i32 13, i32 14, i32 15>, %n
  %a = call <16 x float> @llvm.masked.load.v16f32.p0(ptr %p, i32 4, <16 x i1> %m, <16 x float> zeroinitializer)
  store <16 x float> %a, ptr %q
  ret void
}
define i64 @product(i64 %a, i64 %b) #0 {
  %x = zext i64 %a to i128
  %y = zext i64 %b to i128
  %p = mul i128 %x, %y
  %h = lshr i128 %p, 64
  %t = trunc i128 %h to i64
  ret i64 %t
}
attributes #0 = { "prefer-vector-width"="512" }
"#;

/// Declaration in front of the functions of [`BYTE_DOT`].
const BYTE_DOTS: &str = r#"
target triple = "@TRIPLE@"
declare <4 x i32> @llvm.vector.partial.reduce.add.v4i32.v16i32(<4 x i32>, <16 x i32>)
"#;

/// Products of 8-bit integers that are extended by `@X@` and `@Y@`, added in groups of four.
const BYTE_DOT: &str = r#"
define <4 x i32> @dot_@X@_@Y@(<4 x i32> %z, <16 x i8> %x, <16 x i8> %y) {
  %a = @X@ <16 x i8> %x to <16 x i32>
  %b = @Y@ <16 x i8> %y to <16 x i32>
  %m = mul <16 x i32> %a, %b
  %r = call <4 x i32> @llvm.vector.partial.reduce.add.v4i32.v16i32(<4 x i32> %z, <16 x i32> %m)
  ret <4 x i32> %r
}
"#;
