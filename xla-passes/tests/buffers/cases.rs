//! Tests with programs whose copies, buffers and in-place operands are known.

use xla_hlo::text::parse_module;
use xla_hlo::{Error, Module, ParameterLeaf};
use xla_passes::analysis::alias::may_share;
use xla_passes::buffers::{AllocationKind, BufferOptions, assign_buffers};
use xla_passes::schedule::insert_copies::insert_copies;
use xla_passes::schedule::schedule_module;

use super::memory::{self, Outcome};

fn check(text: &str) -> Outcome {
    let module = parse_module(text).expect("it parses");
    let arguments = memory::arguments(&module);
    memory::check(module, &arguments, 100_000)
}

/// Loop that writes row `i` of `ys` in each iteration and carries a sum.
const SCAN: &str = include_str!("programs/scan.hlo");

#[test]
fn a_scan_writes_into_the_output() {
    let outcome = check(SCAN);
    assert_eq!(outcome.copies, 1, "the counter's start is a constant, nothing else is copied");
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("buffers_scan", outcome.buffers);
    });
}

#[test]
fn a_chain_of_elementwise_operations_takes_one_buffer() {
    let outcome = check(include_str!("programs/a_chain_of_elementwise_operations_takes_one_buffer.hlo"));
    assert_eq!(outcome.buffers.temp_bytes(), 0, "everything happens in the output");
    assert_eq!(outcome.buffers.allocations().len(), 2);
}

/// Five dots, each of the previous one.
const CHAIN: &str = include_str!("programs/chain.hlo");

#[test]
fn temporaries_are_reused_when_they_are_over() {
    let outcome = check(CHAIN);
    assert_eq!(outcome.buffers.temp_bytes(), 256, "the second place is that of the result");
    assert_eq!(outcome.buffers.peak().bytes, 256);
}

#[test]
fn memory_that_suffices_exactly_is_enough_and_places_are_given_again_at_once_before_it_does_not() {
    let module = check(CHAIN).module;
    let needs = |reuse_after: u32, memory_bytes: Option<u64>| {
        let options = BufferOptions { reuse_after, memory_bytes, ..BufferOptions::default() };
        assign_buffers(&module, &options).map(|buffers| buffers.total_bytes() as u64)
    };
    let (least, spacious) = (needs(0, None).unwrap(), needs(4, None).unwrap());
    assert!(least < spacious, "{least} {spacious}");
    assert_eq!(needs(0, Some(least)).unwrap(), least);
    assert_eq!(needs(4, Some(spacious)).unwrap(), spacious);
    assert_eq!(needs(4, Some(spacious - 1)).unwrap(), least);
    assert_eq!(needs(4, Some(least)).unwrap(), least);
    for reuse_after in [0, 4] {
        let error = needs(reuse_after, Some(least - 1)).unwrap_err();
        assert!(matches!(&error, Error::ResourceExhausted(_)), "{error}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(error, @"module module_main needs 768 bytes of memory, the limit is 767: 256 for arguments, 0 for constants, 256 for results, 256 temporary; most of these at dot %b in main: 256 B of %b f32[8,8] in main");
        }
    }
}

#[test]
fn of_equal_peaks_the_first_is_named() {
    let outcome = check(include_str!("programs/equal_peaks.hlo"));
    let (peak, values) = (outcome.buffers.peak(), outcome.buffers.values());
    let (computation, step) = outcome.buffers.steps()[peak.step];
    assert_eq!((outcome.module[computation][step].name(), peak.bytes), ("m", 3 * 256));
    let names: Vec<&str> = peak.values.iter().map(|&value| values[value].name.as_str()).collect();
    assert_eq!(names, ["%a f32[8,8] in main", "%b f32[8,8] in main", "%m f32[8,8] in main"]);
}

#[test]
fn results_lend_all_their_bytes() {
    let outcome = check(include_str!("programs/results_lend_all_their_bytes.hlo"));
    assert_eq!(outcome.buffers.temp_bytes(), 196, "196 bytes have room where a result of 196 bytes will be");
}

