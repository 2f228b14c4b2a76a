//! Tests of the cost analysis against costs computed by hand, and of the memory peak.

use xla_hlo::text::parse_module;
use xla_passes::analysis::cost::{Cost, CostAnalysis, analyze};
use xla_passes::analysis::{call_graph, dataflow, json, memory, reachability};
use xla_passes::buffers::{BufferOptions, assign_buffers};
use xla_passes::{PassContext, TargetProfile, stages};

fn analyzed(text: &str) -> CostAnalysis {
    analyze(&parse_module(text).expect("the test's module"))
}

/// Returns the cost of a program with one relevant instruction.
fn cost(body: &str) -> Cost {
    let add = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }";
    let less = "less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = pred[] compare(a, b), direction=LT }";
    analyzed(&format!("{add}\n{less}\nENTRY main {{ {body} }}")).total
}

fn work(body: &str) -> (u64, u64) {
    let cost = cost(body);
    (cost.flops, cost.transcendentals)
}

fn bytes(body: &str) -> (u64, u64) {
    let cost = cost(body);
    (cost.bytes_read, cost.bytes_written)
}

const X: &str = "x = f32[4,8] parameter(0)";

#[test]
fn elementwise_operations_count_elements() {
    assert_eq!(work(&format!("{X} ROOT r = f32[4,8] add(x, x)")), (32, 0));
    assert_eq!(work(&format!("{X} ROOT r = f32[4,8] exponential(x)")), (0, 32));
    assert_eq!(work(&format!("{X} ROOT r = f32[4,8] power(x, x)")), (0, 32));
    assert_eq!(work(&format!("{X} ROOT r = f32[4,8] clamp(x, x, x)")), (64, 0));
    assert_eq!(work(&format!("{X} ROOT r = f32[8,4] transpose(x), dimensions={{1,0}}")), (0, 0));
    assert_eq!(work("x = f32[0,8] parameter(0) ROOT r = f32[0,8] negate(x)"), (0, 0));
}

#[test]
fn contractions_count_multiplications_and_additions() {
    let y = "y = f32[8,16] parameter(1)";
    let dims = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
    assert_eq!(work(&format!("{X} {y} ROOT r = f32[4,16] dot(x, y), {dims}")), (2 * 4 * 8 * 16, 0));
    // Three taps over five elements with padding of one: two taps at each end.
    let image = "x = f32[1,5,1] parameter(0) k = f32[3,1,1] parameter(1)";
    let padded = "window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f";
    assert_eq!(work(&format!("{image} ROOT r = f32[1,5,1] convolution(x, k), {padded}")), (2 * 13, 0));
    // Two groups: each result channel depends on one of two input channels.
    let grouped = "x = f32[1,5,2] parameter(0) k = f32[1,1,2] parameter(1)
         ROOT r = f32[1,5,2] convolution(x, k), window={size=1}, dim_labels=b0f_0io->b0f, feature_group_count=2";
    assert_eq!(work(grouped), (2 * 5 * 2, 0));
}

#[test]
fn reduces_count_their_combiner() {
    let zero = "z = f32[] constant(0)";
    assert_eq!(work(&format!("{X} {zero} ROOT r = f32[4] reduce(x, z), dimensions={{1}}, to_apply=add")), (28, 0));
    let window = "window={size=1x3}, to_apply=add";
    assert_eq!(work(&format!("{X} {zero} ROOT r = f32[4,6] reduce-window(x, z), {window}")), (48, 0));
    assert_eq!(work(&format!("{X} ROOT r = f32[4,8] sort(x), dimensions={{1}}, to_apply=less")), (96, 0));
    assert_eq!(work(&format!("{X} ROOT r = f32[4,8] map(x, x), dimensions={{0,1}}, to_apply=add")), (32, 0));
}

#[test]
fn transforms_and_decompositions_follow_the_textbooks() {
    assert_eq!(work("x = c64[2,8] parameter(0) ROOT r = c64[2,8] fft(x), fft_type=FFT, fft_length={8}"), (240, 0));
    assert_eq!(work("x = f32[2,8] parameter(0) ROOT r = c64[2,5] fft(x), fft_type=RFFT, fft_length={8}"), (120, 0));
    assert_eq!(work("x = f32[6,6] parameter(0) ROOT r = f32[6,6] cholesky(x), lower=true"), (72, 0));
}

#[test]
fn bytes_are_those_that_are_touched() {
    assert_eq!(bytes(&format!("{X} ROOT r = f32[4,8] add(x, x)")), (256, 128));
    assert_eq!(bytes(&format!("{X} ROOT r = f32[1,8] slice(x), slice={{[0:1],[0:8]}}")), (32, 32));
    let at = "i = s32[] parameter(1)";
    assert_eq!(
        bytes(&format!("{X} {at} ROOT r = f32[1,8] dynamic-slice(x, i, i), dynamic_slice_sizes={{1,8}}")),
        (32 + 8, 32)
    );
    let update = "u = f32[1,8] parameter(2)";
    assert_eq!(bytes(&format!("{X} {at} {update} ROOT r = f32[4,8] dynamic-update-slice(x, u, i, i)")), (32 + 8, 32));
    assert_eq!(bytes(&format!("{X} ROOT r = f32[32] reshape(x)")), (0, 0));
    assert_eq!(bytes("ROOT r = f32[32] iota(), iota_dimension=0"), (0, 128));
}

