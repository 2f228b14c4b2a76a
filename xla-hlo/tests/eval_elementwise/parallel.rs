//! Tests that evaluation on several threads returns the bits of evaluation on one, for every operation.

use xla_hlo::Literal;
use xla_hlo::eval::Evaluator;
use xla_hlo::text::parse_module;

const COMPUTATIONS: &str = "\
sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

difference {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT d = f32[] subtract(a, b)
}

both {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  s = f32[] subtract(a, c)
  p = f32[] add(b, d)
  ROOT t = (f32[], f32[]) tuple(s, p)
}

scale {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] atan2(a, b)
}

before {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT l = pred[] compare(a, b), direction=LT
}

small {
  a = f32[] parameter(0)
  half = f32[] constant(0.5)
  ROOT l = pred[] compare(a, half), direction=GT
}

halved {
  a = f32[] parameter(0)
  half = f32[] constant(0.5)
  ROOT p = f32[] multiply(a, half)
}

looping {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  s = f32[] add(a, b)
  ROOT w = f32[] while(s), condition=small, body=halved
}
";

fn run(line: &str, threads: usize) -> Literal {
    let text = format!(
        "HloModule m\n\n{COMPUTATIONS}\nENTRY e {{
  i = f32[80,260] iota(), iota_dimension=1
  j = f32[80,260] iota(), iota_dimension=0
  r = f32[80,260] remainder(i, j)
  x = f32[80,260] sine(r)
  y = f32[80,260] add(x, j)
  flat = f32[20800] reshape(x)
  columns = f32[80,12] slice(y), slice={{[0:80],[0:12]}}
  image = f32[1,80,260,1] reshape(y)
  few = f32[36] slice(flat), slice={{[600:636]}}
  kernel = f32[3,3,1,4] reshape(few)
  zero = f32[] constant(0)
  ROOT {line}
}}\n"
    );
    let module = parse_module(&text).unwrap();
    Evaluator::new(&module).with_threads(threads).call(module.entry_id(), vec![]).unwrap()
}

#[test]
fn threads_change_no_bit() {
    for line in [
        "t = f32[80,260] tanh(y)",
        "s = f32[80,260] clamp(x, y, x)",
        "d = f32[80,80] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        "d = f32[260,12] dot(x, columns), lhs_contracting_dims={0}, rhs_contracting_dims={0}",
        "c = f32[1,78,258,4] convolution(image, kernel), window={size=3x3}, dim_labels=b01f_01io->b01f",
        "s = f32[80] reduce(y, zero), dimensions={1}, to_apply=sum",
        "s = f32[] reduce(y, zero), dimensions={0,1}, to_apply=sum",
        "s = f32[260] reduce(y, zero), dimensions={0}, to_apply=difference",
        "s = (f32[260], f32[260]) reduce(x, y, zero, zero), dimensions={0}, to_apply=both",
        "s = f32[80] reduce(y, zero), dimensions={1}, to_apply=looping",
        "w = f32[78,258] reduce-window(y, zero), window={size=3x3}, to_apply=sum",
        "w = f32[78,258] reduce-window(y, zero), window={size=3x3}, to_apply=difference",
        "m = f32[80,260] map(x, y), dimensions={0,1}, to_apply=scale",
        "m = f32[80,260] map(x, y), dimensions={0,1}, to_apply=looping",
        "o = f32[20800] sort(flat), dimensions={0}, to_apply=before",
        "o = f32[80,260] sort(x), dimensions={0}, to_apply=before",
    ] {
        let one = run(line, 1);
        for threads in [2, 64] {
            assert_eq!(run(line, threads), one, "{line} on {threads} threads");
        }
    }
}