#[test]
fn donors_take_outputs_of_their_size() {
    let outcome = check(
        "HloModule donor, buffer_donor={ (0, {}) }
         ENTRY main {
           x = f32[32] parameter(0)
           y = f32[32] parameter(1)
           ROOT z = f32[32] add(x, y)
         }",
    );
    let leaf = ParameterLeaf { parameter: 0, path: Vec::new() };
    assert_eq!(outcome.buffers.output_slices()[0].parameter, Some(leaf.clone()));
    let allocation = outcome.buffers.parameter_allocation(&leaf).expect("the parameter has memory");
    let AllocationKind::Parameter { output: Some(path), written: true, .. } = &allocation.kind else {
        panic!("the parameter's memory is not written as a result: {:?}", allocation.kind);
    };
    assert!(path.is_empty());
}

/// Two scatters of two arrays each, in a loop; the arrays are read before their update, but not after it.
const SCATTERS: &str = include_str!("programs/scatters.hlo");

#[test]
fn scatters_write_into_the_output() {
    let outcome = check(SCATTERS);
    assert_eq!(outcome.copies, 1, "the counter's start is a constant, nothing else is copied");
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("buffers_scatters", outcome.buffers);
    });
}

#[test]
fn scatters_run_after_other_readers_of_what_they_update() {
    let text = |reader: &str| {
        format!(
            "set {{ a = f32[] parameter(0) ROOT b = f32[] parameter(1) }}
             ENTRY main {{
               p = f32[64] parameter(0)
               where = s32[1,1] parameter(1)
               update = f32[1] parameter(2)
               x = f32[64] negate(p)
               y = f32[64] scatter(x, where, update), update_window_dims={{}}, inserted_window_dims={{0}},
                 scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=set
               z = f32[64] {reader}
               ROOT r = (f32[64], f32[64]) tuple(y, z)
             }}"
        )
    };
    let places = |text: &str| {
        let Outcome { module, buffers, .. } = check(text);
        let place =
            |name| buffers.slice(module.entry_id(), module.entry().find(name).expect("it is there"), &[]).unwrap();
        place("x") == place("y")
    };
    assert!(places(&text("reverse(x), dimensions={0}")), "the other reader runs before");
    assert!(!places(&text("add(x, y)")), "the other reader needs the result");
}

const NONE: [usize; 0] = [];

/// Returns the operands that the entry's root may overwrite.
fn shared_operands(text: &str) -> Vec<usize> {
    let module = parse_module(text).expect("it parses");
    let (entry, root) = (module.entry_id(), module.entry().root());
    let operands = 0..module.entry()[root].operands().len();
    operands.filter(|&i| may_share(&module, entry, root, &[], i, &[])).collect()
}

fn fused(parameters: &str, body: &str, root: &str, fusion: &str) -> String {
    format!(
        "fused {{ {parameters} {body} }} ENTRY main {{ {parameters} ROOT r = {root} fusion({fusion}), kind=kLoop, calls=fused }}"
    )
}

#[test]
fn elementwise_operations_may_share_operands_of_their_width() {
    let entry = |body: &str| shared_operands(&format!("ENTRY main {{ {body} }}"));
    let two = "x = f32[4,2] parameter(0) y = f32[4,2] parameter(1)";
    assert_eq!(entry(&format!("{two} ROOT r = f32[4,2] add(x, y)")), [0, 1]);
    assert_eq!(entry(&format!("{two} ROOT r = pred[4,2] compare(x, y), direction=LT")), NONE);
    assert_eq!(entry("x = f32[4] parameter(0) ROOT r = s32[4] convert(x)"), [0]);
    assert_eq!(entry("x = f32[4] parameter(0) ROOT r = f16[4] convert(x)"), NONE);
    assert_eq!(entry("x = f32[4,4] parameter(0) ROOT r = f32[4,4] transpose(x), dimensions={1,0}"), NONE);
    assert_eq!(entry("x = f32[4] parameter(0) ROOT r = f32[4] reverse(x), dimensions={0}"), NONE);
    let update = "x = f32[4] parameter(0) u = f32[4] parameter(1) i = s32[] parameter(2)";
    assert_eq!(entry(&format!("{update} ROOT r = f32[4] dynamic-update-slice(x, u, i)")), [0]);
    let select = "p = pred[] parameter(0) x = f32[4] parameter(1) y = f32[4] parameter(2)";
    assert_eq!(entry(&format!("{select} ROOT r = f32[4] select(p, x, y)")), [1, 2]);
    let square = "x = f32[4,4] parameter(0) y = f32[4,4] parameter(1)";
    let dims = "lhs_contracting_dims={1}, rhs_contracting_dims={0}";
    assert_eq!(entry(&format!("{square} ROOT r = f32[4,4] dot(x, y), {dims}")), NONE);
}

