//! Tests of programs of one kernel without a contraction, against the evaluator at each x86 level that this machine
//! executes.
//!
//! `$E` in a program is an extent and `$T` an element type.

use crate::guarded::check;

/// Extents of less than a vector, of whole vectors, and of whole vectors and a part.
const EXTENTS: [usize; 4] = [1, 8, 19, 100];
/// Types of two, one and eight bytes, in addition to `f32`.
const TYPES: [&str; 3] = ["bf16", "u8", "s64"];

/// Compares the program of a body with the evaluator.
fn program(strategy: &str, body: &str, extent: usize, ty: &str) {
    let computation = |name: &str, root: &str| {
        format!("{name} {{ a = {ty}[] parameter(0) b = {ty}[] parameter(1) ROOT c = {root} }}\n")
    };
    let pairs = |name: &str, root: &str| {
        format!(
            "{name} {{ a = {ty}[] parameter(0) b = {ty}[] parameter(1) i = s32[] parameter(2) j = s32[] parameter(3)
             ROOT c = pred[] {root} }}\n"
        )
    };
    let body = body.replace("$2E", &(2 * extent).to_string()).replace("$9E", &(9 * extent).to_string());
    let body = body.replace("$E-1", &(extent - 1).to_string()).replace("$E+1", &(extent + 1).to_string());
    let body = body.replace("$E", &extent.to_string()).replace("$T", ty);
    let text = [
        "HloModule program\n",
        &computation("sum", &format!("{ty}[] add(a, b)")),
        &computation("most", &format!("{ty}[] maximum(a, b)")),
        &computation("keeps", "pred[] compare(a, b), direction=GE"),
        &format!(
            "both {{ a = {ty}[] parameter(0) b = {ty}[] parameter(1) c = {ty}[] parameter(2) d = {ty}[] parameter(3)
             e = {ty}[] add(a, c) f = {ty}[] maximum(b, d) ROOT g = ({ty}[], {ty}[]) tuple(e, f) }}\n"
        ),
        &computation("before", "pred[] compare(a, b), direction=LT"),
        &computation("after", "pred[] compare(a, b), direction=GT, type=$O"),
        &pairs("before_of_pair", "compare(a, b), direction=LT"),
        &pairs("after_of_pair", "compare(a, b), direction=GT, type=$O"),
        &format!("ENTRY main {{ {body} }}\n"),
    ];
    let order = match ty {
        ty if ty.starts_with('f') || ty.starts_with('b') => "TOTALORDER",
        "u8" => "UNSIGNED",
        _ => "SIGNED",
    };
    check(&text.concat().replace("$O", order), strategy);
}

/// Compares bodies with the evaluator at all extents and for all types.
fn programs(strategy: &str, bodies: &[&str]) {
    for body in bodies {
        EXTENTS.iter().for_each(|&extent| program(strategy, body, extent, "f32"));
        TYPES.iter().for_each(|ty| program(strategy, body, 19, ty));
    }
}

/// An array of one vector, which other lanes read reversed under a condition of whole rows.
#[test]
fn reversals_of_one_vector_in_a_concatenation() {
    for extent in [4, 8, 16] {
        let body = "x = $T[1,$E] parameter(0) y = $T[20,$E] parameter(1)
             s = $T[1,$E] reverse(x), dimensions={1} t = $T[20,$E] reverse(y), dimensions={0,1}
             ROOT r = $T[21,$E] concatenate(s, t), dimensions={0}";
        ["f32", "s64", "u8"].iter().for_each(|ty| program("vector-loops", body, extent, ty));
    }
}

