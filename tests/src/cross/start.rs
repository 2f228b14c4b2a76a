//! Start code around an object, in LLVM IR: arguments as data, a call of the object, and output of its results.

use std::fmt::Write;

use serde::{Deserialize, Deserializer};
use xla_hlo::eval::RandomState;

use super::custom_call;
use super::targets::{Builtins, CallBy, CrossTarget};

/// Description of an object, from `NAME.json`, as far as a call needs it.
#[derive(Debug, Deserialize)]
pub(super) struct Description {
    pub target: Target,
    #[serde(rename = "programs", deserialize_with = "only")]
    pub program: Program,
    /// Functions that the object calls.
    pub externals: Vec<String>,
}

/// Program of an object.
#[derive(Debug, Deserialize)]
pub(super) struct Program {
    pub name: String,
    abi: u32,
    arena: Arena,
    pub pointers: Vec<Pointer>,
    words: Vec<Word>,
}

/// Deserializes a list of one program.
fn only<'de, D: Deserializer<'de>>(reader: D) -> Result<Program, D::Error> {
    <[Program; 1]>::deserialize(reader).map(|[program]| program)
}

/// Memory of the target.
#[derive(Debug, Deserialize)]
pub(super) struct Target {
    pointer_bytes: u32,
    pub big_endian: bool,
}

#[derive(Debug, Deserialize)]
struct Arena {
    size: u64,
}

/// Word argument of the call, after its pointers.
#[derive(Debug, Deserialize)]
struct Word {
    name: String,
}

/// Pointer argument of the call.
#[derive(Debug, Deserialize)]
pub(super) struct Pointer {
    pub bytes: usize,
    pub argument: Option<usize>,
    pub result: Option<usize>,
    /// Whether the pointer is to the state of random numbers.
    random_state: bool,
}

impl Program {
    /// Returns the pointers of results, sorted by their numbers.
    pub fn results(&self) -> Vec<(usize, &Pointer)> {
        let mut results: Vec<(usize, usize, &Pointer)> = Vec::new();
        for (place, pointer) in self.pointers.iter().enumerate() {
            results.extend(pointer.result.map(|number| (number, place, pointer)));
        }
        results.sort_by_key(|&(number, ..)| number);
        results.into_iter().map(|(_, place, pointer)| (place, pointer)).collect()
    }
}

/// Returns LLVM IR of a program that calls the object with arguments in the target's byte order, writes all results to
/// standard output, and exits with the call's status.
pub(super) fn text(
    description: &Description,
    (arguments, constants): (&[Vec<u8>], &[u8]),
    target: &CrossTarget,
) -> String {
    let mut text = format!("target triple = \"{}\"\n", target.triple);
    let word = format!("i{}", 8 * description.target.pointer_bytes);
    // Writing to a string does not fail.
    let _ = data(&mut text, description, (arguments, constants), &word);
    let _ = code(&mut text, description, target, &word);
    if description.externals.iter().any(|name| name == custom_call::SYMBOL) {
        text.push_str(&custom_call::function(&word));
    }
    text.push_str(match target.builtins {
        Builtins::None => "",
        Builtins::Here(_, functions) => functions,
        // libgcc calls `raise` for a division by zero, which programs do not have.
        Builtins::Gcc(_) => "define i32 @raise(i32 %signal) {\n  ret i32 0\n}\n",
    });
    text
}