#[test]
fn fusions_may_share_what_they_read_where_they_write() {
    let two = "x = f32[4,4] parameter(0) y = f32[4,4] parameter(1)";
    let case = |body: &str| shared_operands(&fused(two, body, "f32[4,4]", "x, y"));
    assert_eq!(case("n = f32[4,4] negate(x) ROOT r = f32[4,4] add(n, y)"), [0, 1]);
    assert_eq!(case("t = f32[4,4] transpose(x), dimensions={1,0} ROOT r = f32[4,4] add(t, y)"), [1]);
    assert_eq!(case("t = f32[4,4] transpose(x), dimensions={1,0} ROOT r = f32[4,4] add(t, x)"), NONE);
    assert_eq!(
        case("a = f32[16] reshape(x) b = f32[16] negate(a) c = f32[4,4] reshape(b) ROOT r = f32[4,4] add(c, y)"),
        [0, 1]
    );
    assert_eq!(
        case(
            "i = s32[] constant(1) u = f32[1,4] slice(y), slice={[0:1],[0:4]} ROOT r = f32[4,4] dynamic-update-slice(x, u, i, i)"
        ),
        [0]
    );
}

#[test]
fn fused_updates_may_read_their_own_window_only() {
    let three = "x = f32[8] parameter(0) u = f32[2] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3)";
    let case = |start: &str| {
        let body = format!(
            "old = f32[2] dynamic-slice(x, {start}), dynamic_slice_sizes={{2}} new = f32[2] add(old, u)
             ROOT r = f32[8] dynamic-update-slice(x, new, i)"
        );
        shared_operands(&fused(three, &body, "f32[8]", "x, u, i, j"))
    };
    assert_eq!(case("i"), [0]);
    assert_eq!(case("j"), NONE);
}

/// Aliases of a fusion are requests: they are granted if the kernel reads each row before it stores that row.
#[test]
fn fusions_of_rows_may_share_what_they_read_in_their_own_rows() {
    let case = |body: &str, alias: &str| {
        let two = "x = f32[4,8] parameter(0) y = f32[4,8] parameter(1)";
        let sum = "sum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }";
        let fusion = fused(two, &format!("z = f32[] constant(0) {body}"), "f32[4,8]", "x, y");
        let kind = format!("kind=kInput, output_to_operand_aliasing={{{alias}}}");
        shared_operands(&format!("{sum} {}", fusion.replace("kind=kLoop", &kind)))
    };
    let (first, second) = ("{}: (0, {})", "{}: (1, {})");
    let rows = "t = f32[4] reduce(x, z), dimensions={1}, to_apply=sum b = f32[4,8] broadcast(t), dimensions={0}
        d = f32[4,8] divide(x, b)";
    assert_eq!(case(&format!("{rows} ROOT r = f32[4,8] add(d, y)"), first), [0, 1]);
    assert_eq!(case(&format!("{rows} ROOT r = f32[4,8] add(d, y)"), second), [1]);
    let other = "o = f32[4,8] reverse(x), dimensions={0}";
    assert_eq!(case(&format!("{rows} {other} ROOT r = f32[4,8] add(d, o)"), first), NONE);
    let columns = "t = f32[8] reduce(x, z), dimensions={0}, to_apply=sum b = f32[4,8] broadcast(t), dimensions={1}";
    assert_eq!(case(&format!("{columns} ROOT r = f32[4,8] divide(x, b)"), first), NONE);
    let both =
        "t = f32[4] reduce(x, z), dimensions={1}, to_apply=sum u = f32[] reduce(x, z), dimensions={0,1}, to_apply=sum
        b = f32[4,8] broadcast(t), dimensions={0} c = f32[4,8] broadcast(u), dimensions={}";
    assert_eq!(case(&format!("{both} d = f32[4,8] add(b, c) ROOT r = f32[4,8] divide(x, d)"), first), NONE);
}

/// Schedules the module without copy insertion.
fn scheduled(text: &str) -> Module {
    let mut module = parse_module(text).expect("it parses");
    schedule_module(&mut module).expect("it can be scheduled");
    module
}

