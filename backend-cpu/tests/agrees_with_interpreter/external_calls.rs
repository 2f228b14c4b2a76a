//! Tests of custom calls of programs compiled ahead of time, as functions of the application.

use serde_json::Value;
use xla_hlo::Error;
use xla_service::{AotCompilationOptions, ExternalCall};

use crate::ahead_of_time::{compile, file, link, run};

/// Custom calls: one in a loop, one with its own layouts, and one of several results that aliases an operand.
const CALLS: &str = include_str!("programs/calls.hlo");

const APPLICATION: &str = "
#include <string.h>
struct counts { int added, number; };
int32_t add_number(const void *const *operands, void *const *results, const char *config, size_t config_size, void *user_data) {
  const float *x = operands[0];
  const int32_t *i = operands[1];
  float *y = results[0];
  struct counts *counts = user_data;
  int k;
  if (config_size != strlen(config) || strcmp(config, \"3 \\\"quoted\\\"\") || *i != counts->added) return -7;
  counts->added++;
  for (k = 0; k < 5; k++) y[k] = x[k] + (float)(config[0] - '0');
  return counts->added > counts->number ? 1000 + counts->added : 0;
}
int32_t columns(const void *const *operands, void *const *results, const char *config, size_t config_size, void *user_data) {
  const double *m = operands[0];
  double *t = results[0];
  int k;
  (void)user_data;
  if (config_size || *config) return 1;
  for (k = 0; k < 6; k++) t[k] = 10 * m[k] + k;
  return 0;
}
int32_t split(const void *const *operands, void *const *results, const char *config, size_t config_size, void *user_data) {
  float *z = results[0];
  uint8_t *u = results[1];
  (void)config, (void)config_size, (void)user_data;
  if (operands[0] != z) return 2;
  u[0] = 200, u[1] = (uint8_t)z[4];
  z[4] = 99;
  return 0;
}
";

const MAIN: &str = "
static _Alignas(64) unsigned char memory[CALLS_ARENA_SIZE];
int main(void) {
  float x[5] = {0, -1, -2, -3, -50}, y[5], z[5];
  double m[2][3] = {{1, 2, 3}, {4, 5, 6}}, t[2][3];
  uint8_t u[2];
  struct counts counts = {0, 3};
  int32_t told = 5;
  int k;
  calls_call call = {0};
  call.abi = CALLS_ABI, call.arena = memory, call.arena_size = CALLS_ARENA_SIZE, call.user_data = &counts;
  call.x = x, call.m = &m[0][0], call.result_0 = y, call.result_1 = &t[0][0], call.result_2 = z, call.result_3 = u;
  if (calls(&call) != CALLS_OK) return 1;
  for (k = 0; k < 5; k++) if (y[k] != x[k] + 9 || (k < 4 && z[k] != -y[k])) return 2;
  for (k = 0; k < 6; k++) if (t[k % 2][k / 2] != 10 * m[k % 2][k / 2] + k) return 3;
  if (z[4] != 99 || u[0] != 200 || u[1] != 41) return 4;
  counts.added = 0, counts.number = 1;
  if (calls(&call) != CALLS_EXTERNAL_FAILED) return 5;
  counts.added = 0, call.external_status = &told;
  if (calls(&call) != CALLS_EXTERNAL_FAILED || told != 1002 || counts.added != 2) return 6;
  counts.added = 9;
  return calls(&call) == CALLS_EXTERNAL_FAILED && told == -7 ? 0 : 7;
}
";

fn options() -> AotCompilationOptions {
    let external = |target: &str, symbol: Option<&str>| ExternalCall {
        target: target.to_string(),
        symbol: symbol.map(str::to_string),
    };
    AotCompilationOptions {
        externals: vec![
            external("columns", None),
            external("add.number", Some("add_number")),
            external("split", None),
            external("never", None),
        ],
        ..AotCompilationOptions::default()
    }
}

#[test]
fn custom_calls_are_functions_of_the_application() {
    let files = compile(CALLS, &options()).unwrap();
    let description: Value = serde_json::from_slice(file(&files, ".json")).unwrap();
    assert_eq!(description["externals"], serde_json::json!(["add_number", "columns", "split"]), "{description}");
    assert_eq!(description["functions"][1]["calls"][0]["operands"][0]["minor_to_major"], serde_json::json!([0, 1]));
    let header = String::from_utf8_lossy(file(&files, ".h")).into_owned();
    for line in [
        " * The object file needs these functions of the application, for custom calls: add_number, columns, split.",
        "/* Custom call \"add.number\".\n",
        " *   operands[1]: const int32_t *, s32[]\n",
        " *   results[0]: double *, f64[2,3]{0,1}\n",
        "int32_t columns(const void *const *operands, void *const *results,",
    ] {
        assert!(header.contains(line), "{line}\n{header}");
    }
    let folder = tempfile::tempdir().unwrap();
    let program = link(folder.path(), &files, "cc", &format!("#include \"calls.h\"\n{APPLICATION}{MAIN}"));
    assert_eq!(run(&program, &[]).0, Some(0));
}

#[test]
fn functions_of_the_application_are_in_no_namespace() {
    let text = "HloModule shout
        ENTRY main {
          ROOT r = c64[2] custom-call(), custom_call_target=\"answer\", custom_call_has_side_effect=true
        }";
    let answer = ExternalCall { target: "answer".to_string(), symbol: None };
    let options = AotCompilationOptions {
        namespace: Some("a::b".to_string()),
        externals: vec![answer],
        ..AotCompilationOptions::default()
    };
    let source = "#include \"shout.h\"
int32_t answer(const void *const *, void *const *results, const char *, size_t, void *user_data) {
  float *to = static_cast<float *>(results[0]);
  to[0] = 1, to[1] = 2, to[2] = 3, to[3] = *static_cast<float *>(user_data);
  return 0;
}
static a::b::shout_program program;
int main() {
  a::b::shout_complex64 r[2];
  float four = 4;
  program.result = r;
  program.user_data = &four;
  return program.run() == SHOUT_OK && r[0].real == 1 && r[1].imaginary == 4 ? 0 : 1;
}
";
    let folder = tempfile::tempdir().unwrap();
    let program = link(folder.path(), &compile(text, &options).unwrap(), "c++", source);
    assert_eq!(run(&program, &[]).0, Some(0));
}

#[test]
fn custom_calls_that_are_not_listed_are_refused() {
    let mut options = options();
    options.externals.remove(0);
    let error = compile(CALLS, &options).unwrap_err();
    assert!(matches!(error, Error::Unimplemented(_)), "{error}");
    let text = error.message();
    assert!(text.contains("no code yet for %t (custom-call, f64[2,3]); custom calls become functions"), "{error}");
    assert!(text.ends_with("with --external columns"), "{error}");
}

#[test]
fn functions_have_names_of_c_each_one_target() {
    let said = |target: &str, symbol: Option<&str>| {
        let mut options = options();
        options.externals.push(ExternalCall { target: target.to_string(), symbol: symbol.map(str::to_string) });
        match compile(CALLS, &options).unwrap_err() {
            Error::InvalidArgument(reason) => reason.to_string(),
            other => panic!("{other}"),
        }
    };
    assert!(
        said("a.b", None).contains("\"a.b\" is not a name in C; give the name of the function as well: TARGET=SYMBOL")
    );
    assert!(said("a.b", Some("while")).contains("\"while\" is not a name in C"));
    assert!(said("a", Some("calls")).contains("the name of a program of the object"));
    assert!(said("columns", Some("rows")).contains("a target has one function"));
    assert!(said("rows", Some("columns")).contains("a function one target"));
}