const LOOP: &str = include_str!("programs/loop.hlo");

#[test]
fn loops_count_as_often_as_they_run() {
    let analysis = analyzed(&LOOP.replace("BOUND", "10"));
    // Each iteration: the counter (4 + 4 bytes in, 4 out), the kernel (16 of 4096 bytes and the counter in, 16 out),
    // the condition (4 + 4 in, 1 out).
    let total =
        Cost { flops: 20, transcendentals: 40, bytes_read: 10 * (8 + 20 + 8), bytes_written: 10 * (4 + 16 + 1) };
    assert_eq!(analysis.total, total);
    assert!(analysis.unknown_loops.is_empty());
    insta::assert_snapshot!(format!("{analysis}\n{}", json(&analysis)));
}

#[test]
fn loops_that_nobody_can_count_are_named() {
    let text = LOOP.replace("n = s32[] constant(BOUND)", "n = s32[] negate(i)");
    let analysis = analyzed(&text);
    assert_eq!(analysis.unknown_loops, ["loop"]);
    assert_eq!((analysis.total.transcendentals, analysis.total.flops), (4, 3));
}

#[test]
fn numbers_beyond_all_bounds_stay_at_the_bound() {
    let dims = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
    let dot = |i: usize| format!("d{} = f32[1000000,1000000] dot(d{i}, d0), {dims}", i + 1);
    let dots: String = (0..10).map(|i| dot(i) + " ").collect();
    let (flops, _) = work(&format!("d0 = f32[1000000,1000000] parameter(0) {dots} ROOT r = f32[] constant(0)"));
    assert_eq!(flops, u64::MAX);
}

#[test]
fn the_peak_has_makers() {
    let text = include_str!("programs/the_peak_has_makers.hlo");
    let profile = TargetProfile::generic();
    let mut module = parse_module(text).expect("the test's module");
    stages::standard(&profile).run(&mut module, &PassContext::new(&profile)).expect("it runs");
    let assignment = assign_buffers(&module, &BufferOptions::default()).expect("a scheduled module");
    let report = memory::report(&module, &assignment);
    assert_eq!((report.argument_bytes, report.output_bytes, report.temp_bytes), (16384, 16384, 32768));
    let makers: Vec<(&str, &str)> =
        report.peak.makers.iter().map(|m| (m.written_by.as_str(), m.last_read_by.as_str())).collect();
    assert_eq!(makers, [("%a", "%c"), ("%b", "%c")]);
    insta::assert_snapshot!(format!("{report}\n{}", json(&report)));
}

/// Loop whose state contains a doubled value, an invariant one, and a counter.
const STATE: &str = include_str!("programs/state.hlo");

#[test]
fn the_call_graph_says_who_calls_whom() {
    let module = parse_module(STATE).expect("the test's module");
    let graph = call_graph::analyze(&module);
    assert!(graph.is_flat);
    let node = |name: &str| graph.node(module.find(name).expect("a computation")).expect("its node");
    assert_eq!((node("add").call_count, node("add").runs_as), (2, call_graph::RunAs::Embedded));
    assert_eq!((node("body").depth, node("body").callers.clone()), (Some(1), vec![module.entry_id()]));
    assert_eq!((node("unused").depth, node("unused").runs_as), (None, call_graph::RunAs::Never));
    insta::assert_snapshot!("call_graph", format!("{graph}\n{}", json(&graph)));
}

#[test]
fn a_loop_s_body_called_twice_makes_the_call_graph_not_flat() {
    let twice = STATE
        .replace("  e = f32[4]", "  v = (s32[], f32[4], f32[4]) while(w), condition=less, body=body\n  e = f32[4]");
    let module = parse_module(&twice).expect("the test's module");
    assert!(!call_graph::analyze(&module).is_flat);
    let error = dataflow::analyze(&module).expect_err("dataflow wants one caller").to_string();
    assert!(error.contains("flatten the call graph first"), "{error}");
}

#[test]
fn dataflow_says_what_leaves_hold() {
    let module = parse_module(STATE).expect("the test's module");
    let flow = dataflow::analyze(&module).expect("it is flat");
    let body = module.find("body").expect("the body");
    let by_instruction = flow.by_instruction();
    let leaves = |name: &str| by_instruction[body][&module[body].find(name).expect("an instruction")].to_vec();
    let entry = module.entry_id();
    // An element that the loop never changes is its initial value.
    let y = by_instruction[entry][&module.entry().find("y").expect("an instruction")];
    assert_eq!(leaves("fixed"), y);
    let [x] = leaves("x")[..] else { panic!("one leaf") };
    assert_eq!(flow.values[x].made_by, dataflow::Maker::Join);
    insta::assert_snapshot!("dataflow", format!("{flow}\n{}", json(&flow)));
}

#[test]
fn chains_say_what_waits_for_what() {
    let module = parse_module(STATE).expect("the test's module");
    let entry = module.entry();
    let reachability = reachability::Reachability::of(entry);
    let id = |name: &str| entry.find(name).expect("an instruction");
    assert!(reachability.needs(id("s"), id("y")) && !reachability.needs(id("q"), id("y")));
    assert!(reachability.are_independent(id("s"), id("q")));
    let chains = reachability::chains(&module);
    insta::assert_snapshot!("chains", format!("{chains}\n{}", json(&chains)));
}