#[test]
fn branches_that_may_run_side_by_side_share_no_memory() {
    let mut module = parse_module(include_str!("programs/branches_that_may_run_side_by_side_share_no_memory.hlo"))
        .expect("it parses");
    schedule_module(&mut module).expect("it can be scheduled");
    insert_copies(&mut module).expect("copies can be inserted");
    let temporary = |reuse_after, memory_bytes| {
        let options = BufferOptions { reuse_after, memory_bytes, ..BufferOptions::default() };
        assign_buffers(&module, &options).expect("it fits").temp_bytes()
    };
    let (tight, roomy) = (temporary(0, None), temporary(8, None));
    assert!(tight < roomy, "{tight} {roomy}");
    // `reuse_after` is ignored if memory does not suffice.
    let arguments_and_results = 4 * 256;
    assert_eq!(temporary(8, Some(arguments_and_results + tight as u64)), tight);
}

#[test]
fn what_is_missing_is_said() {
    let message = |e: Error| e.to_string();
    let no_copies = assign_buffers(&scheduled(SCAN), &BufferOptions::default()).map(|_| ()).map_err(message);
    assert_eq!(
        no_copies.unwrap_err(),
        "leaf 0 of the operand of %loop in main cannot share its buffer; insert copies before assigning buffers"
    );
    let mut module = parse_module(SCAN).expect("it parses");
    let no_schedule = insert_copies(&mut module).map_err(message).unwrap_err();
    assert!(no_schedule.contains("schedule the module before inserting copies"), "{no_schedule}");
    let odd = BufferOptions { alignment: 48, ..BufferOptions::default() };
    assert!(assign_buffers(&module, &odd).is_err());
    let mut shared = parse_module(include_str!("programs/what_is_missing_is_said.hlo")).expect("it parses");
    let not_flat = schedule_module(&mut shared).map_err(message).unwrap_err();
    assert_eq!(not_flat, "computation f is executed by several callers; flatten the call graph first");
}

/// Returns a chain of `n` loops, each nested in the previous one.
fn nest(n: usize) -> String {
    let mut text = String::new();
    let condition = |k: usize| {
        format!("c{k} {{ x = f32[] parameter(0) o = f32[] constant(1) ROOT p = pred[] compare(x, o), direction=LT }}\n")
    };
    text +=
        &format!("{}b0 {{ x = f32[] parameter(0) o = f32[] constant(1) ROOT y = f32[] add(x, o) }}\n", condition(0));
    for k in 1..n {
        text += &condition(k);
        text += &format!(
            "b{k} {{ x = f32[] parameter(0) ROOT y = f32[] while(x), condition=c{}, body=b{} }}\n",
            k - 1,
            k - 1
        );
    }
    text + &format!(
        "ENTRY main {{ x = f32[] parameter(0) ROOT y = f32[] while(x), condition=c{}, body=b{} }}",
        n - 1,
        n - 1
    )
}

#[test]
fn deep_nesting_is_an_error_not_a_crash() {
    assert_eq!(check(&nest(100)).copies, 1);
    let mut module = parse_module(&nest(1000)).expect("it parses");
    let error = schedule_module(&mut module).unwrap_err().to_string();
    assert!(error.contains("control flow is nested deeper than"), "{error}");
}

#[test]
fn long_programs_take_time_in_proportion() {
    // A thousand updates of one array, each read before the next one, with a few users of all of them at the end.
    let mut text = String::from(
        "ENTRY main {\n x0 = f32[1000] parameter(0)\n i = s32[] parameter(1)\n u = f32[1] parameter(2)\n y0 = f32[1000] negate(x0)\n",
    );
    let n = 1000;
    for k in 1..=n {
        text += &format!(" h{k} = f32[1] dynamic-slice(y{}, i), dynamic_slice_sizes={{1}}\n", k - 1);
        text += &format!(" s{k} = f32[1] add(h{k}, u)\n y{k} = f32[1000] dynamic-update-slice(y{}, s{k}, i)\n", k - 1);
    }
    text += &format!(" ROOT r = f32[1000] negate(y{n})\n}}");
    let outcome = check(&text);
    assert_eq!((outcome.copies, outcome.buffers.temp_bytes()), (0, 4), "all updates are in place");
}
