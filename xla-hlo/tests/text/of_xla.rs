//! Tests of text in XLA's own modules that was once rejected: it is parsed, valid, printed, and parsed again.

use prost::Message;
use xla_hlo::eval::evaluate;
use xla_hlo::proto::messages::{HloComputationProto, HloInstructionProto, HloModuleProto};
use xla_hlo::text::parse_module;
use xla_hlo::{ArrayShape, ElementType, Literal, Module, Opcode, Scalar, VerifiedModule, proto};

const CALLED: &str = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT r = f32[] add(a, b) }\n\
    neg { a = f32[4] parameter(0) ROOT r = f32[4] negate(a) }\n\
    twice { a = f32[4] parameter(0) x = f32[4] fusion(a), kind=kLoop, calls=neg \
            ROOT y = f32[4] fusion(x), kind=kLoop, calls=neg }\n";

/// Returns a valid module of instructions over `a: f32[4]`; printing it must be a fixed point.
fn valid(header: &str, instructions: &str) -> VerifiedModule {
    let text = format!("HloModule m{header}\n{CALLED}ENTRY main {{\n a = f32[4] parameter(0)\n {instructions}\n}}");
    let module = parse_module(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
    let printed = module.to_string();
    let again = parse_module(&printed).unwrap_or_else(|e| panic!("{printed}: {e}"));
    assert_eq!(again.to_string(), printed);
    VerifiedModule::new(module).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn refusal(header: &str, instructions: &str) -> String {
    let text = format!("HloModule m{header}\n{CALLED}ENTRY main {{\n a = f32[4] parameter(0)\n {instructions}\n}}");
    let error = parse_module(&text).and_then(VerifiedModule::new).err();
    error.unwrap_or_else(|| panic!("{text}: is taken")).message().to_string()
}

/// Returns the module after a round trip through protobuf.
fn through_proto(module: &Module) -> Module {
    proto::parse_module(&proto::serialize_module(module).unwrap()).unwrap()
}

#[test]
fn words_in_upper_and_lower_case() {
    let dot =
        "b = f32[2,2] reshape(a)\n ROOT d = f32[2,2] dot(b, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}";
    for (instructions, printed) in [
        (format!("{dot}, operand_precision={{HIGH,Highest}}"), "operand_precision={high,highest}"),
        (format!("{dot}, algorithm=DOT_F32_F32_F32"), "algorithm=dot_f32_f32_f32"),
        ("ROOT e = f32[4] exponential(a), result_accuracy={mode=HIGHEST}".into(), "result_accuracy={mode=highest}"),
        (
            "s = u64[2] constant({1,2}) ROOT r = (u64[2], u32[4]) rng-bit-generator(s), algorithm=RNG_PHILOX".into(),
            "algorithm=rng_philox",
        ),
        (
            "z = f32[] constant(0) o = f32[] constant(1) ROOT r = f32[4] rng(z, o), distribution=RNG_UNIFORM".into(),
            "distribution=rng_uniform",
        ),
        (
            "ROOT c = f32[4] custom-call(a), custom_call_target=\"x\", schedule=schedule_latest, \
             api_version=api_version_typed_ffi"
                .into(),
            "schedule=SCHEDULE_LATEST, api_version=API_VERSION_TYPED_FFI",
        ),
    ] {
        let text = valid("", &instructions).to_string();
        assert!(text.contains(printed), "{text} lacks {printed}");
    }
    // XLA accepts these keywords in one case only.
    assert!(refusal("", "ROOT c = pred[4] compare(a, a), direction=lt").contains("attribute direction"));
    assert!(refusal("", "ROOT c = f32[4] fusion(a), kind=KLOOP, calls=neg").contains("attribute kind"));
}

#[test]
fn alias_of_another_shape_of_as_many_bytes() {
    let alias = ", input_output_alias={ {}: (0, {}, may-alias) }";
    for root in ["s32[2,2] bitcast-convert(b)", "f32[2,2] negate(b)", "f32[2,2]{0,1} negate(b)"] {
        valid(alias, &format!("b = f32[2,2] reshape(a)\n ROOT r = {root}"));
    }
    let message = refusal(alias, "ROOT r = f32[2] slice(a), slice={[0:2]}");
    assert!(message.contains("ties an output of f32[2]{0} to a parameter of f32[4]{0}, which differs in size"));
    refusal(alias, "ROOT r = (f32[4]) tuple(a)");
}

#[test]
fn buffers_of_custom_calls_live_in_arrays() {
    let text = valid(
        "",
        "p = b(f32[4]) custom-call(a), custom_call_target=\"Pin\", output_to_operand_aliasing={{}: (0, {})}\n \
         f = (b(f32[4]), f32[4]) custom-call(p, a), custom_call_target=\"f\", output_to_operand_aliasing={{0}: (0, {})}\n \
         b = b(f32[4]) get-tuple-element(f), index=0\n \
         ROOT r = f32[4] custom-call(b), custom_call_target=\"Unpin\", output_to_operand_aliasing={{}: (0, {})}",
    );
    let again = VerifiedModule::new(through_proto(&text)).unwrap().to_string();
    assert!(again.contains("b(f32[4]{0}) get-tuple-element"), "{again}");
    let other =
        "ROOT p = b(f32[5]) custom-call(a), custom_call_target=\"Pin\", output_to_operand_aliasing={{}: (0, {})}";
    assert!(refusal("", other).contains("cannot alias operand 0"));
}

#[test]
fn channel_zero() {
    let all_reduce =
        "ROOT r = f32[4] all-reduce(a), channel_id=0, replica_groups={{0}}, use_global_device_ids=true, to_apply=add";
    let module = valid("", all_reduce);
    assert!(module.to_string().contains("channel_id=0"));
    // In protobuf 0 means no channel, which would change the meaning of the groups.
    assert!(proto::serialize_module(&module).unwrap_err().message().contains("channel_id=0 cannot be written"));
    valid("", "ROOT r = f32[4] collective-permute(a), channel_id=0, source_target_pairs={{0,0}}");
    let send = "t = token[] after-all()\n s = (f32[4], u32[], token[]) send(a, t), channel_id=0\n \
                d = token[] send-done(s), channel_id=0\n ROOT r = f32[4] negate(a)";
    through_proto(&valid("", send));
}

#[test]
fn fusions_of_one_computation() {
    let a = |x: f64| Literal::splat(&ArrayShape::new(ElementType::F32, [4]), Scalar::Float(x)).unwrap();
    for (instructions, fusions, value) in [
        ("x = f32[4] fusion(a), kind=kLoop, calls=neg\n ROOT r = f32[4] fusion(x), kind=kLoop, calls=neg", 4, 2.0),
        ("x = f32[4] fusion(a), kind=kLoop, calls=neg\n ROOT r = f32[4] call(x), to_apply=neg", 3, 2.0),
        ("x = f32[4] fusion(a), kind=kLoop, calls=twice\n ROOT r = f32[4] fusion(x), kind=kLoop, calls=twice", 6, 2.0),
    ] {
        let module = valid("", instructions);
        let count = module.iter().flat_map(|(_, c)| c.iter()).filter(|(_, i)| i.opcode() == Opcode::Fusion).count();
        assert_eq!((count, evaluate(&module, vec![a(2.0)]).unwrap()), (fusions, a(value)), "{instructions}");
        assert_eq!(evaluate(&VerifiedModule::new(through_proto(&module)).unwrap(), vec![a(2.0)]).unwrap(), a(value));
    }
}

/// A protobuf with a computation that two fusions call, as XLA writes one.
#[test]
fn fusions_of_one_computation_in_a_message() {
    let text = "x = f32[4] fusion(a), kind=kLoop, calls=neg\n ROOT r = f32[4] fusion(x), kind=kLoop, calls=neg";
    let own = valid("", text);
    let mut message = HloModuleProto::decode(&proto::serialize_module(&own).unwrap()[..]).unwrap();
    let entry = message.computations.pop().unwrap();
    let mut entry = HloComputationProto::decode(entry).unwrap();
    let mut called = Vec::new();
    for bytes in &mut entry.instructions {
        let mut instruction = HloInstructionProto::decode(bytes.clone()).unwrap();
        called.append(&mut instruction.called_computation_ids.clone());
        if let Some(&first) = called.first().filter(|_| instruction.opcode == "fusion") {
            instruction.called_computation_ids = vec![first];
        }
        *bytes = instruction.encode_to_vec().into();
    }
    assert_eq!(called.len(), 2);
    message.computations.retain(|c| HloComputationProto::decode(c.clone()).unwrap().id != called[1]);
    message.computations.push(entry.encode_to_vec().into());
    let module = proto::parse_module(&message.encode_to_vec()).unwrap();
    assert_eq!(module.len(), own.len());
    VerifiedModule::new(module).unwrap();
}

#[test]
fn fusions_that_would_multiply_without_end_are_refused() {
    let mut text = String::from("f0 { a = f32[4] parameter(0) ROOT r = f32[4] negate(a) }\n");
    for i in 1..40 {
        text.push_str(&format!(
            "f{i} {{ a = f32[4] parameter(0) x = f32[4] fusion(a), kind=kLoop, calls=f{0} \
             ROOT y = f32[4] fusion(x), kind=kLoop, calls=f{0} }}\n",
            i - 1
        ));
    }
    assert!(parse_module(&text).unwrap_err().message().contains("fusions share computations"));
}

#[test]
fn slices_sent_by_one_source_to_several_targets() {
    let permute = |pairs: &str, count: usize| {
        let (places, sizes) = (vec!["(s32[])"; count].join(", "), vec!["{2}"; count].join(","));
        let values = vec!["t"; count].join(", ");
        format!(
            "i = s32[] constant(0)\n t = (s32[]) tuple(i)\n p = ({places}) tuple({values})\n \
             ROOT r = f32[4] collective-permute(a, a, p, p), source_target_pairs={pairs}, slice_sizes={{{sizes}}}"
        )
    };
    valid(", replica_count=3", &permute("{{0,1},{0,2},{1,2},{1,0}}", 2));
    let message = refusal(", replica_count=3", &permute("{{0,1},{0,2}}", 1));
    assert!(message.contains("source 0 appears more than once"), "{message}");
    let message = refusal(", replica_count=3", &permute("{{0,1},{1,1},{2,1}}", 2));
    assert!(message.contains("target 1 appears more than 2 times"), "{message}");
    let all = valid("", &permute("{{0,0},{0,0}}", 2));
    let a = Literal::splat(&ArrayShape::new(ElementType::F32, [4]), Scalar::Float(3.0)).unwrap();
    assert_eq!(evaluate(&all, vec![a.clone()]).unwrap(), a);
    let some = valid("", &permute("{{0,0},{0,1}}", 2));
    assert!(evaluate(&some, vec![a]).unwrap_err().message().contains("to this device and to others"));
}
