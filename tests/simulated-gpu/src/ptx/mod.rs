//! Syntax tree of PTX text: names are not resolved and instructions are not decoded.
//!
//! The accepted language is the subset of NVIDIA's "Parallel Thread Execution ISA", versions 7 and 8, that compilers
//! emit: declarations before use, one instruction a statement.

mod lexer;
mod parser;

pub use parser::parse;

/// Syntax error and its line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct SyntaxError {
    /// Line of the text, counted from 1.
    pub line: u32,
    /// Message.
    pub message: String,
}

impl SyntaxError {
    pub(crate) fn new(line: u32, message: impl Into<String>) -> SyntaxError {
        SyntaxError { line, message: message.into() }
    }
}

/// Module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Module<'a> {
    /// ISA version: `(7, 8)` for `.version 7.8`.
    pub version: (u32, u32),
    /// Target architecture, such as `sm_90`.
    pub target: &'a str,
    /// Module-scope variables in the `.global`, `.const` and `.shared` spaces.
    pub variables: Vec<Variable<'a>>,
    /// Kernels and functions, including declarations.
    pub functions: Vec<Function<'a>>,
}

/// State space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Registers.
    Register,
    /// Parameters of kernels and calls.
    Param,
    /// Memory that is private to a thread.
    Local,
    /// Memory that the threads of a block share.
    Shared,
    /// Memory of the device.
    Global,
    /// Device memory that kernels can only read.
    Const,
    /// Generic address: local, shared or global memory, selected by the address.
    Generic,
}

/// Variable, parameter, or set of registers.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable<'a> {
    /// State space.
    pub space: Space,
    /// Name; for registers such as `%r<4>` the prefix before the number.
    pub name: &'a str,
    /// Element type, without its dot.
    pub element: &'a str,
    /// Alignment in bytes, if the text specifies one.
    pub align: Option<u64>,
    /// Number of elements, or of registers for `%r<4>`; `None` for `extern` arrays without a size.
    pub count: Option<u64>,
    /// Whether this declares numbered registers, counted from 0.
    pub is_numbered: bool,
    /// Whether this is only a declaration.
    pub is_extern: bool,
    /// Initial elements; the remaining ones are zero.
    pub initial: Vec<Operand<'a>>,
    /// Line in the text.
    pub line: u32,
}

/// Kernel or function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Function<'a> {
    /// Name.
    pub name: &'a str,
    /// Whether this is a kernel (`.entry`).
    pub is_entry: bool,
    /// Results, in the order of the text.
    pub results: Vec<Variable<'a>>,
    /// Parameters, in the order of the text.
    pub parameters: Vec<Variable<'a>>,
    /// Maximum number of threads of a block, from `.maxntid` or `.reqntid`.
    pub most_threads: Option<u64>,
    /// Block dimensions, from `.reqntid`.
    pub exact_threads: Option<[u64; 3]>,
    /// Body; `None` for a declaration.
    pub body: Option<Vec<Statement<'a>>>,
    /// Line in the text.
    pub line: u32,
}

/// Statement of a body.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement<'a> {
    /// Start of a scope.
    Open,
    /// End of a scope.
    Close,
    /// Declaration of registers or a variable.
    Declare(Variable<'a>),
    /// Branch target.
    Label(&'a str),
    /// Instruction.
    Instruction(Instruction<'a>),
}

/// Instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction<'a> {
    /// Line in the text.
    pub line: u32,
    /// Guard predicate, and whether it is negated.
    pub guard: Option<(&'a str, bool)>,
    /// Opcode with its modifiers, such as `ld.global.b32`.
    pub opcode: &'a str,
    /// Operands in the order of the text.
    pub operands: Vec<Operand<'a>>,
}

/// Operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand<'a> {
    /// Name of a register, variable, label or function; `_` for a result that is discarded.
    Name(&'a str),
    /// Negated predicate: `!%p1`.
    Not(&'a str),
    /// Integer, as 64 bits in two's complement.
    Integer(u64),
    /// Bits of a single-precision literal such as `0f3F800000`.
    Single(u32),
    /// Bits of a double-precision literal such as `0d3FF0000000000000`, or of a decimal number.
    Double(u64),
    /// Vector: `{%r1, %r2}`.
    Vector(Vec<Operand<'a>>),
    /// Address: `[%rd1+16]`.
    Address(Box<Operand<'a>>, i64),
    /// Tensor map and coordinates in the tensor: `[%rd1, {%r1, %r2}]`.
    Tensor(Box<Operand<'a>>, Vec<Operand<'a>>),
    /// Pair of results: `%r1|%p1`.
    Pair(&'a str, &'a str),
    /// Arguments of a call: `(a, b)`.
    List(Vec<Operand<'a>>),
}
