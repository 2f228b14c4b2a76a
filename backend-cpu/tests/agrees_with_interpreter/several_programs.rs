//! Tests of several programs compiled ahead of time into one object, which share their constants.

use std::fmt::Write;

use object::{Object, ObjectSymbol};
use serde_json::Value;
use xla_hlo::Error;
use xla_service::{AotCompilationOptions, ExternalCall};

use crate::ahead_of_time::{compile, compile_all, file, link, run};

/// Number of elements of the shared constant.
const COUNT: usize = 3000;

/// Returns a program that applies an operation to its argument and a table.
fn with_table(name: &str, operation: &str, rest: &str) -> String {
    let mut table = String::new();
    for number in 0..COUNT {
        let comma = if number > 0 { ", " } else { "" };
        let _ = write!(table, "{comma}{}", number * 7 % 1000);
    }
    format!(
        "HloModule {name}
        ENTRY main {{
          x = s32[{COUNT}] parameter(0)
          table = s32[{COUNT}] constant({{{table}}})
          y = s32[{COUNT}] {operation}(x, table)
          {rest}
        }}"
    )
}

fn both() -> [String; 2] {
    [
        with_table("plus", "add", "ROOT r = s32[3000] reverse(y), dimensions={0}"),
        with_table("times", "multiply", "ROOT c = s32[3000] custom-call(y), custom_call_target=\"half\""),
    ]
}

fn options() -> AotCompilationOptions {
    let externals = vec![ExternalCall { target: "half".to_string(), symbol: None }];
    AotCompilationOptions { externals, name: Some("model".to_string()), ..AotCompilationOptions::default() }
}

#[test]
fn programs_of_an_object_share_constants() {
    let [plus, times] = both();
    let files = compile_all(&[&plus, &times], &options()).unwrap();
    let bytes = 4 * COUNT;
    let alone = file(&compile(&plus, &options()).unwrap(), ".o").len();
    let object = file(&files, "model.o");
    assert!(alone > bytes && object.len() < alone + bytes / 2, "{alone} {}", object.len());
    let object = object::File::parse(object).unwrap();
    let mut global: Vec<&str> =
        object.symbols().filter(|s| s.is_global() && s.is_definition()).map(|s| s.name().unwrap()).collect();
    global.sort_unstable();
    assert_eq!(global, ["plus", "times"]);
    let description: Value = serde_json::from_slice(file(&files, "model.json")).unwrap();
    let names: Vec<&Value> =
        description["programs"].as_array().unwrap().iter().map(|program| &program["name"]).collect();
    assert_eq!((&description["name"], names), (&"model".into(), vec![&"plus".into(), &"times".into()]));
    let source = "#include \"model.h\"
static _Alignas(64) unsigned char memory[PLUS_ARENA_SIZE + TIMES_ARENA_SIZE];
static int32_t x[PLUS_X_ELEMENTS], y[PLUS_RESULT_ELEMENTS], z[TIMES_RESULT_ELEMENTS];
int32_t half(const void *const *operands, void *const *results, const char *config, size_t config_size, void *user_data) {
  const int32_t *from = operands[0];
  int32_t *to = results[0], i;
  (void)config, (void)config_size, (void)user_data;
  for (i = 0; i < TIMES_RESULT_ELEMENTS; i++) to[i] = from[i] / 2;
  return 0;
}
int main(void) {
  plus_call first = {0};
  times_call second = {0};
  int i;
  for (i = 0; i < PLUS_X_ELEMENTS; i++) x[i] = i + 1;
  first.abi = PLUS_ABI, first.arena = memory, first.arena_size = PLUS_ARENA_SIZE, first.x = x, first.result = y;
  second.abi = TIMES_ABI, second.arena = memory, second.arena_size = TIMES_ARENA_SIZE, second.x = x, second.result = z;
  if (plus(&first) != PLUS_OK || times(&second) != TIMES_OK) return 1;
  for (i = 0; i < PLUS_X_ELEMENTS; i++)
    if (y[PLUS_X_ELEMENTS - 1 - i] != i + 1 + i * 7 % 1000 || z[i] != (i + 1) * (i * 7 % 1000) / 2) return 2;
  first.abi = TIMES_ABI;
  return plus(&first) == PLUS_WRONG_ABI ? 0 : 3;
}
";
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(&link(folder.path(), &files, "cc", source), &[]).0, Some(0));
    let cpp = "#include \"model.h\"
#include \"model.h\"
static n::plus_program program;
int32_t half(const void *const *, void *const *, const char *, size_t, void *) { return 5; }
int main() { n::times_call call = {}; return n::times(&call) == TIMES_WRONG_ABI && program.run() == PLUS_NULL_X ? 0 : 1; }
";
    let options = AotCompilationOptions { namespace: Some("n".to_string()), ..options() };
    let files = compile_all(&[&plus, &times], &options).unwrap();
    assert!(files == compile_all(&[&plus, &times], &options).unwrap());
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run(&link(folder.path(), &files, "c++", cpp), &[]).0, Some(0));
}

#[test]
fn names_of_programs_do_not_collide() {
    let [plus, times] = both();
    let said = |texts: &[&str], symbols: &[&str]| {
        let symbols = symbols.iter().map(ToString::to_string).collect();
        match compile_all(texts, &AotCompilationOptions { symbols, ..options() }).unwrap_err() {
            Error::InvalidArgument(reason) => reason.to_string(),
            other => panic!("{other}"),
        }
    };
    assert!(said(&[&plus, &plus], &[]).contains("must have different names, not plus, plus"));
    assert!(said(&[&plus, &times], &["a", "A"]).contains("must have different names"));
    assert!(said(&[&plus, &times], &["a"]).contains("the number of symbols (1) differs"));
    assert!(said(&[], &[]).contains("no module"));
    assert!(said(&[&plus, &times], &["a", "half"]).contains("the name of a program of the object"));
    // Array `x_y` of program `a` and array `y` of program `a_x` would define one name.
    let other = plus.replace("x = ", "x_y = ").replace("add(x,", "add(x_y,");
    let third = times
        .replace("x = ", "y = ")
        .replace("multiply(x,", "multiply(y,")
        .replace("y = s32[3000] mul", "z = s32[3000] mul")
        .replace("call(y)", "call(z)");
    assert!(said(&[&other, &third], &["a", "a_x"]).contains("would define A_X_Y_ELEMENTS twice"));
}

#[test]
fn errors_of_several_programs_name_theirs() {
    let [plus, times] = both();
    let options = AotCompilationOptions { externals: Vec::new(), ..options() };
    let error = compile_all(&[&plus, &times], &options).unwrap_err();
    assert!(matches!(error, Error::Unimplemented(_)) && error.to_string().contains("program times"), "{error}");
}