/// An array of one vector, in rows of which all but one are padding: no row but this one may read it, and vectors of 64
/// bytes end at a page that cannot be accessed.
#[test]
fn reversals_of_one_vector_under_padding() {
    for extent in [4, 8, 16, 64] {
        for padding in ["39_0x0_0", "0_39x0_0", "20_19x0_0"] {
            let body = format!(
                "x = $T[1,$E] parameter(0) z = $T[] parameter(1) s = $T[1,$E] reverse(x), dimensions={{1}}
                 ROOT r = $T[40,$E] pad(s, z), padding={padding}"
            );
            ["f32", "s64", "u8"].iter().for_each(|ty| program("vector-loops", &body, extent, ty));
        }
    }
}

#[test]
fn reversals_and_slices() {
    programs(
        "vector-loops",
        &[
            "x = $T[3,$E] parameter(0) ROOT r = $T[3,$E] reverse(x), dimensions={1}",
            "x = $T[3,$E] parameter(0) y = $T[3,$E] parameter(1) t = $T[3,$E] reverse(x), dimensions={0,1}
             ROOT r = $T[3,$E] add(t, y)",
            "x = $T[5,$2E] parameter(0) ROOT r = $T[2,$E] slice(x), slice={[1:5:2],[1:$2E:2]}",
            "x = $T[5,$E+1] parameter(0) y = $T[3,$E] parameter(1) s = $T[3,$E] slice(x), slice={[1:4],[1:$E+1]}
             ROOT r = $T[3,$E] add(s, y)",
            "x = $T[9,$E+1] parameter(0) places0 = s32[] parameter(1) places1 = s32[] parameter(2)
             ROOT r = $T[4,$E] dynamic-slice(x, places0, places1), dynamic_slice_sizes={4,$E}",
            "x = $T[9,$E+1] parameter(0) u = $T[2,$E] parameter(1) places0 = s32[] parameter(2)
             places1 = s32[] parameter(3) ROOT r = $T[9,$E+1] dynamic-update-slice(x, u, places0, places1)",
        ],
    );
}

#[test]
fn pads() {
    programs(
        "vector-loops",
        &[
            "x = $T[3,$E] parameter(0) z = $T[] parameter(1) t = $T[3,$E] add(x, x)
             ROOT r = $T[7,$E+1] pad(t, z), padding=1_1_1x1_0",
            "x = $T[3,$E] parameter(0) z = $T[] parameter(1) t = $T[3,$E] add(x, x)
             ROOT r = $T[3,$2E] pad(t, z), padding=0_0x0_1_1",
            "x = $T[3,$E+1] parameter(0) z = $T[] parameter(1) ROOT r = $T[3,$E] pad(x, z), padding=-1_1x-1_0",
            "x = $T[3,$E] parameter(0) y = $T[3,$E+1] parameter(1) z = $T[] parameter(2)
             t = $T[3,$E+1] pad(x, z), padding=0_0x0_1 f = $T[3,$E+1] reverse(t), dimensions={1}
             ROOT r = $T[3,$E+1] add(f, y)",
        ],
    );
}

/// Loops whose body is emitted once, with a mask.
#[test]
fn chains_of_many_operations() {
    let chain = |dims: &str| {
        let step = |i: usize| {
            let op = ["add", "maximum", "subtract"][i % 3];
            format!("v{} = $T{dims} {op}(v{i}, {}) ", i + 1, ["x", "y"][i % 2])
        };
        let steps: String = (0..210).map(step).collect();
        format!(
            "x = $T{dims} parameter(0) y = $T{dims} parameter(1) v0 = $T{dims} minimum(x, y) {steps}
             ROOT r = $T{dims} negate(v210)"
        )
    };
    for (dims, ty) in [("[3,19]", "f32"), ("[3,100]", "u8"), ("[9001]", "s64")] {
        program("vector-loops", &chain(dims), 1, ty);
    }
}

