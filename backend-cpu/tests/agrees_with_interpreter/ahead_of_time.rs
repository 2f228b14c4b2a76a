//! Tests of programs compiled ahead of time: linked into C and C++ programs by this machine's compiler, run, and
//! compared with the reference evaluator.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use xla_hlo::{Error, Literal, Result, VerifiedModule, eval, text};
use xla_service::compiler::AotFile;
use xla_service::{AotCompilationOptions, CompileOptions};
use xla_tests::agreement::{assert_close, input};

pub(crate) fn module(text: &str) -> VerifiedModule {
    VerifiedModule::new(text::parse_module(text).unwrap()).unwrap()
}

pub(crate) fn compile(text: &str, options: &AotCompilationOptions) -> Result<Vec<AotFile>> {
    compile_all(&[text], options)
}

/// Compiles programs into one object.
pub(crate) fn compile_all(texts: &[&str], options: &AotCompilationOptions) -> Result<Vec<AotFile>> {
    let modules = texts.iter().map(|text| module(text)).collect();
    backend_cpu::platform().compiler().ahead_of_time().unwrap().compile_ahead_of_time(modules, options)
}

pub(crate) fn file<'a>(files: &'a [AotFile], ending: &str) -> &'a [u8] {
    &files.iter().find(|file| file.name.ends_with(ending)).unwrap().bytes
}

