//! Tests of loops with small bodies, which are one kernel, and of loops that launch their bodies.

use xla_hlo::VerifiedModule;
use xla_hlo::text::parse_module;
use xla_service::thunks::{Thunk, ThunkKind};
use xla_service::{Client, CompileOptions, LoadedExecutable, PlatformRegistry};

use super::agrees;

/// Program with one loop.
struct Loop<'a> {
    /// Types of the state's elements `s0`, `s1`, ...
    state: &'a [&'a str],
    /// Instructions of the condition, which reads elements of the state.
    condition: &'a str,
    /// Instructions of the body, which reads elements of the state; the next ones are `n0`, `n1`, ...
    body: &'a str,
    /// Instructions of the entry; the initial state is `i0`, `i1`, ...
    entry: &'a str,
}

impl Loop<'_> {
    /// Returns the program, whose results are the final state.
    fn text(&self) -> String {
        let tuple = format!("({})", self.state.join(", "));
        let elements = |of: &str| -> String {
            let element = |(i, ty)| format!("  s{i} = {ty} get-tuple-element({of}), index={i}\n");
            self.state.iter().enumerate().map(element).collect()
        };
        let names = |letter: &str| -> String {
            (0..self.state.len()).map(|i| format!("{letter}{i}")).collect::<Vec<_>>().join(", ")
        };
        format!(
            "HloModule loop
            add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }}
            max {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] maximum(a, b) }}
            either {{ a = pred[] parameter(0) b = pred[] parameter(1) ROOT r = pred[] or(a, b) }}
            more {{ s = {tuple} parameter(0)\n{}\n{} }}
            step {{ s = {tuple} parameter(0)\n{}\n{}\n ROOT next = {tuple} tuple({}) }}
            ENTRY main {{
              {}
              first = {tuple} tuple({})
              last = {tuple} while(first), condition=more, body=step
              {}
              ROOT r = {tuple} tuple({})
            }}",
            elements("s"),
            self.condition,
            elements("s"),
            self.body,
            names("n"),
            self.entry,
            names("i"),
            elements("last"),
            names("s"),
        )
    }
}

/// Condition that counts element 0 up to element 1, whose value is unknown at compile time.
const BELOW: &str = "ROOT more = pred[] compare(s0, s1), direction=LT";
/// Increments the counter, and copies the bound.
const COUNT: &str = "one = s32[] constant(1)\n n0 = s32[] add(s0, one)\n n1 = s32[] copy(s1)\n";
/// Returns a trip count that is unknown at compile time, from a parameter one of whose elements is 0.
fn rounds(count: usize) -> String {
    format!(
        "p = s32[40] parameter(0)
        square = s32[40] multiply(p, p)
        none = s32[] constant(0)
        at = s32[1] slice(square), slice={{[16:17]}}
        scalar = s32[] reshape(at)
        same = s32[] minimum(scalar, none)
        count = s32[] constant({count})
        i0 = s32[] constant(0)
        i1 = s32[] add(count, same)\n"
    )
}

/// Compiles a program for the emulated GPU.
fn compiled(text: &str) -> LoadedExecutable {
    let mut registry = PlatformRegistry::new();
    registry.register(backend_gpu_nvptx::emulated_platform());
    let client = Client::new(&registry, backend_gpu_nvptx::EMULATED_NAME).unwrap();
    let module = VerifiedModule::new(parse_module(text).unwrap_or_else(|e| panic!("{e}\n{text}"))).unwrap();
    client.compile(&module, &CompileOptions::default()).unwrap()
}

fn thunks(text: &str) -> String {
    compiled(text).thunks().unwrap().to_string()
}

/// Whether the loop is a kernel, and no thunk is launched from a loop's body.
fn is_one_kernel(text: &str) -> bool {
    let program = compiled(text);
    let thunks: Vec<&Thunk> = program.thunks().unwrap().walk().collect();
    let is_empty = |thunk: &&Thunk| match &thunk.kind {
        ThunkKind::While { body, .. } => body.thunks.is_empty(),
        _ => true,
    };
    let is_loop = |thunk: &&Thunk| thunk.name.starts_with("last") && matches!(thunk.kind, ThunkKind::Kernel(_));
    thunks.iter().all(is_empty) && thunks.iter().any(is_loop)
}

fn agrees_as_one(program: &Loop<'_>) {
    let text = program.text();
    agrees(&text);
    assert!(is_one_kernel(&text), "{text}\n{}", thunks(&text));
}