#[test]
fn concatenations() {
    programs(
        "vector-loops",
        &[
            "x = $T[3,$E] parameter(0) y = $T[3,$E] parameter(1) t = $T[3,$E] add(x, y)
             ROOT r = $T[3,$2E] concatenate(t, y), dimensions={1}",
            "x = $T[3,$E] parameter(0) y = $T[2,$E] parameter(1) ROOT r = $T[5,$E] concatenate(x, y), dimensions={0}",
            "x = $T[3,$E] parameter(0) y = $T[3,1] parameter(1)
             ROOT r = $T[3,$E+1] concatenate(x, y), dimensions={1}",
            "x = $T[3,$E] parameter(0) y = $T[3,1] parameter(1)
             ROOT r = $T[3,$E+1] concatenate(y, x), dimensions={1}",
        ],
    );
}

#[test]
fn concatenations_of_many_operands() {
    programs(
        "operand-loops",
        &[
            "x = $T[2,$E] parameter(0) y = $T[2,$E] parameter(1)
             ROOT r = $T[18,$E] concatenate(x, y, x, y, x, y, x, y, x), dimensions={0}",
            "x = $T[2,$E] parameter(0) y = $T[2,$E] parameter(1)
             ROOT r = $T[2,$9E] concatenate(x, y, x, y, x, y, x, y, x), dimensions={1}",
            // Equal sums share a loop nest; operands without elements have none.
            "x = $T[2,$E] parameter(0) y = $T[2,$E] parameter(1) z = $T[2,0] parameter(2) s = $T[2,$E] add(x, y)
             p = $T[2,$E] multiply(y, x) t = $T[2,$E] add(y, x) a = $T[2,$E] reverse(x), dimensions={1}
             ROOT r = $T[2,$9E] concatenate(s, z, p, t, x, y, p, a, s, z, y), dimensions={1}",
            "x = $T[2,3,$E] parameter(0) y = $T[2,2,$E] parameter(1) t = $T[2,$E,3] transpose(x), dimensions={0,2,1}
             u = $T[2,$E,2] transpose(y), dimensions={0,2,1}
             ROOT r = $T[2,$E,23] concatenate(t, u, t, u, t, u, u, t, t), dimensions={2}",
        ],
    );
}

/// An operand that is computed from more arrays than have their addresses in registers, and not from the first ones.
#[test]
fn concatenations_of_many_operands_in_an_operand() {
    let names = |numbers: std::ops::Range<usize>| Vec::from_iter(numbers.map(|i| format!("x{i}"))).join(", ");
    let parameters: String = (0..50).map(|i| format!("x{i} = $T[1,$E] parameter({i}) ")).collect();
    let body = format!(
        "{parameters} c = $T[40,$E] concatenate({}), dimensions={{0}} n = $T[40,$E] negate(c)
         ROOT r = $T[50,$E] concatenate({}, n), dimensions={{0}}",
        names(10..50),
        names(0..10)
    );
    [8, 19, 100].iter().for_each(|&extent| program("operand-loops", &body, extent, "f32"));
}

/// Lanes at arbitrary places of a concatenation, all on one side of the boundary or on both.
#[test]
fn gathers_of_concatenations() {
    programs(
        "vector-loops",
        &[
            "x = $T[1] parameter(0) y = $T[99] parameter(1) places = s32[$E] parameter(2)
             c = $T[100] concatenate(x, y), dimensions={0}
             ROOT r = $T[$E] gather(c, places), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, \
             index_vector_dim=1, slice_sizes={1}",
            "x = $T[99] parameter(0) y = $T[5] parameter(1) places = s32[$E] parameter(2)
             c = $T[104] concatenate(y, x), dimensions={0}
             ROOT r = $T[$E] gather(c, places), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, \
             index_vector_dim=1, slice_sizes={1}",
        ],
    );
}

#[test]
fn concatenations_of_operands_with_several_work_items() {
    for body in [
        "x = $T[9000] parameter(0) y = $T[13] parameter(1)
         ROOT r = $T[63039] concatenate(x, y, x, x, x, y, x, x, x, y), dimensions={0}",
        "x = $T[20,300] parameter(0) y = $T[20,7] parameter(1) t = $T[20,300] add(x, x)
         ROOT r = $T[20,1528] concatenate(x, y, t, x, y, x, y, t, y), dimensions={1}",
    ] {
        ["f32", "u8"].into_iter().for_each(|ty| program("operand-loops", body, 1, ty));
    }
}

