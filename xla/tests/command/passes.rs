//! Tests of `xla opt`, dumps and traces.

use serde_json::Value;

use crate::support::Folder;

const DEAD: &str = "\
HloModule dead, entry_computation_layout={(f32[4]{0})->f32[4]{0}}

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %unused = f32[4]{0} negate(%x)
  %pair = (f32[4]{0}, f32[4]{0}) tuple(%x, %unused)
  ROOT %first = f32[4]{0} get-tuple-element(%pair), index=0
}
";

const CHAIN: &str = "\
HloModule chain, entry_computation_layout={(f32[64,64]{1,0})->f32[64,64]{1,0}}

ENTRY %main (x: f32[64,64]) -> f32[64,64] {
  %x = f32[64,64]{1,0} parameter(0)
  %half = f32[] constant(0.5)
  %halves = f32[64,64]{1,0} broadcast(%half), dimensions={}
  %scaled = f32[64,64]{1,0} multiply(%x, %halves)
  %product = f32[64,64]{1,0} dot(%scaled, %x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT %out = f32[64,64]{1,0} add(%product, %scaled)
}
";

#[test]
fn chosen_passes_run_in_order() {
    let folder = Folder::new();
    folder.write("dead.hlo", DEAD);
    let done = folder.xla("opt dead.hlo --passes simplify-tuples,dead-code --print-after-all");
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    insta::assert_snapshot!(done.out);
    let alone = folder.xla("opt dead.hlo --passes simplify-tuples,dead-code");
    assert!(done.out.ends_with(&alone.out) && !alone.out.contains("unused"));
    // The output is a valid input.
    let again = folder.xla_with("opt - --passes dead-code", &alone.out);
    assert_eq!((again.code, again.out), (0, alone.out));
}

#[test]
fn whole_modules_are_printed_if_asked_for() {
    let folder = Folder::new();
    folder.write("dead.hlo", DEAD);
    let done = folder.xla("opt dead.hlo --passes [simplify-tuples,dead-code]* --print-after-all=full");
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert!(done.out.starts_with("// 0 custom.group.simplify-tuples:\nHloModule dead"), "{}", done.out);
    assert!(done.out.contains("\n// 3 custom.group.dead-code: no change\n"), "{}", done.out);
}

#[test]
fn fusion_is_explained() {
    let folder = Folder::new();
    folder.write("chain.hlo", CHAIN);
    let done = folder.xla("opt chain.hlo --passes fuse --explain");
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    insta::assert_snapshot!(done.out);
    let some = folder.xla("opt chain.hlo --passes fuse --explain=%half,zero");
    assert_eq!(some.code, 2);
    let some = folder.xla("opt chain.hlo --passes fuse --explain=%half");
    assert!(some.out.starts_with("in %main:\n") && some.out.ends_with("1 fused, 0 not fused\n"), "{}", some.out);
    let unknown = folder.fails(2, "opt chain.hlo --passes fuse --explain=nothing");
    assert!(unknown.starts_with("there are no decisions about nothing"), "{unknown}");
}

#[test]
fn costs_and_memory_are_reported() {
    let folder = Folder::new();
    folder.write("chain.hlo", CHAIN);
    let done = folder.xla("opt chain.hlo --passes fuse,schedule,insert-copies --cost --memory");
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    insta::assert_snapshot!(done.out);
    let json = folder.xla("opt chain.hlo --passes fuse --cost=json").out;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["total"]["flops"], 2 * 64 * 64 * 64 + 2 * 64 * 64);
    let json = folder.xla("opt chain.hlo --passes schedule,insert-copies --memory=json").out;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["argument_bytes"], &json["peak"]["instruction"]), (&16384.into(), &"%product".into()));
    let unscheduled = folder.fails(2, "opt chain.hlo --cost --to html");
    assert!(unscheduled.contains("cannot be used with"), "{unscheduled}");
}

#[test]
fn calls_values_and_chains_are_reported() {
    let folder = Folder::new();
    folder.write("chain.hlo", CHAIN);
    let done = folder.xla("opt chain.hlo --passes fuse --call-graph --dataflow --chains");
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    for line in ["call graph of ", "dataflow of ", "chains of "] {
        assert!(done.out.lines().any(|l| l.starts_with(line)), "{}", done.out);
    }
    let json = folder.xla("opt chain.hlo --passes fuse --call-graph=json").out;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["is_flat"], true);
    let json = folder.xla("opt chain.hlo --passes fuse --dataflow=json").out;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["values"][0]["made_by"], "parameter");
    let refused = folder.fails(2, "opt chain.hlo --chains --to html");
    assert!(refused.contains("cannot be used with"), "{refused}");
}

