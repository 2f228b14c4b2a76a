//! Tests of reductions of several arrays and with combiners of all kinds, by thread groups.

use super::agrees;

/// Combiner for the largest element and its index, as in JAX: NaN first, the first one of equal elements.
const ARGMAX: &str = "argmax {
      av = f32[] parameter(0)
      ai = s32[] parameter(1)
      bv = f32[] parameter(2)
      bi = s32[] parameter(3)
      gt = pred[] compare(av, bv), direction=GT
      unordered = pred[] compare(av, av), direction=NE
      first = pred[] or(gt, unordered)
      v = f32[] select(first, av, bv)
      eq = pred[] compare(av, bv), direction=EQ
      lt = pred[] compare(ai, bi), direction=LT
      tie = pred[] and(eq, lt)
      own = pred[] or(first, tie)
      i = s32[] select(own, ai, bi)
      ROOT r = (f32[], s32[]) tuple(v, i)
    }";

fn argmax(dims: &str, result: &str, reduced: &str, iota: usize) -> String {
    format!(
        "HloModule m
        {ARGMAX}
        ENTRY main {{
          x = f32[{dims}] parameter(0)
          i = s32[{dims}] iota(), iota_dimension={iota}
          least = f32[] constant(-inf)
          zero = s32[] constant(0)
          ROOT r = (f32[{result}], s32[{result}]) reduce(x, i, least, zero), dimensions={{{reduced}}}, to_apply=argmax
        }}"
    )
}

#[test]
fn places_of_the_largest() {
    for (dims, result, reduced, iota) in [
        ("7,1", "7", "1", 1),
        ("5,31", "5", "1", 1),
        ("3,32", "3", "1", 1),
        ("3,33", "3", "1", 1),
        ("4,1009", "4", "1", 1),
        ("2,4096", "2", "1", 1),
        ("5000", "", "0", 0),
        ("1", "", "0", 0),
        ("4096,3", "3", "0", 0),
        ("257,65", "65", "0", 0),
        ("3,70,40", "3", "1,2", 2),
        ("40,3,70", "3", "0,2", 2),
        ("70,3,40", "40", "0,1", 0),
        ("0,40", "40", "0", 0),
        ("40,0", "0", "0", 0),
    ] {
        agrees(&argmax(dims, result, reduced, iota));
    }
}

#[test]
fn places_of_the_largest_in_parts() {
    for (dims, result, reduced, iota) in [
        ("270336", "", "0", 0),
        ("1,300007", "1", "1", 1),
        ("600,512", "", "0,1", 1),
        ("65536,5", "5", "0", 0),
        ("3,2,60000", "2", "0,2", 2),
    ] {
        agrees(&argmax(dims, result, reduced, iota));
    }
    // Only NaNs, of which the first is selected; only least values, which equal the init.
    for value in ["nan", "-inf"] {
        agrees(&format!(
            "HloModule m
            {ARGMAX}
            ENTRY main {{
              one = f32[] constant({value})
              x = f32[300000] broadcast(one), dimensions={{}}
              i = s32[300000] iota(), iota_dimension=0
              least = f32[] constant(-inf)
              far = s32[] constant(7)
              ROOT r = (f32[], s32[]) reduce(x, i, least, far), dimensions={{0}}, to_apply=argmax
            }}"
        ));
    }
}

#[test]
fn nan_and_zeros_of_either_sign() {
    agrees(&format!(
        "HloModule m
        {ARGMAX}
        ENTRY main {{
          x = f32[6,500] parameter(0)
          root = f32[6,500] sqrt(x)
          i = s32[6,500] iota(), iota_dimension=1
          least = f32[] constant(-inf)
          zero = s32[] constant(0)
          ROOT r = (f32[6], s32[6]) reduce(root, i, least, zero), dimensions={{1}}, to_apply=argmax
        }}"
    ));
    agrees(&format!(
        "HloModule m
        {ARGMAX}
        ENTRY main {{
          x = f32[6,500] parameter(0)
          none = f32[] constant(0)
          nones = f32[6,500] broadcast(none), dimensions={{}}
          signed = f32[6,500] multiply(x, nones)
          i = s32[6,500] iota(), iota_dimension=1
          least = f32[] constant(-inf)
          zero = s32[] constant(0)
          ROOT r = (f32[6], s32[6]) reduce(signed, i, least, zero), dimensions={{1}}, to_apply=argmax
        }}"
    ));
}

