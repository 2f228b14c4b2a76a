//! Syntax tree of PTX text: names are unresolved, instructions uninterpreted.
//!
//! The form is that of NVIDIA's "Parallel Thread Execution ISA", versions 7 and 8, as compilers print it: declarations
//! before use, one instruction a statement.

mod lexer;
mod parser;

pub use parser::parse;

/// A syntax error and its line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct SyntaxError {
    /// The line of the text, from 1.
    pub line: u32,
    /// Fault.
    pub message: String,
}

impl SyntaxError {
    pub(crate) fn new(line: u32, message: impl Into<String>) -> SyntaxError {
        SyntaxError { line, message: message.into() }
    }
}

/// A module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Module<'a> {
    /// `(7, 8)` for `.version 7.8`.
    pub version: (u32, u32),
    /// `sm_90`.
    pub target: &'a str,
    /// Variables of the module: `.global`, `.const` and `.shared` ones.
    pub variables: Vec<Variable<'a>>,
    /// Kernels and functions, declarations as well.
    pub functions: Vec<Function<'a>>,
}

/// A state space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Registers.
    Register,
    /// Parameters of kernels and of calls.
    Param,
    /// Memory of a thread.
    Local,
    /// Memory of a block.
    Shared,
    /// Memory of the device.
    Global,
    /// Memory of the device that kernels only read.
    Const,
    /// Any of local, shared and global memory, told apart by the address.
    Generic,
}

/// A variable, a parameter, or registers.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable<'a> {
    /// State space.
    pub space: Space,
    /// Its name; for registers such as `%r<4>` what comes before the number.
    pub name: &'a str,
    /// The element type, without its dot.
    pub element: &'a str,
    /// Alignment in bytes, if it is told.
    pub align: Option<u64>,
    /// Elements, or registers of `%r<4>`; `None` for `extern` arrays without size.
    pub count: Option<u64>,
    /// Whether registers are numbered from 0.
    pub is_numbered: bool,
    /// Whether it is declared only.
    pub is_extern: bool,
    /// Elements that it starts with; the others are zero.
    pub initial: Vec<Operand<'a>>,
    /// Line in the text.
    pub line: u32,
}

/// A kernel or a function.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Function<'a> {
    /// Its name.
    pub name: &'a str,
    /// Whether it is a kernel.
    pub is_entry: bool,
    /// Results, in the order of the text.
    pub results: Vec<Variable<'a>>,
    /// Parameters, in the order of the text.
    pub parameters: Vec<Variable<'a>>,
    /// The most threads of a block, by `.maxntid` or `.reqntid`.
    pub most_threads: Option<u64>,
    /// The threads of a block by dimension, by `.reqntid`.
    pub exact_threads: Option<[u64; 3]>,
    /// Its body; `None` for a declaration.
    pub body: Option<Vec<Statement<'a>>>,
    /// Line in the text.
    pub line: u32,
}

/// A statement of a body.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement<'a> {
    /// The beginning of a scope.
    Open,
    /// Its end.
    Close,
    /// Registers or a variable.
    Declare(Variable<'a>),
    /// A place to jump to.
    Label(&'a str),
    /// An instruction.
    Instruction(Instruction<'a>),
}

/// An instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction<'a> {
    /// Line in the text.
    pub line: u32,
    /// The predicate's name, and whether it is negated.
    pub guard: Option<(&'a str, bool)>,
    /// `ld.global.b32`.
    pub opcode: &'a str,
    /// Operands in the order of the text.
    pub operands: Vec<Operand<'a>>,
}

/// An operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand<'a> {
    /// A register, a variable, a label, a function; `_` for a result that nobody wants.
    Name(&'a str),
    /// `!%p1`.
    Not(&'a str),
    /// An integer, as 64 bits of two's complement.
    Integer(u64),
    /// The bits of `0f3F800000`.
    Single(u32),
    /// The bits of `0d3FF0000000000000` and of decimal numbers.
    Double(u64),
    /// `{%r1, %r2}`.
    Vector(Vec<Operand<'a>>),
    /// `[%rd1+16]`.
    Address(Box<Operand<'a>>, i64),
    /// `[%rd1, {%r1, %r2}]`: a tensor map, and where in the tensor.
    Tensor(Box<Operand<'a>>, Vec<Operand<'a>>),
    /// `%r1|%p1`.
    Pair(&'a str, &'a str),
    /// `(a, b)` of a call.
    List(Vec<Operand<'a>>),
}