#[test]
fn transposes_and_reshapes() {
    programs(
        "vector-",
        &[
            "x = $T[$E,19] parameter(0) ROOT r = $T[19,$E] transpose(x), dimensions={1,0}",
            "x = $T[4,$E,17] parameter(0) y = $T[17,$E,4] parameter(1)
             t = $T[17,$E,4] transpose(x), dimensions={2,1,0} ROOT r = $T[17,$E,4] add(t, y)",
            "x = $T[$E,70] parameter(0) y = $T[70,$E] parameter(1)
             t = $T[70,$E] transpose(x), dimensions={1,0} ROOT r = $T[70,$E] add(t, y)",
            // Arrays that are not contiguous along either loop.
            "x = $T[$E,70] parameter(0) y = $T[$E,140] parameter(1) t = $T[70,$E] transpose(x), dimensions={1,0}
             s = $T[$E,70] slice(y), slice={[0:$E], [0:140:2]} v = $T[70,$E] transpose(s), dimensions={1,0}
             f = $T[70,$E] reverse(t), dimensions={0} w = $T[70,$E] add(t, v) ROOT r = $T[70,$E] subtract(w, f)",
            "x = $T[6,$E] parameter(0) t = $T[3,$2E] reshape(x) ROOT r = $T[3,$2E] reverse(t), dimensions={0}",
            "x = $T[$E,6] parameter(0) t = $T[6,$E] transpose(x), dimensions={1,0} ROOT r = $T[3,2,$E] reshape(t)",
            "x = $T[$E,6] parameter(0) t = $T[6,$E] transpose(x), dimensions={1,0} ROOT r = $T[3,$2E] reshape(t)",
        ],
    );
}

/// Dimensions of one element in front, behind and between others, which have nothing on the other side.
#[test]
fn reshapes_that_add_and_drop_extents_of_one() {
    for [from, to] in [
        ["$E,1", "$E"],
        ["$E", "$E,1"],
        ["1,1,$E", "$E,1,1"],
        ["3,1,$E,1,1", "1,3,$E"],
        ["1,3,$E,1", "3,$E,1,1"],
        ["3,$E,1,2", "1,$2E,3,1"],
    ] {
        let body = format!(
            "x = $T[{from}] parameter(0) y = $T[{to}] parameter(1) t = $T[{to}] reshape(x)
             f = $T[{to}] reverse(t), dimensions={{0}} ROOT r = $T[{to}] add(f, y)"
        );
        [1, 19].iter().for_each(|&extent| program("vector-", &body, extent, "f32"));
    }
    // The transpose needs the coordinate of the last dimension.
    let body = "x = $T[1,$E] parameter(0) y = $T[$E] parameter(1) s = $T[$E,1] transpose(x), dimensions={1,0}
        t = $T[$E] reshape(s) ROOT r = $T[$E] add(t, y)";
    program("vector-", body, 19, "f32");
}

#[test]
fn broadcasts_iotas_and_choices() {
    programs(
        "vector-loops",
        &[
            "x = $T[$E] parameter(0) y = $T[3] parameter(1) s = $T[3,$E] broadcast(x), dimensions={1}
             t = $T[3,$E] broadcast(y), dimensions={0} ROOT r = $T[3,$E] subtract(s, t)",
            "x = $T[3,$E] parameter(0) i = $T[3,$E] iota(), iota_dimension=1 j = $T[3,$E] iota(), iota_dimension=0
             s = $T[3,$E] add(x, i) ROOT r = $T[3,$E] subtract(s, j)",
            "x = $T[3,$E] parameter(0) y = $T[3,$E] parameter(1) p = pred[3,$E] compare(x, y), direction=LT
             t = $T[3,$E] select(p, x, y) ROOT r = ($T[3,$E], pred[3,$E], $T[3,$E]) tuple(t, p, x)",
        ],
    );
}