/// Writes the files and a source file, links them with the compiler, and returns the program's path.
pub(crate) fn link(folder: &Path, files: &[AotFile], compiler: &str, source: &str) -> std::path::PathBuf {
    for file in files {
        std::fs::write(folder.join(&file.name), &file.bytes).unwrap();
    }
    let source_name = if compiler == "c++" { "main.cc" } else { "main.c" };
    std::fs::write(folder.join(source_name), source).unwrap();
    let standard = if compiler == "c++" { "-std=c++11" } else { "-std=c11" };
    let object = &files.iter().find(|file| file.name.ends_with(".o")).unwrap().name;
    let mut command = Command::new(compiler);
    command.args([standard, "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "-o", "main", source_name, object]);
    let done = command.current_dir(folder).output().expect("Rust links with a C compiler, so there is one");
    assert!(done.status.success(), "{}\n{source}", String::from_utf8_lossy(&done.stderr));
    folder.join("main")
}

/// Returns a C program that reads all arguments, calls the entry, and writes all results; it exits with the call's
/// status.
pub(crate) fn driver(description: &Value) -> String {
    let description = &description["programs"][0];
    let name = description["name"].as_str().unwrap();
    let (mut arrays, mut reads, mut sets, mut writes) = (String::new(), String::new(), String::new(), Vec::new());
    for (number, pointer) in description["pointers"].as_array().unwrap().iter().enumerate() {
        let (field, bytes) = (pointer["name"].as_str().unwrap(), pointer["bytes"].as_u64().unwrap());
        arrays += &format!("static _Alignas(16) unsigned char p{number}[{}];\n", bytes.max(1));
        sets += &format!("  call.{field} = (void *)p{number};\n");
        if pointer["argument"].is_u64() {
            reads += &format!("  if (fread(p{number}, 1, {bytes}, stdin) != {bytes}) return 99;\n");
        }
        if let Some(result) = pointer["result"].as_u64() {
            writes.push((result, format!("  fwrite(p{number}, 1, {bytes}, stdout);\n")));
        }
    }
    writes.sort();
    let writes: String = writes.into_iter().map(|(_, write)| write).collect();
    let upper = name.to_ascii_uppercase();
    format!(
        "#include \"{name}.h\"
#include <stdio.h>
{arrays}static _Alignas({upper}_ARENA_ALIGNMENT) unsigned char arena[{upper}_ARENA_SIZE + 1];
int main(void) {{
  {name}_call call = {{0}};
  size_t i;
  for (i = 0; i < sizeof arena; i++) arena[i] = 0xff;
  call.abi = {upper}_ABI;
  call.arena = arena;
  call.arena_size = {upper}_ARENA_SIZE;
{sets}{reads}  int32_t status = {name}(&call);
{writes}  return status;
}}
"
    )
}

/// Runs a program with these bytes as its input.
pub(crate) fn run(program: &Path, input: &[u8]) -> (Option<i32>, Vec<u8>) {
    use std::io::Write;
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let done = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    (done.status.code(), done.stdout)
}

/// Returns inputs of a program that are equal in every run, as bytes, and the evaluator's results.
pub(crate) fn evaluated(text: &str) -> (Vec<u8>, Vec<Literal>) {
    let module = module(text);
    let entry = module.entry();
    let parameters = entry.parameters().iter().enumerate();
    let inputs: Vec<Literal> = parameters.map(|(i, &p)| input(entry[p].shape(), i)).collect();
    let bytes: Vec<u8> = inputs.iter().flat_map(|literal| literal.bytes().to_vec()).collect();
    let expected = eval::evaluate(&module, inputs).unwrap();
    let expected = if expected.shape().as_tuple().is_some() { expected.elements().to_vec() } else { vec![expected] };
    (bytes, expected)
}

/// Compares the results of a program with the evaluator's, on this machine's processor and on the baseline of its
/// architecture.
pub(crate) fn agrees(text: &str) {
    for cpu in [None, Some("native".to_string())] {
        agrees_on(cpu, text);
    }
}

/// Compiles a program for a processor, runs it in a C program on inputs that are equal in every run, and compares the
/// results with the evaluator's.
pub(crate) fn agrees_on(cpu: Option<String>, text: &str) {
    let cpus = cpu.into_iter().collect();
    agrees_with(text, &AotCompilationOptions { cpus, ..AotCompilationOptions::default() });
}

/// Compares a program ahead of time with the evaluator like [`agrees_on`], with any options.
pub(crate) fn agrees_with(text: &str, options: &AotCompilationOptions) {
    let files = compile(text, options).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let description: Value = serde_json::from_slice(file(&files, ".json")).unwrap();
    if cfg!(target_arch = "x86_64") {
        assert_eq!(description["externals"].as_array().unwrap().len(), 0, "{description}");
    }
    let folder = tempfile::tempdir().unwrap();
    let program = link(folder.path(), &files, "cc", &driver(&description));
    let (bytes, expected) = evaluated(text);
    let (status, output) = run(&program, &bytes);
    assert_eq!(status, Some(0), "{text}");
    let mut rest = &output[..];
    for (number, expected) in expected.iter().enumerate() {
        let (found, after) = rest.split_at(expected.bytes().len());
        let mut literal = expected.clone();
        literal.bytes_mut().copy_from_slice(found);
        assert_close(&literal, expected, &format!("result {number} for {:?} of\n{text}", options.cpus));
        rest = after;
    }
    assert!(rest.is_empty());
}

#[test]
fn many_parameters_and_results_take_a_frame_of_constant_size() {
    // Four addresses for each leaf would exceed the limit of a frame, 16 KiB.
    let (count, mut text) = (1200, "HloModule many\nENTRY main {\n  s = f32[] constant(0.5)\n".to_string());
    text += "  b = f32[3] broadcast(s), dimensions={}\n  c = f32[3] constant({1, 2, 3})\n  e = f32[0] parameter(0)\n";
    for i in 1..count {
        text += &format!("  p.{i} = f32[3] parameter({i})\n  q{i} = f32[3] multiply(p.{i}, b)\n");
    }
    let shapes = vec!["f32[3]"; count - 1].join(",");
    let values: Vec<String> = (1..count).map(|i| format!("q{i}")).collect();
    text += &format!("  ROOT r = (f32[0],{shapes},f32[3]) tuple(e, {}, c)\n}}\n", values.join(", "));
    agrees_on(None, &text);
}

#[test]
fn elementwise_operations_and_movement() {
    agrees(include_str!("../../../tests/conformance/programs/kernels/tanh_of_a_sum_with_a_transpose.hlo"));
}

#[test]
fn rows_that_are_kept_in_scratch_memory() {
    agrees(include_str!("../../../tests/conformance/programs/kernels/softmax_over_rows_of_3000.hlo"));
}

/// If masks are branches, the last columns are computed one by one; the sum of each used to overwrite its
/// neighbours.
#[test]
fn sums_of_columns_that_fill_no_vector() {
    for (rows, columns) in [(40, 101), (7, 515), (129, 7)] {
        agrees(&format!(
            "HloModule columns
            sum {{ a = f32[] parameter(0)
              b = f32[] parameter(1)
              ROOT c = f32[] add(a, b) }}
            ENTRY main {{
              x = f32[{rows},{columns}] parameter(0)
              zero = f32[] constant(0)
              ROOT s = f32[{columns}] reduce(x, zero), dimensions={{0}}, to_apply=sum
            }}"
        ));
    }
}

#[test]
fn loops_branches_and_several_results() {
    agrees(include_str!("../../../tests/conformance/programs/kernels/results_of_a_loop_and_a_conditional.hlo"));
}

#[test]
fn contractions_without_a_library() {
    agrees(include_str!("../../../tests/conformance/programs/kernels/matmul_with_relu.hlo"));
}

#[test]
fn narrow_floats_and_complex_numbers() {
    agrees(include_str!("../../../tests/conformance/programs/kernels/conversions_of_narrow_floats.hlo"));
}

/// State that a step updates in place, in a slice.
const STEP: &str = include_str!("programs/step.hlo");

#[test]
fn aliased_arguments_are_updated_in_place() {
    let files = compile(STEP, &AotCompilationOptions::default()).unwrap();
    let header = String::from_utf8_lossy(file(&files, ".h")).into_owned();
    assert!(header.contains("  float *state; /* argument 0 (parameter 0 \"state\") and result 0, f32[16]"), "{header}");
    assert!(header.contains("  const float *piece;"), "{header}");
    agrees(STEP);
}

#[test]
fn the_class_in_cpp_has_its_own_arena() {
    let options = AotCompilationOptions {
        symbols: vec!["advance".to_string()],
        namespace: Some("robot::arm".to_string()),
        ..AotCompilationOptions::default()
    };
    let files = compile(STEP, &options).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let source = "#include \"advance.h\"
static robot::arm::advance_program program;
int main() {
  float state[ADVANCE_STATE_ELEMENTS] = ADVANCE_STATE_DIMS, piece[] = {5, 6};
  int32_t at = 3, at_out = 0;
  program.state = state;
  program.piece = piece;
  program.at = &at;
  program.result_1 = &at_out;
  if (program.run() != ADVANCE_OK) return 1;
  return state[0] == 16 && state[3] == 5 && state[4] == 6 && state[5] == 0 && at_out == 3 ? 0 : 2;
}
";
    let program = link(folder.path(), &files, "c++", source);
    assert_eq!(run(&program, &[]).0, Some(0));
}

#[test]
fn calls_are_checked_before_anything_is_written() {
    let text = include_str!("programs/calls_are_checked_before_anything_is_written.hlo");
    let files = compile(text, &AotCompilationOptions { symbols: vec!["f".to_string()], ..Default::default() }).unwrap();
    let description: Value = serde_json::from_slice(file(&files, ".json")).unwrap();
    let arena = &description["programs"][0]["arena"];
    assert_eq!(arena["alignment"], 64);
    assert!(arena["size"].as_u64().unwrap() > 0, "{description}");
    let folder = tempfile::tempdir().unwrap();
    let source = "#include \"f.h\"
static _Alignas(64) unsigned char memory[F_ARENA_SIZE + 64];
static float x[6], y[6] = {7, 7, 7, 7, 7, 7};
static f_call good(void) {
  f_call call = {0};
  call.abi = F_ABI, call.arena = memory, call.arena_size = F_ARENA_SIZE, call.x = x, call.result = y;
  return call;
}
static int untouched(void) {
  size_t i;
  for (i = 0; i < sizeof memory; i++) if (memory[i]) return 0;
  return y[0] == 7 && y[5] == 7;
}
#define EXPECT(status) if (f(&call) != (status) || !untouched()) return __LINE__; call = good()
int main(void) {
  f_call call = good();
  if (f(NULL) != F_NO_CALL || !untouched()) return 1;
  call.abi ^= 1; EXPECT(F_WRONG_ABI);
  call.arena = NULL; EXPECT(F_ARENA_TOO_SMALL);
  call.arena_size -= 1; EXPECT(F_ARENA_TOO_SMALL);
  call.arena = memory + 4; EXPECT(F_ARENA_MISALIGNED);
  call.x = NULL; EXPECT(F_NULL_X);
  call.result = NULL; EXPECT(F_NULL_RESULT);
  if (f(&call) != F_OK) return 2;
  return y[0] == 0 ? 0 : 3;
}
";
    let program = link(folder.path(), &files, "cc", source);
    assert_eq!(run(&program, &[]).0, Some(0));
}

#[test]
fn a_loop_is_left_when_the_call_is_cancelled() {
    let text = include_str!("programs/a_loop_is_left_when_the_call_is_cancelled.hlo");
    let files = compile(text, &AotCompilationOptions::default()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let source = "#include \"endless.h\"
static _Alignas(64) unsigned char memory[ENDLESS_ARENA_SIZE + 1];
int main(void) {
  int32_t s = 1, w = 0;
  endless_call call = {0};
  call.abi = ENDLESS_ABI, call.arena = memory, call.arena_size = ENDLESS_ARENA_SIZE, call.s = &s, call.result = &w;
  call.cancel = 1;
  return endless(&call) == ENDLESS_CANCELLED ? 0 : 1;
}
";
    let program = link(folder.path(), &files, "cc", source);
    assert_eq!(run(&program, &[]).0, Some(0));
}

/// Loop that halves numbers.
const HALVES: &str = include_str!("programs/halves.hlo");

#[test]
fn subnormals_are_flushed_where_the_options_say_so_and_never_in_the_caller() {
    let source = "#include \"halves.h\"
static _Alignas(64) unsigned char memory[HALVES_ARENA_SIZE + 1];
static volatile float least = 1.17549435e-38f;
static int keeps(void) {
  volatile float half = least * 0.5f;
  return half > 0 && half * 2 == least;
}
int main(void) {
  float x[4], y[4] = {0};
  int32_t n = 3, outcome;
  halves_call call = {0};
  x[0] = 8 * least, x[1] = 2 * least, x[2] = -2 * least, x[3] = 1;
  call.abi = HALVES_ABI, call.arena = memory, call.arena_size = HALVES_ARENA_SIZE;
  call.x = x, call.n = &n, call.result = y;
  if (halves(&call) != HALVES_OK || !keeps()) return 1;
  if (y[0] != least || y[3] != 0.125f || y[2] != -y[1]) return 2;
  outcome = y[1] == 0 ? 10 : y[1] == least * 0.25f ? 11 : 4;
  call.cancel = 1;
  return halves(&call) == HALVES_CANCELLED && keeps() ? outcome : 3;
}
";
    let can_flush = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
    for flush_denormals in [false, true] {
        let compile_options = CompileOptions { flush_denormals, ..CompileOptions::default() };
        let options = AotCompilationOptions { compile: compile_options, ..AotCompilationOptions::default() };
        let folder = tempfile::tempdir().unwrap();
        let program = link(folder.path(), &compile(HALVES, &options).unwrap(), "cc", source);
        let expected = if flush_denormals && can_flush { 10 } else { 11 };
        assert_eq!(run(&program, &[]).0, Some(expected), "flush_denormals: {flush_denormals}");
    }
}

#[test]
fn files_depend_on_module_and_target_alone() {
    let text = include_str!("programs/files_depend_on_module_and_target_alone.hlo");
    let with = |threads: usize| {
        let compile = CompileOptions { threads: std::num::NonZeroUsize::new(threads), ..CompileOptions::default() };
        AotCompilationOptions { compile, ..AotCompilationOptions::default() }
    };
    let [once, again, many] = [1, 1, 64].map(|threads| compile(text, &with(threads)).unwrap());
    assert!(once == again && once == many);
}

#[test]
fn instructions_that_need_a_library_are_refused_together() {
    let text = include_str!("programs/instructions_that_need_a_library_are_refused_together.hlo");
    let error = compile(text, &AotCompilationOptions::default()).unwrap_err();
    assert!(matches!(error, Error::Unimplemented(_)), "{error}");
    assert!(error.message().contains("%s (custom-call, f32[64]), %t (custom-call, f32[64])"), "{error}");
}

#[test]
fn names_that_do_not_exist_are_refused() {
    let said = |change: &dyn Fn(&mut AotCompilationOptions)| {
        let mut options = AotCompilationOptions::default();
        change(&mut options);
        match compile(STEP, &options).unwrap_err() {
            Error::InvalidArgument(reason) => reason.to_string(),
            other => panic!("{other}"),
        }
    };
    assert!(said(&|o| o.target = Some("aarch64-unknown-linx-gnu".into())).contains("did you mean linux?"));
    assert!(
        said(&|o| o.cpus = vec!["x86-64-v33".into()]).contains("did you mean x86-64-v3?")
            || cfg!(not(target_arch = "x86_64"))
    );
    assert!(said(&|o| o.symbols = vec!["a b".into()]).contains("not a name in C"));
}
