//! Tests of programs compiled ahead of time whose calls distribute their work over threads of the application.

use std::num::NonZeroUsize;

use serde_json::Value;
use xla_hlo::Error;
use xla_service::AotCompilationOptions;
use xla_tests::agreement::assert_close;

use crate::ahead_of_time::{compile, driver, evaluated, file, link, run};

/// Functions of an application that execute tasks, and count them.
const FUNCTIONS: &str = r"
#include <pthread.h>
static size_t tasks, most;
static void backwards(void *pool, size_t count, void (*task)(void *, size_t), void *data) {
  size_t i;
  ++*(int *)pool;
  tasks += count;
  if (count > most) most = count;
  for (i = count; i > 0; i--) task(data, i - 1);
}
struct one { void (*task)(void *, size_t); void *data; size_t number; };
static void *start(void *p) {
  struct one *one = p;
  one->task(one->data, one->number);
  return 0;
}
static void threads(void *pool, size_t count, void (*task)(void *, size_t), void *data) {
  pthread_t thread[16];
  struct one one[16];
  size_t i;
  ++*(int *)pool;
  tasks += count;
  if (count > most) most = count;
  for (i = 0; i < count; i++) {
    one[i].task = task, one[i].data = data, one[i].number = i;
    if (pthread_create(&thread[i], 0, start, &one[i])) task(data, i), one[i].task = 0;
  }
  for (i = 0; i < count; i++) if (one[i].task) pthread_join(thread[i], 0);
}
static int calls;
";

/// Compiles the program for three threads and runs it in C: without a function, with one that runs tasks in descending
/// order in the calling thread, and with one that starts threads. The results must be the evaluator's, and the work
/// must be split into more than `least` tasks.
fn agrees(text: &str, least: usize) {
    for (cpu, function) in
        [(None, "0"), (None, "backwards"), (Some("native"), "threads"), (Some("native"), "backwards")]
    {
        let threads = NonZeroUsize::new(3);
        let options = AotCompilationOptions {
            cpus: cpu.iter().map(ToString::to_string).collect(),
            threads,
            ..Default::default()
        };
        let files = compile(text, &options).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let description: Value = serde_json::from_slice(file(&files, ".json")).unwrap();
        assert_eq!(description["programs"][0]["threads"], 3);
        let folder = tempfile::tempdir().unwrap();
        let source = driver(&description).replace("int main", &format!("{FUNCTIONS}int main")).replace(
            "  int32_t status",
            &format!("  call.parallel_for = {function};\n  call.pool = &calls;\n  (void)threads, (void)backwards;\n  int32_t status"),
        );
        let check = "  if (calls && (most > 3 || tasks > 3 * (size_t)calls)) return 98;\n";
        let check = if function == "0" { "" } else { &format!("{check}  if (tasks < {least}) return 97;\n") };
        let source = source.replace("  return status;", &format!("{check}  return status;"));
        let program = link(folder.path(), &files, "cc", &source);
        let (bytes, expected) = evaluated(text);
        let (status, output) = run(&program, &bytes);
        assert_eq!(status, Some(0), "{function}: {text}");
        let mut found = expected[0].clone();
        found.bytes_mut().copy_from_slice(&output);
        assert_close(&found, &expected[0], &format!("{function} for {cpu:?} of\n{text}"));
    }
}

#[test]
fn elementwise_work_is_shared() {
    agrees(include_str!("programs/elementwise_work_is_shared.hlo"), 2);
}

#[test]
fn matmuls_have_scratch_memory_of_each_task() {
    agrees(include_str!("programs/matmuls_have_scratch_memory_of_each_task.hlo"), 4);
}

#[test]
fn sorts_share_rows_and_reductions_split() {
    agrees(include_str!("programs/sorts_share_rows_and_reductions_split.hlo"), 2);
}

#[test]
fn loops_share_the_work_of_their_bodies() {
    agrees(include_str!("programs/loops_share_the_work_of_their_bodies.hlo"), 18);
}

#[test]
fn only_calls_of_several_threads_have_the_function() {
    let text = "HloModule both
        ENTRY main {
          x = f32[200,300] parameter(0)
          ROOT e = f32[200,300] exponential(x)
        }";
    let options = |threads: usize| AotCompilationOptions { threads: NonZeroUsize::new(threads), ..Default::default() };
    let header = |threads| {
        let files = compile(text, &options(threads)).unwrap();
        String::from_utf8(file(&files, ".h").to_vec()).unwrap()
    };
    assert!(!header(1).contains("parallel_for"));
    assert!(header(2).contains("#define BOTH_THREADS 2"));
    assert!(matches!(compile(text, &options(1025)).unwrap_err(), Error::InvalidArgument(_)));
}