#[test]
fn gathers() {
    programs(
        "vector-loops",
        &[
            "x = $T[10,$E] parameter(0) places = s32[7] parameter(1)
             ROOT r = $T[7,$E] gather(x, places), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, \
             index_vector_dim=1, slice_sizes={1,$E}",
            "x = $T[10] parameter(0) y = $T[$E] parameter(1) places = s32[$E] parameter(2)
             t = $T[$E] gather(x, places), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, \
             index_vector_dim=1, slice_sizes={1} ROOT r = $T[$E] add(t, y)",
            "x = $T[10,$E+1] parameter(0) places = s32[5,2] parameter(1)
             ROOT r = $T[5,3,$E] gather(x, places), offset_dims={1,2}, collapsed_slice_dims={}, \
             start_index_map={1,0}, index_vector_dim=1, slice_sizes={3,$E}",
        ],
    );
}

#[test]
fn reductions() {
    programs(
        "vector-",
        &[
            "x = $T[$E,19] parameter(0) z = $T[] parameter(1)
             ROOT r = $T[19] reduce(x, z), dimensions={0}, to_apply=sum",
            "x = $T[40,$E] parameter(0) z = $T[] parameter(1)
             ROOT r = $T[$E] reduce(x, z), dimensions={0}, to_apply=most",
            "x = $T[5,$E] parameter(0) z = $T[] parameter(1)
             ROOT r = $T[5] reduce(x, z), dimensions={1}, to_apply=sum",
            "x = $T[5,$E] parameter(0) z = $T[] parameter(1) ROOT r = $T[] reduce(x, z), dimensions={0,1}, to_apply=sum",
            "x = $T[3,$E,4] parameter(0) z = $T[] parameter(1)
             ROOT r = $T[$E] reduce(x, z), dimensions={0,2}, to_apply=sum",
            "x = $T[3,$E,4] parameter(0) z = $T[] parameter(1)
             ROOT r = $T[3,4] reduce(x, z), dimensions={1}, to_apply=most",
        ],
    );
}

/// Few rows, which are cut into chunks for several threads: chunks of a vector of sums, and of thousands of elements.
#[test]
fn rows_in_chunks() {
    let sums = "x = $T[2,8,$E] parameter(0) z = $T[] parameter(1)
        ROOT r = $T[2,$E] reduce(x, z), dimensions={1}, to_apply=sum";
    for (extent, ty) in [(64, "f32"), (65, "f32"), (300, "f32"), (300, "bf16")] {
        program("vector-loops", sums, extent, ty);
    }
    let elements = "x = $T[3,$E] parameter(0) y = $T[2,$E] parameter(1) s = $T[2,$E] slice(x), slice={[1:3],[0:$E]}
        t = $T[2,$E] reverse(s), dimensions={0} ROOT r = $T[2,$E] add(t, y)";
    [4096, 4101].iter().for_each(|&extent| program("vector-loops", elements, extent, "f32"));
}

/// Reductions of rows whose results are used with the row's elements, which are expensive enough to be kept.
#[test]
fn reductions_of_rows_that_are_kept() {
    let row = "x = $T[18,$E] parameter(0) three = $T[] constant(3) w = $T[18,$E] broadcast(three), dimensions={}
        q = $T[18,$E] divide(x, w) a = $T[18,$E] abs(q) s = $T[18,$E] sqrt(a) d = $T[18,$E] divide(s, w)
        z = $T[] constant(0) m = $T[18] reduce(d, z), dimensions={1}, to_apply=most
        b = $T[18,$E] broadcast(m), dimensions={0} ROOT r = $T[18,$E] subtract(d, b)";
    for extent in EXTENTS {
        ["f32", "f64"].iter().for_each(|ty| program("vector-loops", row, extent, ty));
    }
}