#[test]
fn a_counted_loop_is_a_launch_and_one_with_a_test_is_launched_for_many_rounds() {
    let counted = Loop {
        state: &["s32[]", "u32[4]", "u32[4]"],
        condition: "n = s32[] constant(1000)\n ROOT more = pred[] compare(s0, n), direction=LT",
        body: "one = s32[] constant(1)\n n0 = s32[] add(s0, one)\n n1 = u32[4] add(s1, s2)\n n2 = u32[4] copy(s1)",
        entry: "i0 = s32[] constant(0)\n i1 = u32[4] parameter(0)\n i2 = u32[4] parameter(1)",
    };
    agrees_as_one(&counted);
    insta::assert_snapshot!("counted-loop", thunks(&counted.text()));
    let entry = rounds(9) + "i2 = u64[5] parameter(1)";
    let tested = Loop {
        state: &["s32[]", "s32[]", "u64[5]"],
        condition: BELOW,
        body: &format!(
            "{COUNT} a = u64[] constant(6364136223846793005)\n b = u64[] constant(1442695040888963407)
            as = u64[5] broadcast(a), dimensions={{}}\n bs = u64[5] broadcast(b), dimensions={{}}
            m = u64[5] multiply(s2, as)\n n2 = u64[5] add(m, bs)"
        ),
        entry: &entry,
    };
    agrees_as_one(&tested);
    insta::assert_snapshot!("tested-loop", thunks(&tested.text()));
}

#[test]
fn loops_of_no_round_of_one_and_of_many_launches() {
    for count in [0, 1, 2, 20_000, 40_000] {
        let entry = rounds(count) + "i2 = s32[] constant(7)";
        agrees_as_one(&Loop {
            state: &["s32[]", "s32[]", "s32[]"],
            condition: BELOW,
            body: &format!("{COUNT} k = s32[] constant(1664525)\n m = s32[] multiply(s2, k)\n n2 = s32[] add(m, s0)"),
            entry: &entry,
        });
    }
    for count in [500, 20_000] {
        agrees_as_one(&Loop {
            state: &["s32[]", "s32[2]"],
            condition: &format!("n = s32[] constant({count})\n ROOT more = pred[] compare(s0, n), direction=LT"),
            body: "one = s32[] constant(1)\n n0 = s32[] add(s0, one)
                r = s32[2] reverse(s1), dimensions={0}\n b = s32[2] broadcast(s0), dimensions={}
                n1 = s32[2] add(r, b)",
            entry: "i0 = s32[] constant(0)\n i1 = s32[2] parameter(0)",
        });
    }
}

#[test]
fn newton_iterations_until_they_converge() {
    // Each element is rounded as in the evaluator, so the trip count is equal.
    for size in [1, 31, 300, 1500] {
        let entry = format!(
            "x = f32[{size}] parameter(0)\n squares = f32[{size}] multiply(x, x)\n c = f32[] constant(0.5)
            cs = f32[{size}] broadcast(c), dimensions={{}}\n i1 = f32[{size}] add(squares, cs)
            one = f32[] constant(1)\n i2 = f32[{size}] broadcast(one), dimensions={{}}
            i0 = s32[] constant(0)"
        );
        let vector = format!("f32[{size}]");
        let state = ["s32[]", &vector, &vector];
        let program = Loop {
            state: &state,
            condition: &format!(
                "y = {vector} multiply(s2, s2)\n d = {vector} subtract(y, s1)\n e = {vector} abs(d)
                scale = f32[] constant(1e-5)\n scales = {vector} broadcast(scale), dimensions={{}}
                limit = {vector} multiply(s1, scales)
                far = pred[{size}] compare(e, limit), direction=GT
                no = pred[] constant(false)
                any = pred[] reduce(far, no), dimensions={{0}}, to_apply=either
                n = s32[] constant(100)\n soon = pred[] compare(s0, n), direction=LT
                ROOT more = pred[] and(any, soon)"
            ),
            body: &format!(
                "one = s32[] constant(1)\n n0 = s32[] add(s0, one)\n n1 = {vector} copy(s1)
                q = {vector} divide(s1, s2)\n sum = {vector} add(s2, q)\n h = f32[] constant(0.5)
                hs = {vector} broadcast(h), dimensions={{}}\n n2 = {vector} multiply(sum, hs)"
            ),
            entry: &entry,
        };
        agrees_as_one(&program);
    }
}

