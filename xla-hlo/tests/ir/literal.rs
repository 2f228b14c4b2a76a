//! Tests of splats: equality, and that no operation expands them needlessly.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use xla_hlo::eval::evaluate;
use xla_hlo::text::{parse_literal, parse_module, parse_module_counting_omitted};
use xla_hlo::{ArrayShape, ElementType, Literal, Module, Op, Result, Scalar, VerifiedModule, proto};

/// Number of elements of 4 bytes that exceeds every address space: code that expands them fails.
const HUGE: usize = 1 << 45;

fn huge(ty: ElementType, value: Scalar) -> Literal {
    Literal::splat(&ArrayShape::new(ty, [HUGE]), value).unwrap()
}

fn hash(literal: &Literal) -> u64 {
    let mut hasher = DefaultHasher::new();
    literal.hash(&mut hasher);
    hasher.finish()
}

/// Whether every element is stored.
fn is_dense(literal: &Literal) -> bool {
    literal.as_splat().is_none()
}

#[test]
fn splats_are_equal_to_the_same_elements_in_full() {
    for ty in ElementType::ALL {
        let shape = ArrayShape::new(*ty, [3, 5]);
        let one = Scalar::from_i64(*ty, 1);
        let (splat, dense) = (Literal::splat(&shape, one).unwrap(), Literal::from_fn(&shape, |_| one).unwrap());
        assert!(!is_dense(&splat) && is_dense(&dense));
        assert_eq!((&splat, hash(&splat)), (&dense, hash(&dense)), "{ty}");
        assert_eq!((splat.byte_len(), splat.uniform()), (dense.byte_len(), dense.uniform()), "{ty}");
        assert_eq!(splat.bytes(), dense.bytes(), "{ty}");
        assert!(!is_dense(&dense.clone().compact()));
        let mut copy = vec![7; splat.byte_len()];
        splat.copy_bytes_to(&mut copy);
        assert_eq!(copy, dense.bytes());
        let mut other = splat.clone();
        other.bytes_mut()[4 * ty.byte_width()] ^= 1;
        assert!(is_dense(&other) && other != splat && other.uniform().is_none(), "{ty}");
        assert_ne!(hash(&other), hash(&splat), "{ty}");
        assert_eq!(splat, dense, "the copy was written, not the splat");
    }
    let zeros = |dims: &[usize]| Literal::zeros(&ArrayShape::new(ElementType::F32, dims)).unwrap();
    assert_ne!(zeros(&[2, 3]), zeros(&[3, 2]));
    assert_eq!(zeros(&[0]), Literal::splat(&ArrayShape::new(ElementType::F32, [0]), Scalar::Float(0.0)).unwrap());
    assert!(zeros(&[0]).uniform().is_none());
}

#[test]
fn huge_splats_take_no_memory() {
    let a = huge(ElementType::F32, Scalar::Float(2.0));
    let b = huge(ElementType::F32, Scalar::Float(2.0));
    assert_eq!((&a, hash(&a), a.byte_len()), (&b, hash(&b), 4 * HUGE));
    assert_ne!(a, huge(ElementType::F32, Scalar::Float(3.0)));
    assert_eq!((a.get(HUGE - 1), a.uniform()), (Scalar::Float(2.0), Some(Scalar::Float(2.0))));
    let square = ArrayShape::new(ElementType::F32, [HUGE / 4, 4]);
    assert_eq!(a.reshaped(&square).unwrap(), Literal::splat(&square, Scalar::Float(2.0)).unwrap());
    // Elements of another width can only be made from expanded ones.
    let narrow = ArrayShape::new(ElementType::U8, [4 * HUGE]);
    for refused in [a.densify(), a.reshaped(&narrow).map(drop), Literal::tuple(vec![a.clone()]).densify()] {
        assert!(refused.unwrap_err().message().contains("no memory"));
    }
}

#[test]
fn written_splats_are_not_copied_once_more() {
    let shape = ArrayShape::new(ElementType::S32, [100]);
    let mut splat = Literal::splat(&shape, Scalar::Signed(3)).unwrap();
    let shared = splat.clone();
    splat.set(5, Scalar::Signed(4));
    assert_eq!((splat.get(5), shared.get(5)), (Scalar::Signed(4), Scalar::Signed(3)));
    drop(shared);
    let mut alone = Literal::splat(&shape, Scalar::Signed(3)).unwrap();
    let written = alone.bytes().as_ptr();
    assert_eq!(alone.bytes_mut().as_ptr(), written);
}

/// Evaluates a program without parameters, after checking that verification, printing, serialization and parsing
/// preserve it.
fn run(text: &str) -> Result<Literal> {
    let module = parse_module(text)?;
    let printed = module.to_string();
    assert!(printed.len() < 2 * text.len() + 1000, "{} bytes of text", printed.len());
    assert_eq!(parse_module(&printed)?.to_string(), printed, "printing is a fixed point");
    let message = proto::serialize_module(&module)?;
    assert!(message.len() < 10 * text.len() + 1000, "{} bytes", message.len());
    let module = VerifiedModule::new(module)?;
    let value = evaluate(&module, Vec::new());
    let again = VerifiedModule::new(proto::parse_module(&message)?)?;
    assert_eq!(value.as_ref().ok(), evaluate(&again, Vec::new()).as_ref().ok());
    value
}