#[test]
fn windows() {
    programs(
        "",
        &[
            "x = $T[3,$E] parameter(0) z = $T[] parameter(1)
             ROOT r = $T[3,$E] reduce-window(x, z), window={size=1x3 pad=0_0x1_1}, to_apply=sum",
            "x = $T[3,$2E] parameter(0) z = $T[] parameter(1)
             ROOT r = $T[3,$E] reduce-window(x, z), window={size=1x2 stride=1x2}, to_apply=most",
            "x = $T[3,$E] parameter(0) z = $T[] parameter(1)
             ROOT r = $T[3,$E] reduce-window(x, z), window={size=3x2 pad=1_1x1_0}, to_apply=sum",
            "x = $T[3,$E] parameter(0) z = $T[] parameter(1)
             ROOT r = $T[3,$2E] reduce-window(x, z), window={size=1x2 pad=0_0x1_1 lhs_dilate=1x2}, to_apply=sum",
            "x = $T[3,$E] parameter(0) z = $T[] parameter(1)
             ROOT r = $T[3,$E] reduce-window(x, z), window={size=1x2 pad=0_0x1_1 rhs_dilate=1x2}, to_apply=sum",
            "x = $T[3,$E] parameter(0) z = $T[] constant(0)
             ROOT r = $T[3,$E] reduce-window(x, z), window={size=1x$E pad=0_0x$E-1_0}, to_apply=sum",
            "x = $T[$E,19] parameter(0) z = $T[] constant(0)
             ROOT r = $T[$E,19] reduce-window(x, z), window={size=$Ex1 pad=0_$E-1x0_0}, to_apply=sum",
        ],
    );
}

#[test]
fn selects_and_scatters() {
    programs(
        "select-and-scatter",
        &[
            "x = $T[$2E,6] parameter(0) y = $T[$E,6] parameter(1) z = $T[] parameter(2)
             ROOT r = $T[$2E,6] select-and-scatter(x, y, z), window={size=2x1 stride=2x1}, select=keeps, scatter=sum",
            "x = $T[$2E,6] parameter(0) y = $T[$E,6] parameter(1) z = $T[] parameter(2)
             ROOT r = $T[$2E,6] select-and-scatter(x, y, z), window={size=3x1 stride=2x1 pad=1_0x0_0}, select=keeps, \
             scatter=sum",
            "x = $T[5,$E] parameter(0) y = $T[4,$E] parameter(1) z = $T[] parameter(2)
             ROOT r = $T[5,$E] select-and-scatter(x, y, z), window={size=2x3 pad=0_0x1_1}, select=keeps, scatter=sum",
        ],
    );
}

/// Rows with fewer items than the histogram of a radix sort has digits, and with more.
#[test]
fn sorts() {
    for body in [
        "x = $T[3,$E] parameter(0) ROOT r = $T[3,$E] sort(x), dimensions={1}, to_apply=before",
        "x = $T[$E,3] parameter(0) ROOT r = $T[$E,3] sort(x), dimensions={0}, to_apply=after",
        "x = $T[3,$E] parameter(0) y = s32[3,$E] parameter(1)
         ROOT r = ($T[3,$E], s32[3,$E]) sort(x, y), dimensions={1}, is_stable=true, to_apply=before_of_pair",
        "x = $T[3,$E] parameter(0) y = s32[3,$E] parameter(1)
         ROOT r = ($T[3,$E], s32[3,$E]) sort(x, y), dimensions={1}, is_stable=true, to_apply=after_of_pair",
    ] {
        let is_by_key = body.contains("after");
        let strategy = |extent| match is_by_key {
            true if extent < 256 => "merge-sort",
            true => "radix-sort",
            false => "",
        };
        for extent in [1, 2, 8, 9, 19, 255, 256, 300] {
            program(strategy(extent), body, extent, "f32");
        }
        TYPES.iter().for_each(|ty| program(strategy(300), body, 300, ty));
        // Less than a byte.
        program(strategy(300), body, 300, "f4e2m1fn");
    }
    // Rows whose elements are not adjacent, in several groups.
    let body = "x = $T[2,$E,3] parameter(0) ROOT r = $T[2,$E,3] sort(x), dimensions={1}, to_apply=after";
    program("merge-sort", body, 19, "f32");
}