#[test]
fn a_recurrent_network_that_reads_a_row_and_writes_a_row_in_each_step() {
    let text = Loop {
        state: &["s32[]", "s32[]", "f32[16]", "f32[9,8]", "f32[9,16]", "f32[16,16]", "f32[8,16]"],
        condition: BELOW,
        body: &format!(
            "{COUNT} zero = s32[] constant(0)
            row = f32[1,8] dynamic-slice(s3, s0, zero), dynamic_slice_sizes={{1,8}}
            x = f32[8] reshape(row)
            a = f32[16] dot(s2, s5), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
            b = f32[16] dot(x, s6), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
            c = f32[16] add(a, b)
            n2 = f32[16] tanh(c)
            n3 = f32[9,8] copy(s3)
            line = f32[1,16] reshape(n2)
            n4 = f32[9,16] dynamic-update-slice(s4, line, s0, zero)
            n5 = f32[16,16] copy(s5)
            n6 = f32[8,16] copy(s6)"
        ),
        entry: &format!(
            "{} i2 = f32[16] parameter(1)\n i3 = f32[9,8] parameter(2)\n i4 = f32[9,16] parameter(3)
            i5 = f32[16,16] parameter(4)\n i6 = f32[8,16] parameter(5)",
            rounds(9)
        ),
    };
    agrees_as_one(&text);
    insta::assert_snapshot!("recurrent-network", thunks(&text.text()));
}

#[test]
fn states_of_every_element_type() {
    let types = [
        ("s4", "add"),
        ("u4", "add"),
        ("s8", "multiply"),
        ("u8", "add"),
        ("s16", "add"),
        ("u16", "multiply"),
        ("s32", "subtract"),
        ("u32", "add"),
        ("s64", "multiply"),
        ("u64", "add"),
        ("f8e5m2", "add"),
        ("f8e4m3fn", "maximum"),
        ("f16", "add"),
        ("bf16", "add"),
        ("f32", "multiply"),
        ("f64", "subtract"),
        ("c64", "add"),
        ("c128", "multiply"),
        ("pred", "xor"),
    ];
    for (ty, op) in types {
        let (five, scalar, empty) = (format!("{ty}[5]"), format!("{ty}[]"), format!("{ty}[3,0]"));
        agrees_as_one(&Loop {
            state: &["s32[]", "s32[]", &five, &scalar, &empty, &five],
            condition: BELOW,
            body: &format!(
                "{COUNT} all = {five} broadcast(s3), dimensions={{}}\n n2 = {five} {op}(s5, all)
                n3 = {scalar} copy(s3)\n n4 = {empty} {op}(s4, s4)\n n5 = {five} copy(s2)"
            ),
            entry: &format!(
                "{} i2 = {five} parameter(1)\n x = {five} parameter(2)\n one = {ty}[1] slice(x), slice={{[3:4]}}
                i3 = {scalar} reshape(one)\n i4 = {empty} parameter(3)\n i5 = {five} parameter(4)",
                rounds(3)
            ),
        });
    }
}

#[test]
fn what_is_no_number_ends_a_loop_or_goes_on() {
    for (direction, stays) in
        [("LT", "f32[] constant(nan)"), ("NE", "f32[] constant(nan)"), ("GE", "f32[] constant(-0)")]
    {
        agrees_as_one(&Loop {
            state: &["s32[]", "f32[]", "f32[3]"],
            condition: &format!(
                "n = s32[] constant(12)\n soon = pred[] compare(s0, n), direction=LT
                ten = f32[] constant(0)\n low = pred[] compare(s1, ten), direction={direction}
                ROOT more = pred[] and(soon, low)"
            ),
            body: &format!(
                "one = s32[] constant(1)\n n0 = s32[] add(s0, one)\n last = s32[] constant(5)
                is = pred[] compare(s0, last), direction=EQ\n bad = {stays}\n n1 = f32[] select(is, bad, s1)
                b = f32[3] broadcast(s1), dimensions={{}}\n n2 = f32[3] add(s2, b)"
            ),
            entry: "i0 = s32[] constant(0)\n i1 = f32[] constant(-1)\n i2 = f32[3] parameter(0)",
        });
    }
}

#[test]
fn the_predicate_may_be_an_element_of_the_state() {
    agrees_as_one(&Loop {
        state: &["pred[]", "s32[]", "f32[70]"],
        condition: "ROOT more = pred[] copy(s0)",
        body: "limit = s32[] constant(11)\n one = s32[] constant(1)\n n1 = s32[] add(s1, one)
            n0 = pred[] compare(n1, limit), direction=LT\n n2 = f32[70] cosine(s2)",
        entry: "p = pred[3] parameter(0)\n no = pred[3] not(p)\n either = pred[3] or(p, no)
            at = pred[1] slice(either), slice={[0:1]}\n i0 = pred[] reshape(at)
            i1 = s32[] constant(0)\n i2 = f32[70] parameter(1)",
    });
}