#[test]
fn a_platform_may_lack_operations() {
    let folder = Folder::new();
    folder.write("best.hlo", "ENTRY main { x = f32[8] parameter(0) ROOT k = (f32[2], s32[2]) topk(x), k=2 }");
    let done = folder.xla("opt best.hlo --passes expand-top-k --lacks topk,bf16");
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert!(done.out.contains(" sort(") && !done.out.contains(" topk("), "{}", done.out);
    let message = folder.fails(2, "opt best.hlo --lacks cholesk");
    assert!(message.contains("a target cannot lack \"cholesk\"; did you mean cholesky?"), "{message}");
}

#[test]
fn passes_are_left_out() {
    let folder = Folder::new();
    folder.write("dead.hlo", DEAD);
    let all = "opt dead.hlo --passes simplify-tuples,dead-code";
    let done = folder.xla(&format!("{all} --without simplify-tuples,dead-code"));
    assert_eq!((done.code, done.out.as_str()), (0, DEAD));
    let message = folder.fails(2, &format!("{all} --without dead-cod"));
    assert!(message.contains("has no pass or stage \"dead-cod\"; did you mean dead-code?"), "{message}");
}

#[test]
fn modules_are_drawn() {
    let folder = Folder::new();
    folder.write("chain.hlo", CHAIN);
    let dot = folder.xla("opt chain.hlo --passes fuse --to dot");
    assert!(dot.code == 0 && dot.out.starts_with("digraph \"chain\" {"), "{dot:?}");
    let html = folder.xla("convert chain.hlo --to html");
    assert!(html.code == 0 && html.out.starts_with("<!DOCTYPE html>"), "{html:?}");
    let fused = folder.xla("opt chain.hlo --passes fuse --to html -o page.html");
    assert_eq!((fused.code, fused.out.as_str()), (0, ""));
    assert!(std::fs::read_to_string(folder.path("page.html")).unwrap().contains("fusion"));
}

/// Bisects `DEAD` with two passes by a shell command.
fn bisected(command: &str) -> crate::support::Done {
    let folder = Folder::new();
    folder.write("dead module.hlo", DEAD);
    let passes = "dead-code,[simplify-tuples,dead-code]*";
    folder
        .xla_args(&["opt", "dead module.hlo", "--platform", "interpreter", "--passes", passes, "--bisect", command], "")
}

#[test]
fn the_rewrite_that_breaks_a_program_is_found() {
    let done = bisected("grep -q get-tuple-element {module}");
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    insta::assert_snapshot!(done.out);
    // A signal counts as a failure, as an exit code does.
    let done = bisected("grep -q unused {module} || kill -9 $$");
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert!(
        done.out.starts_with("custom.group.simplify-tuples breaks the program (pass 2, by rewrite 1"),
        "{}",
        done.out
    );
    assert!(done.out.contains("-  %unused = "), "{}", done.out);
}

#[test]
fn bisection_says_when_there_is_nothing_to_find() {
    for (command, code, message) in [
        ("false {module}", 2, "the command fails on the program as it is"),
        ("true {module}", 2, "the command succeeds after all passes"),
        ("true", 2, "the command \"true\" has no {module}"),
        ("exit 125 {module}", 1, "the program before all passes cannot be judged"),
        ("no-such-command {module}", 1, "the shell cannot run \"no-such-command "),
    ] {
        let done = bisected(command);
        assert_eq!((done.code, done.out.as_str()), (code, ""), "{command}: {done:?}");
        assert!(done.err.starts_with(&format!("error: {message}")), "{command}: {done:?}");
    }
}

#[test]
fn passes_are_listed() {
    let done = Folder::new().xla("opt --list-passes --platform interpreter");
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert!(done.out.contains("\n  dead-code ") && done.out.contains("no pipeline of its own"), "{}", done.out);
}

#[test]
fn passes_are_described_on_a_page() {
    let done = Folder::new().xla("opt --list-passes=markdown");
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert_eq!(done.out, include_str!("../../../docs/src/internals/pass-reference.md"));
}

