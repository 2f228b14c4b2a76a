//! Tests of kernels in which thread groups reduce and use rows: in registers if a thread has few elements, otherwise in
//! loops.

use super::agrees;

/// Sizes of rows: of a warp and of blocks, in one iteration and in several, and sizes that are no multiple of the
/// threads.
const ROWS: &[usize] = &[10, 32, 33, 64, 96, 150, 256, 511, 768, 1000, 1024, 1536, 4096, 5003, 20001];

const COMBINERS: &str = "
    max {
      ma = TYPE[] parameter(0)
      mb = TYPE[] parameter(1)
      ROOT mr = TYPE[] maximum(ma, mb)
    }
    sum {
      sa = TYPE[] parameter(0)
      sb = TYPE[] parameter(1)
      ROOT sr = TYPE[] add(sa, sb)
    }";

fn program(element: &str, row: usize, body: &str) -> String {
    let text = format!("HloModule m{COMBINERS}\nENTRY main {{{body}}}");
    text.replace("TYPE", element).replace("ROW", &row.to_string())
}

#[test]
fn softmax() {
    for &row in ROWS {
        agrees(&program(
            "f32",
            row,
            "x = f32[3,ROW] parameter(0)
            least = f32[] constant(-inf)
            zero = f32[] constant(0)
            most = f32[3] reduce(x, least), dimensions={1}, to_apply=max
            mosts = f32[3,ROW] broadcast(most), dimensions={0}
            shifted = f32[3,ROW] subtract(x, mosts)
            e = f32[3,ROW] exponential(shifted)
            total = f32[3] reduce(e, zero), dimensions={1}, to_apply=sum
            totals = f32[3,ROW] broadcast(total), dimensions={0}
            ROOT softmax = f32[3,ROW] divide(e, totals)",
        ));
    }
}

/// Results of whole rows together with results of their elements, in all load widths.
#[test]
fn sums_and_what_is_left_of_elements() {
    for element in ["bf16", "f16", "f32", "f64", "s8", "u16", "s32", "s64"] {
        for row in [36, 64, 96, 301, 512, 520, 2048, 9001] {
            agrees(&program(
                element,
                row,
                "x = TYPE[2,3,ROW] parameter(0)
                y = TYPE[ROW] parameter(1)
                ys = TYPE[2,3,ROW] broadcast(y), dimensions={2}
                both = TYPE[2,3,ROW] maximum(x, ys)
                first = TYPE[] constant(1)
                most = TYPE[2,3] reduce(both, first), dimensions={2}, to_apply=max
                mosts = TYPE[2,3,ROW] broadcast(most), dimensions={0,1}
                less = TYPE[2,3,ROW] subtract(both, mosts)
                ROOT r = (TYPE[2,3,ROW], TYPE[2,3]) tuple(less, most)",
            ));
        }
    }
}

/// Reductions that depend on the previous one, of the row and of its reversal, and on elements with other indices.
#[test]
fn reductions_of_reductions() {
    for &row in ROWS {
        agrees(&program(
            "f32",
            row,
            "x = f32[4,ROW] parameter(0)
            scale = f32[ROW] parameter(1)
            zero = f32[] constant(0)
            backwards = f32[4,ROW] reverse(x), dimensions={1}
            mixed = f32[4,ROW] subtract(x, backwards)
            total = f32[4] reduce(mixed, zero), dimensions={1}, to_apply=sum
            totals = f32[4,ROW] broadcast(total), dimensions={0}
            off = f32[4,ROW] subtract(x, totals)
            squares = f32[4,ROW] multiply(off, off)
            spread = f32[4] reduce(squares, zero), dimensions={1}, to_apply=sum
            one = f32[] constant(1)
            ones = f32[4] broadcast(one), dimensions={}
            enough = f32[4] add(spread, ones)
            inverse = f32[4] rsqrt(enough)
            inverses = f32[4,ROW] broadcast(inverse), dimensions={0}
            scales = f32[4,ROW] broadcast(scale), dimensions={1}
            normal = f32[4,ROW] multiply(off, inverses)
            ROOT r = f32[4,ROW] multiply(normal, scales)",
        ));
    }
}