/// Sorts by the second of `count` arrays of several types, along a dimension of `dims`.
pub fn sort_of_many(count: usize, dims: &str, dimension: usize) -> String {
    let ty = |i: usize| ["f32", "u8", "c64", "f32"][i % 4];
    let list = |of: &dyn Fn(usize) -> String| Vec::from_iter((0..count).map(of)).join(", ");
    let scalars: String = (0..2 * count).map(|i| format!("s.{i} = {}[] parameter({i}) ", ty(i / 2))).collect();
    let parameters: String = (0..count).map(|i| format!("x{i} = {}{dims} parameter({i}) ", ty(i))).collect();
    let (shapes, operands) = (list(&|i| format!("{}{dims}", ty(i))), list(&|i| format!("x{i}")));
    format!(
        "HloModule m
         before {{ {scalars} ROOT c = pred[] compare(s.2, s.3), direction=LT }}
         ENTRY main {{ {parameters}
           ROOT r = ({shapes}) sort({operands}), dimensions={{{dimension}}}, is_stable=true, to_apply=before }}"
    )
}

#[test]
fn sorts_of_many_arrays() {
    for count in [8, 9, 14] {
        check(&sort_of_many(count, "[3,19]", 1), "merge-sort");
        check(&sort_of_many(count, "[19,3]", 0), "merge-sort");
    }
    check(&sort_of_many(9, "[2,300]", 1), "radix-sort");
}

/// Selection of the five best items, on both sides of the number of items from which a heap is faster than a sort.
#[test]
fn best_of_rows() {
    let body = "x = $T[3,$E] parameter(0) ROOT r = ($T[3,5], s32[3,5]) topk(x), k=5, largest=true";
    for extent in [5, 6, 19, 20, 21, 100] {
        program(if extent <= 20 { "merge-sort" } else { "heap-select" }, body, extent, "f32");
    }
    TYPES.iter().for_each(|ty| program("heap-select", body, 100, ty));
}

/// Duplicate indices, and indices out of bounds.
#[test]
fn scatters() {
    programs(
        "scatter",
        &[
            "x = $T[10,$E] parameter(0) places = s32[6] parameter(1) u = $T[6,$E] parameter(2)
             ROOT r = $T[10,$E] scatter(x, places, u), update_window_dims={1}, inserted_window_dims={0}, \
             scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum",
            "x = $T[10] parameter(0) places = s32[$E] parameter(1) u = $T[$E] parameter(2)
             ROOT r = $T[10] scatter(x, places, u), update_window_dims={}, inserted_window_dims={0}, \
             scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=most",
            "x = $T[10,$E] parameter(0) w = $T[10,$E] parameter(1) places = s32[6] parameter(2)
             u = $T[6,$E] parameter(3) v = $T[6,$E] parameter(4)
             ROOT r = ($T[10,$E], $T[10,$E]) scatter(x, w, places, u, v), update_window_dims={1}, \
             inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=both",
            "x = $T[10,$E+1] parameter(0) places = s32[6,2] parameter(1) u = $T[6,2,$E] parameter(2)
             ROOT r = $T[10,$E+1] scatter(x, places, u), update_window_dims={1,2}, inserted_window_dims={}, \
             scatter_dims_to_operand_dims={1,0}, index_vector_dim=1, to_apply=sum",
        ],
    );
}