#[test]
fn huge_constants_are_read_printed_serialised_and_evaluated() {
    for (ty, value) in [("f32", "{...}"), ("s8", "0"), ("pred", "false"), ("c64", "{...}"), ("f8e8m0fnu", "{...}")] {
        let rows = HUGE / 8;
        let text = format!(
            "ENTRY main {{\n a = {ty}[{rows},4] constant({value})\n b = {ty}[{rows},4] copy(a)\n \
             c = {ty}[4,{rows}] transpose(b), dimensions={{1,0}}\n d = {ty}[2,{rows},2] reshape(c)\n \
             e = {ty}[2,{rows},2] reverse(d), dimensions={{1}}\n ROOT f = {ty}[1,2,1] slice(e), slice={{[0:1], [5:7], [1:2]}}\n}}"
        );
        let result = run(&text).unwrap();
        assert_eq!(result.bytes(), vec![0; result.byte_len()], "{ty}");
    }
    let text = format!(
        "ENTRY main {{\n a = s32[{HUGE}] constant(0)\n b = s32[] constant(7)\n c = s32[{HUGE}] broadcast(b), dimensions={{}}\n \
         d = s32[{HUGE}] add(a, c)\n e = pred[{HUGE}] compare(a, d), direction=LT\n f = s32[{HUGE}] select(e, d, a)\n \
         i = s32[] constant(9)\n ROOT g = s32[2] dynamic-slice(f, i), dynamic_slice_sizes={{2}}\n}}"
    );
    assert_eq!(run(&text).unwrap(), parse_literal("s32[2] {7, 7}").unwrap());
}

#[test]
fn huge_arrays_that_are_needed_are_an_error() {
    let text = format!(
        "ENTRY main {{\n a = s32[{HUGE}] constant(0)\n i = s32[] constant(9)\n u = s32[1] constant({{5}})\n \
         b = s32[{HUGE}] dynamic-update-slice(a, u, i)\n ROOT c = s32[1] slice(b), slice={{[9:10]}}\n}}"
    );
    assert!(run(&text).unwrap_err().message().contains("no memory"));
    let tuple = format!("ENTRY main {{\n ROOT a = (s32[{HUGE}]) constant((0))\n}}");
    let error = proto::serialize_module(&parse_module(&tuple).unwrap()).unwrap_err();
    assert!(error.message().contains("protobuf messages at most 2147483647"), "{error}");
}

#[test]
fn one_number_for_an_array() {
    for (text, same) in [
        ("s8[3] 0", "s8[3] {0, 0, 0}"),
        ("f32[2,2] 0.0", "f32[2,2] {{0, 0}, {0, 0}}"),
        ("pred[2] false", "pred[2] {0, 0}"),
        ("c64[2] (0, 0)", "c64[2] {(0, 0), (0, 0)}"),
        ("(f32[2] 0, s8[] 3)", "(f32[2] {0, 0}, s8[] 3)"),
    ] {
        assert_eq!(parse_literal(text).unwrap(), parse_literal(same).unwrap(), "{text}");
    }
    for text in ["s8[3] 1", "f32[2] -0.0", "pred[2] true", "f32[2] nan"] {
        let error = parse_literal(text).unwrap_err();
        assert!(error.message().contains("unless it is 0; write `c ="), "{text}: {error}");
    }
    assert!(parse_literal("f8e8m0fnu[2] 0").is_err(), "there is no zero");
}

#[test]
fn omitted_constants_are_counted() {
    let text = "ENTRY main {\n a = f32[3] constant({...})\n b = (f32[2], s8[2]) constant(({...}, {...}))\n \
                ROOT c = f32[2] constant({1, 2})\n}";
    let (module, omitted) = parse_module_counting_omitted(text).unwrap();
    assert_eq!(omitted, 3);
    let zeros = parse_literal("f32[3] {0, 0, 0}").unwrap();
    assert!(literals(&module).contains(&zeros));
}

fn literals(module: &Module) -> Vec<Literal> {
    let constant = |op: &Op| match op {
        Op::Constant(constant) => Some(constant.literal.clone()),
        _ => None,
    };
    module.entry().iter().filter_map(|(_, i)| constant(i.op())).collect()
}

/// Equal elements that are read singly are stored once.
#[test]
fn read_elements_that_are_equal_are_kept_once() {
    let text = "ENTRY main {\n ROOT a = f32[2000] constant({X})\n}".replace('X', &"1.5, ".repeat(2000));
    let module = parse_module(&text).unwrap();
    assert!(literals(&module)[0].as_splat().is_some());
    assert!(module.to_string().contains("1.5, 1.5"));
    let again = proto::parse_module(&proto::serialize_module(&module).unwrap()).unwrap();
    assert_eq!(evaluate(&module, Vec::new()).unwrap(), evaluate(&again, Vec::new()).unwrap());
}