#[test]
fn rewrites_are_counted_by_pass_and_rule() {
    let folder = Folder::new();
    folder.write("dead.hlo", DEAD);
    let done = folder.xla("opt dead.hlo --passes [cse,tuple-simplifier,dce]* --statistics");
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    insta::assert_snapshot!(done.out, @r"
    pass                              runs  changes  rewrites
    simplify-tuples                      2        1         1
    rewrites: 1; passes that changed nothing: 2
    ");
    let json = folder.xla("opt dead.hlo --passes simplify-tuples,dead-code --statistics=json");
    let json: Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(json["passes"][0]["rewrites"]["simplify-tuples"], 1);
    assert_eq!(json["passes"][1]["pass"], "dead-code");
    let message = folder.fails(2, "opt dead.hlo --passes dce --statistics --explain");
    assert!(message.contains("--statistics"), "{message}");
}

#[test]
#[cfg(feature = "cpu")]
fn aliases_of_passes_are_accepted_by_until_and_without() {
    let folder = Folder::new();
    let opt = |options: &str| folder.xla(&format!("opt module.hlo --platform cpu {options}"));
    let (alias, name) = (opt("--until dce"), opt("--until dead-code"));
    assert!(alias.code == 0 && alias.out == name.out, "{alias:?}");
    let alias = opt("--without algsimp --statistics");
    assert!(alias.code == 0 && !alias.out.contains("simplify-algebra"), "{alias:?}");
}

#[test]
fn unknown_passes_are_told_which_there_are() {
    let folder = Folder::new();
    let message = folder.fails(2, "opt module.hlo --passes dead-cod");
    assert!(message.starts_with("unknown pass \"dead-cod\"; did you mean dead-code?; the passes are "), "{message}");
    let message = folder.fails(2, "opt module.hlo --passes [dead-code");
    assert!(message.contains("`[` has no matching `]`"), "{message}");
    let message = folder.fails(2, "opt module.hlo --platform interpreter");
    assert!(message.starts_with("platform interpreter has no passes of its own"), "{message}");
}

#[test]
#[cfg(feature = "cpu")]
fn a_pipeline_is_cut_short() {
    let folder = Folder::new();
    let whole = folder.xla("opt module.hlo --platform cpu");
    assert_eq!(whole.code, 0, "{whole:?}");
    let cut = folder.xla("opt module.hlo --platform cpu --until canonicalize");
    assert!(cut.code == 0 && cut.out.starts_with("HloModule sums") && cut.out != whole.out, "{cut:?}");
    let message = folder.fails(2, "opt module.hlo --platform cpu --until fusee");
    assert!(
        message.starts_with("the pipeline of platform cpu has no pass or stage \"fusee\"; did you mean fuse?; it has "),
        "{message}"
    );
    assert!(folder.xla("opt --list-passes --platform cpu").out.contains("Pipeline of platform cpu:\nstandard:\n"));
}

#[test]
fn stages_are_dumped() {
    let folder = Folder::new();
    let done = folder.xla("run module.hlo --platform interpreter --inputs-seed 0 --dump-to dumps");
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    let names = |folder: &Folder, dumps: &str| -> Vec<String> {
        let files = folder.path(dumps).read_dir().unwrap();
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
    };
    assert!(!names(&folder, "dumps").is_empty());
    if cfg!(feature = "cpu") {
        let done = folder.xla("run module.hlo --platform cpu --inputs-seed 0 --dump-to native");
        assert_eq!((done.code, done.err.as_str()), (0, ""));
        for name in ["sums.buffers.txt", "sums.memory.json", "sums.cost.txt", "sums.cost.json", "sums.thunks.txt"] {
            assert!(names(&folder, "native").iter().any(|n| n == name), "{name}");
        }
    }
    let blocked = folder.fails(1, "run module.hlo --platform interpreter --inputs-seed 0 --dump-to module.hlo");
    assert!(blocked.starts_with("cannot write module.hlo/"), "{blocked}");
}

#[test]
fn a_trace_is_json_with_a_span_for_each_step() {
    let folder = Folder::new();
    let done = folder.xla("run module.hlo --platform interpreter --inputs-seed 0 --trace trace.json");
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    let events: Vec<Value> = serde_json::from_slice(&std::fs::read(folder.path("trace.json")).unwrap()).unwrap();
    let complete = |name: &str| events.iter().find(|event| event["ph"] == "X" && event["name"] == name);
    for name in ["parse", "verify", "compile"] {
        let event = complete(name).unwrap_or_else(|| panic!("{name}: {events:?}"));
        assert!(event["ts"].as_f64().unwrap() >= 0.0 && event["dur"].as_f64().unwrap() >= 0.0 && event["tid"].is_u64());
    }
    assert_eq!(complete("compile").unwrap()["args"]["platform"], "interpreter");
    let refused = folder.fails(2, "platforms --trace no/such/folder.json");
    assert!(refused.starts_with("cannot write no/such/folder.json"), "{refused}");
}

#[test]
fn verbose_runs_log_to_standard_error() {
    let done = Folder::new().xla("run module.hlo --platform interpreter --inputs-seed 0 -vv");
    assert!(done.code == 0 && done.out.starts_with("out0: "), "{done:?}");
    // Closed spans, with their durations.
    assert!(done.err.contains("compile{module=\"sums\" platform=interpreter}: close time.busy="), "{done:?}");
}