#[test]
fn combiners_of_one_array() {
    let wraps = "sum = TY[] add(a, b)
                  ab = TY[] multiply(a, b)
                  two = TY[] constant(2)
                  twice = TY[] multiply(two, ab)
                  ROOT r = TY[] add(sum, twice)";
    let adds = "sum = TY[] add(a, b)
                  one = TY[] constant(1)
                  ROOT r = TY[] multiply(sum, one)";
    // An init that is not the identity is applied once.
    for (ty, init, body) in
        [("f64", "-0.5", adds), ("bf16", "3", adds), ("s32", "0", wraps), ("s64", "5", wraps), ("u8", "1", wraps)]
    {
        for (dims, result, reduced) in
            [("6,300", "6", "1"), ("300,40", "40", "0"), ("2000", "", "0"), ("9,20", "9", "1"), ("1,64", "1", "1")]
        {
            if ty == "bf16" && dims != "9,20" && dims != "1,64" {
                // Rounded sums depend on their order.
                continue;
            }
            agrees(&format!(
                "HloModule m
                both {{
                  a = {ty}[] parameter(0)
                  b = {ty}[] parameter(1)
                  {}
                }}
                ENTRY main {{
                  x = {ty}[{dims}] parameter(0)
                  init = {ty}[] constant({init})
                  ROOT r = {ty}[{result}] reduce(x, init), dimensions={{{reduced}}}, to_apply=both
                }}",
                body.replace("TY", ty)
            ));
        }
    }
}

/// Columns that several threads reduce: of one dimension and of several, with and without a remainder.
#[test]
fn columns_of_any_length() {
    for (dims, result, reduced) in [
        ("32,5", "5", "0"),
        ("33,40", "40", "0"),
        ("100,64", "64", "0"),
        ("511,3", "3", "0"),
        ("1009,33", "33", "0"),
        ("4096,2", "2", "0"),
        ("16,8,8,64", "64", "0,1,2"),
        ("3,7,25,10", "10", "0,1,2"),
        ("6,50,11,2", "50,2", "0,2"),
    ] {
        for (element, operation) in [("f32", "add"), ("bf16", "maximum"), ("s32", "add"), ("f64", "minimum")] {
            agrees(&format!(
                "HloModule m
                f {{
                  a = {element}[] parameter(0)
                  b = {element}[] parameter(1)
                  ROOT r = {element}[] {operation}(a, b)
                }}
                ENTRY main {{
                  x = {element}[{dims}] parameter(0)
                  one = {element}[] constant(1)
                  backwards = {element}[{dims}] reverse(x), dimensions={{0}}
                  mixed = {element}[{dims}] maximum(x, backwards)
                  ROOT r = {element}[{result}] reduce(mixed, one), dimensions={{{reduced}}}, to_apply=f
                }}"
            ));
        }
    }
}

#[test]
fn whole_arrays() {
    for (ty, dims) in [("f32", "524288"), ("f32", "524287"), ("s32", "600,1024"), ("bf16", "1048576")] {
        agrees(&format!(
            "HloModule m
            add {{
              a = {ty}[] parameter(0)
              b = {ty}[] parameter(1)
              ROOT r = {ty}[] maximum(a, b)
            }}
            ENTRY main {{
              x = {ty}[{dims}] parameter(0)
              least = {ty}[] constant(-1000)
              ROOT r = {ty}[] reduce(x, least), dimensions={{{}}}, to_apply=add
            }}",
            if dims.contains(',') { "0,1" } else { "0" }
        ));
    }
}
