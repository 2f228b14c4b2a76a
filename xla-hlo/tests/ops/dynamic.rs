//! Tests of dynamic sizes: text, shapes, and operations on values below their bounds.

use xla_hlo::ElementType::{F32, S32};
use xla_hlo::eval::evaluate;
use xla_hlo::text::parse_module;
use xla_hlo::verify::VerifiedModule;
use xla_hlo::{Literal, Result, Shape};

use crate::testing::{array, assert_refused, numbers, scalar};

/// Evaluates a program over `x: f32[2,4]` = 1 to 8 and `k: s32[]`, in which `y` is `x` with `k` columns.
fn run(instructions: &str, k: f64) -> Result<Literal> {
    let text = format!(
        "add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }}\n\
         ENTRY main {{\n x = f32[2,4] parameter(0)\n k = s32[] parameter(1)\n zero = f32[] constant(0)\n \
         y = f32[2,<=4] set-dimension-size(x, k), dimensions={{1}}\n {instructions}\n}}"
    );
    let module = parse_module(&text)?;
    let printed = module.to_string();
    assert_eq!(parse_module(&printed)?.to_string(), printed, "printing is a fixed point");
    let x = array(F32, &[2, 4], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    evaluate(&*VerifiedModule::new(module)?, vec![x, scalar(S32, k)])
}

#[test]
fn a_size_that_is_set_is_written() {
    let whole =
        "w = s32[] constant(4)\n z = f32[2,4] set-dimension-size(y, w), dimensions={1}\n ROOT r = f32[2,4] negate(z)";
    assert_eq!(numbers(&run(whole, 1.0).unwrap()), [-1.0, -0.0, -0.0, -0.0, -5.0, -0.0, -0.0, -0.0]);
    for size in ["k", "three"] {
        let text =
            format!("three = s32[] constant(3)\n ROOT r = f32[2,4] set-dimension-size(x, {size}), dimensions={{1}}");
        assert_refused(size, run(&text, 1.0), "write <=4 for it, or let the size be the constant 4");
    }
}

#[test]
fn operations_respect_sizes() {
    for (instructions, k, dims, expected) in [
        ("ROOT r = f32[2,<=4] negate(y)", 2.0, &[2usize, 2][..], &[-1.0, -2.0, -5.0, -6.0][..]),
        ("ROOT r = f32[2,<=4] negate(y)", -3.0, &[2, 0], &[]),
        ("ROOT r = f32[2,<=4] negate(y)", 9.0, &[2, 4], &[-1.0, -2.0, -3.0, -4.0, -5.0, -6.0, -7.0, -8.0]),
        ("ROOT r = f32[2] reduce(y, zero), dimensions={1}, to_apply=add", 3.0, &[2], &[6.0, 18.0]),
        ("ROOT r = f32[<=4] reduce(y, zero), dimensions={0}, to_apply=add", 1.0, &[1], &[6.0]),
        (
            "ROOT r = f32[2,2] dot(y, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
            2.0,
            &[2, 2],
            &[5.0, 17.0, 17.0, 61.0],
        ),
        ("ROOT r = f32[2,<=8] concatenate(y, y), dimensions={1}", 1.0, &[2, 2], &[1.0, 1.0, 5.0, 5.0]),
        ("ROOT r = f32[<=4,2] transpose(y), dimensions={1,0}", 1.0, &[1, 2], &[1.0, 5.0]),
        ("ROOT r = f32[<=8] reshape(y)", 2.0, &[4], &[1.0, 2.0, 5.0, 6.0]),
        (
            "b = f32[<=4,3,2] broadcast(y), dimensions={2,0}\n ROOT r = f32[<=4,2] reduce(b, zero), dimensions={1}, to_apply=add",
            1.0,
            &[1, 2],
            &[3.0, 15.0],
        ),
        (
            "p = f32[2,<=5] pad(y, zero), padding=0_0x0_1\n ROOT r = f32[<=5] reduce(p, zero), dimensions={0}, to_apply=add",
            1.0,
            &[2],
            &[6.0, 0.0],
        ),
        ("ROOT r = f32[2,<=4] add(y, x)", 1.0, &[2, 1], &[2.0, 10.0]),
        (
            "ROOT r = f32[2,2] dot(y, x), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
            2.0,
            &[2, 2],
            &[5.0, 17.0, 17.0, 61.0],
        ),
        ("ROOT r = s32[] get-dimension-size(y), dimensions={1}", 3.0, &[], &[3.0]),
        ("ROOT r = s32[] get-dimension-size(y), dimensions={0}", 3.0, &[], &[2.0]),
        (
            "two = s32[] constant(2)\n ROOT r = f32[<=4,2] dynamic-reshape(y, k, two)",
            2.0,
            &[2, 2],
            &[1.0, 2.0, 5.0, 6.0],
        ),
        (
            "t = (f32[2,<=4], s32[]) tuple(y, k)\n g = f32[2,<=4] get-tuple-element(t), index=0\n ROOT r = f32[2,<=4] abs(g)",
            1.0,
            &[2, 1],
            &[1.0, 5.0],
        ),
        ("ROOT r = f32[2,<=3] slice(y), slice={[0:2], [1:4]}", 3.0, &[2, 2], &[2.0, 3.0, 6.0, 7.0]),
        ("ROOT r = f32[2,<=2] slice(y), slice={[0:2], [1:4:2]}", 0.0, &[2, 0], &[]),
        ("ROOT r = f32[2,3] slice(y), slice={[0:2], [1:4]}", 3.0, &[2, 3], &[2.0, 3.0, 0.0, 6.0, 7.0, 0.0]),
        ("ROOT r = f32[1,<=4] dynamic-slice(y, k, k), dynamic_slice_sizes={1,4}", 2.0, &[1, 2], &[5.0, 6.0]),
        ("ROOT r = f32[1,1] dynamic-slice(y, k, k), dynamic_slice_sizes={1,1}", 2.0, &[1, 1], &[6.0]),
        (
            "i = s32[1] constant({1})\n ROOT r = f32[1,<=4] gather(y, i), offset_dims={1}, collapsed_slice_dims={0}, \
             start_index_map={0}, index_vector_dim=1, slice_sizes={1,4}",
            3.0,
            &[1, 3],
            &[5.0, 6.0, 7.0],
        ),
        (
            "t = (f32[2,<=2], s32[2,<=2]) topk(y), k=2, largest=true\n ROOT r = f32[2,<=2] get-tuple-element(t), index=0",
            1.0,
            &[2, 1],
            &[1.0, 5.0],
        ),
        ("ROOT r = f32[2,<=3] reduce-window(y, zero), window={size=1x2}, to_apply=add", 1.0, &[2, 0], &[]),
        ("ROOT r = f32[2,<=4] reverse(y), dimensions={1}", 3.0, &[2, 3], &[3.0, 2.0, 1.0, 7.0, 6.0, 5.0]),
    ] {
        let value = run(instructions, k).unwrap_or_else(|e| panic!("{instructions}: {e}"));
        let ty = value.array_shape().element_type();
        assert_eq!(*value.shape(), Shape::array(ty, dims), "{instructions}");
        assert_eq!(numbers(&value), expected, "{instructions}");
    }
}

#[test]
fn arguments_and_results_have_their_own_sizes() {
    let text = "ENTRY main { x = f32[<=4,2] parameter(0) ROOT r = f32[<=4,2] negate(x) }";
    let module = VerifiedModule::new(parse_module(text).unwrap()).unwrap();
    let value = evaluate(&module, vec![array(F32, &[1, 2], &[1.0, 2.0])]).unwrap();
    assert_eq!(value, array(F32, &[1, 2], &[-1.0, -2.0]));
    assert!(evaluate(&module, vec![array(F32, &[5, 2], &[0.0; 10])]).is_err());
    assert!(evaluate(&module, vec![array(F32, &[4, 1], &[0.0; 4])]).is_err());
}

#[test]
fn elements_of_a_padded_result_are_dense_in_the_order_of_its_layout() {
    let real = array(F32, &[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    for (order, expected) in [([1, 0], [1.0, 2.0, 3.0, 4.0, 0.0, 0.0]), ([0, 1], [1.0, 2.0, 0.0, 3.0, 4.0, 0.0])] {
        let padded = real.reflowed(&[2, 3], &order).unwrap();
        assert_eq!(padded, array(F32, &[2, 3], &expected), "{order:?}");
        assert_eq!(padded.reflowed(&[2, 2], &order).unwrap(), real, "{order:?}");
    }
    let padded = real.reflowed(&[3, 3], &[0, 1]).unwrap();
    assert_eq!(padded, array(F32, &[3, 3], &[1.0, 4.0, 0.0, 3.0, 0.0, 0.0, 2.0, 0.0, 0.0]));
    let none = real.reflowed(&[0, 2], &[1, 0]).unwrap();
    assert_eq!(none.reflowed(&[2, 2], &[1, 0]).unwrap(), array(F32, &[2, 2], &[0.0; 4]));
}

#[test]
fn a_padded_result_has_the_sizes_of_its_attribute() {
    let text = |attribute: &str| {
        format!(
            r#"HloModule m, entry_computation_layout={{()->((f32[2,3]{{0,1}}, s32[]), s32[2]{{0}})}}, frontend_attributes={{xla.dynamic_result="{attribute}"}}
ENTRY main {{
  x = f32[2,3] constant({{ {{1, 2, 0}}, {{3, 4, 0}} }})
  k = s32[] constant(7)
  value = (f32[2,3], s32[]) tuple(x, k)
  sizes = s32[2] constant({{2, 2}})
  ROOT r = ((f32[2,3], s32[]), s32[2]) tuple(value, sizes)
}}"#
        )
    };
    let module = parse_module(&text("(f32[<=2,<=3], s32[])")).unwrap();
    let expected = Literal::tuple(vec![array(F32, &[2, 2], &[1.0, 2.0, 3.0, 4.0]), scalar(S32, 7.0)]);
    assert_eq!(evaluate(&module, Vec::new()).unwrap(), expected);
    let seen = module.caller_layout().result.to_string();
    assert_eq!(seen, "(f32[<=2,<=3]{0,1}, s32[])");
    for wrong in ["(f32[<=2,3], s32[])", "(f32[?,?], s32[])", "f32[<=2,<=3]", "(f32[<=2,<=4], s32[])", "sizes", ""] {
        let error = evaluate(&parse_module(&text(wrong)).unwrap(), Vec::new()).unwrap_err();
        assert!(error.message().contains("does not fit the result"), "{error}");
    }
}

#[test]
fn broken_rules() {
    for (instructions, message) in [
        ("ROOT r = s32[] get-dimension-size(x), dimensions={2}", "has no dimension 2"),
        ("ROOT r = s32[] get-dimension-size(x), dimensions={0,1}", "dimensions must have one element"),
        ("ROOT r = s64[] get-dimension-size(x), dimensions={0}", "get-dimension-size has shape s32[]"),
        ("ROOT r = f32[<=2,4] set-dimension-size(x, zero), dimensions={0}", "a size, must be s32[]"),
        ("ROOT r = f32[<=8] dynamic-reshape(x, k, k)", "needs 1 sizes, found 2"),
        ("ROOT r = f32[<=9] dynamic-reshape(x, k)", "has up to 8 elements"),
        ("ROOT r = f32[<=8] dynamic-reshape(x, k)", "changes the number of elements"),
    ] {
        assert_refused(instructions, run(instructions, 3.0), message);
    }
}