#[test]
fn steps_that_move_elements() {
    let text = Loop {
        state: &["s32[]", "s32[]", "f32[6,5]", "f32[2000]", "f32[400000]", "s32[7]"],
        condition: BELOW,
        body: &format!(
            "{COUNT} t = f32[5,6] transpose(s2), dimensions={{1,0}}
            flat = f32[30] reshape(t)
            head = f32[3] slice(flat), slice={{[2:17:5]}}
            zero = f32[] constant(0.25)
            padded = f32[33] pad(flat, zero), padding=1_2
            joined = f32[36] concatenate(padded, head), dimensions={{0}}
            some = f32[30] slice(joined), slice={{[4:34]}}
            back = f32[6,5] reshape(some)
            numbers = f32[6,5] iota(), iota_dimension=1
            n2 = f32[6,5] add(back, numbers)
            n3 = f32[2000] reverse(s3), dimensions={{0}}
            n4 = f32[400000] copy(s4)
            places = s32[7,1] reshape(s5)
            found = f32[7] gather(s4, places), offset_dims={{}}, collapsed_slice_dims={{0}}, start_index_map={{0}}, index_vector_dim=1, slice_sizes={{1}}
            whole = s32[7] convert(found)
            n5 = s32[7] add(s5, whole)"
        ),
        entry: &format!(
            "{} i2 = f32[6,5] parameter(1)\n i3 = f32[2000] parameter(2)\n i4 = f32[400000] parameter(3)
            i5 = s32[7] parameter(4)",
            rounds(5)
        ),
    };
    agrees_as_one(&text);
}

#[test]
fn rows_that_are_normalised_in_each_step() {
    agrees_as_one(&Loop {
        state: &["s32[]", "s32[]", "f32[4,12]"],
        condition: BELOW,
        body: &format!(
            "{COUNT} low = f32[] constant(-inf)\n most = f32[4] reduce(s2, low), dimensions={{1}}, to_apply=max
            mosts = f32[4,12] broadcast(most), dimensions={{0}}\n d = f32[4,12] subtract(s2, mosts)
            e = f32[4,12] exponential(d)\n zero = f32[] constant(0)
            sum = f32[4] reduce(e, zero), dimensions={{1}}, to_apply=add
            sums = f32[4,12] broadcast(sum), dimensions={{0}}\n n2 = f32[4,12] divide(e, sums)"
        ),
        entry: &(rounds(4) + "i2 = f32[4,12] parameter(1)"),
    });
}

#[test]
fn rows_that_warps_or_all_threads_reduce() {
    for (rows, columns) in [(1, 3000), (3, 1200), (40, 90), (100, 6), (2, 33)] {
        let (matrix, row) = (format!("f32[{rows},{columns}]"), format!("f32[{rows}]"));
        agrees_as_one(&Loop {
            state: &["s32[]", "s32[]", &matrix, &row, "f32[]"],
            condition: BELOW,
            body: &format!(
                "{COUNT} low = f32[] constant(-inf)
                n3 = {row} reduce(s2, low), dimensions={{1}}, to_apply=max
                mosts = {matrix} broadcast(n3), dimensions={{0}}\n half = f32[] constant(0.5)
                halves = {matrix} broadcast(half), dimensions={{}}\n half_mosts = {matrix} multiply(mosts, halves)
                n2 = {matrix} subtract(s2, half_mosts)\n zero = f32[] constant(0)
                n4 = f32[] reduce(n2, zero), dimensions={{0,1}}, to_apply=add"
            ),
            entry: &format!(
                "{} i2 = {matrix} parameter(1)\n i3 = {row} parameter(2)\n i4 = f32[] constant(3)",
                rounds(4)
            ),
        });
    }
}

#[test]
fn large_steps_are_launched() {
    let text = |size: usize, step: &str| {
        let vector = format!("f32[{size}]");
        Loop {
            state: &["s32[]", "s32[]", &vector],
            condition: BELOW,
            body: &format!("{COUNT} {}", step.replace("$v", &vector)),
            entry: &(rounds(3) + &format!("i2 = {vector} parameter(1)")),
        }
        .text()
    };
    let whole = "n2 = $v cosine(s2)";
    // Each thread would reduce a long column.
    let columns = "zero = f32[] constant(0)\n wide = f32[2000,64] broadcast(s2), dimensions={1}
        k = f32[2000,64] iota(), iota_dimension=0\n low = f32[2000,64] minimum(wide, k)
        sum = f32[64] reduce(low, zero), dimensions={0}, to_apply=add\n part = f32[] constant(0.00048828125)
        parts = f32[64] broadcast(part), dimensions={}\n n2 = $v multiply(sum, parts)";
    let sorted = "n2 = $v sort(s2), dimensions={0}, to_apply=less";
    for (size, step) in [(100_000, whole), (64, columns), (64, sorted)] {
        let less = "less { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT }
            more {";
        let text = text(size, step).replace("more {", less);
        agrees(&text);
        assert!(!is_one_kernel(&text), "{text}\n{}", thunks(&text));
    }
}