fn data(
    text: &mut String,
    description: &Description,
    (arguments, constants): (&[Vec<u8>], &[u8]),
    word: &str,
) -> std::fmt::Result {
    let Program { abi, arena, pointers, words, .. } = &description.program;
    for (number, pointer) in pointers.iter().enumerate() {
        let bytes = pointer.bytes.max(1);
        let argument = pointer.argument.and_then(|argument| arguments.get(argument)).cloned();
        let state = pointer.random_state.then(|| random_state(description.target.big_endian));
        match argument.or(state).filter(|data| data.len() == bytes) {
            Some(data) => bytes_of(text, &format!("p{number}"), &data, 16)?,
            None => writeln!(text, "@p{number} = internal global [{bytes} x i8] zeroinitializer, align 16")?,
        }
    }
    bytes_of(text, "constants", constants, 64)?;
    let (arena, count) = (arena.size, pointers.len());
    writeln!(text, "@arena = internal global [{} x i8] zeroinitializer, align 64", arena + 1)?;
    let arrays = (0..count).map(|number| ("ptr".to_string(), format!("@p{number}")));
    let word_of = |Word { name }: &Word| match name.as_str() {
        "constants" => ("ptr".to_string(), "@constants".to_string()),
        "constants_size" => (word.to_string(), constants.len().to_string()),
        "user_data" => ("ptr".to_string(), "@own".to_string()),
        "parallel_for" => ("ptr".to_string(), "@parallel_for".to_string()),
        _ => ("ptr".to_string(), "null".to_string()),
    };
    let fields: Vec<(String, String)> = arrays.chain(words.iter().map(word_of)).collect();
    let types: String = fields.iter().map(|(ty, _)| format!(", {ty}")).collect();
    let pointers: String = fields.iter().map(|(ty, value)| format!(", {ty} {value}")).collect();
    writeln!(
        text,
        "@call = internal global {{ i32, i8, [3 x i8], ptr, {word}{types} }} \
         {{ i32 {abi}, i8 0, [3 x i8] zeroinitializer, ptr @arena, {word} {arena}{pointers} }}"
    )
}

/// Appends bytes as data with a name.
fn bytes_of(text: &mut String, name: &str, data: &[u8], alignment: u32) -> std::fmt::Result {
    write!(text, "@{name} = internal global [{} x i8] c\"", data.len())?;
    data.iter().try_for_each(|byte| write!(text, "\\{byte:02x}"))?;
    writeln!(text, "\", align {alignment}")
}

/// Returns the initial state of a device's random numbers, two words.
fn random_state(big_endian: bool) -> Vec<u8> {
    let state = RandomState::new().advance(0);
    let words = [state as u64, (state >> 64) as u64];
    words.iter().flat_map(|word| if big_endian { word.to_be_bytes() } else { word.to_le_bytes() }).collect()
}

fn code(text: &mut String, description: &Description, target: &CrossTarget, word: &str) -> std::fmt::Result {
    let (name, system) = (&description.program.name, target.system);
    let (write, exit) = (system.write, system.exit);
    let words = format!("{word} %n, {word} %a, {word} %b, {word} %c");
    match system.by {
        CallBy::Instruction(instruction, registers) => writeln!(
            text,
            "define internal {word} @system({words}) #1 {{
  %r = call {word} asm sideeffect \"{instruction}\", \"{registers}\"({words})
  ret {word} %r
}}"
        )?,
        CallBy::Import => writeln!(
            text,
            "declare {word} @system({words}) \"wasm-import-module\"=\"env\" \"wasm-import-name\"=\"system\""
        )?,
    }
    write!(
        text,
        "define internal void @parallel_for(ptr %pool, {word} %count, ptr %task, ptr %data) #1 {{
entry:
  br label %loop
loop:
  %left = phi {word} [ %count, %entry ], [ %number, %go ]
  %more = icmp ne {word} %left, 0
  br i1 %more, label %go, label %end
go:
  %number = sub {word} %left, 1
  call void %task(ptr %data, {word} %number)
  br label %loop
end:
  ret void
}}
declare i32 @{name}(ptr)
define internal void @out(ptr %p, {word} %n) #1 {{
entry:
  %s = ptrtoint ptr %p to {word}
  br label %loop
loop:
  %at = phi {word} [ 0, %entry ], [ %next, %go ]
  %more = icmp ult {word} %at, %n
  br i1 %more, label %go, label %end
go:
  %place = add {word} %s, %at
  %left = sub {word} %n, %at
  %written = call {word} @system({word} {write}, {word} 1, {word} %place, {word} %left)
  %next = add {word} %at, %written
  br label %loop
end:
  ret void
}}
define void @_start() #0 {{
  %status = call i32 @{name}(ptr @call)
"
    )?;
    for (place, pointer) in description.program.results() {
        writeln!(text, "  call void @out(ptr @p{place}, {word} {})", pointer.bytes)?;
    }
    let wide = if word == "i32" { "add i32 %status, 0".to_string() } else { format!("zext i32 %status to {word}") };
    write!(
        text,
        "  %code = {wide}
  call {word} @system({word} {exit}, {word} %code, {word} 0, {word} 0)
  unreachable
}}
attributes #0 = {{ nounwind \"stackrealign\" }}
attributes #1 = {{ noinline nounwind }}
"
    )
}
