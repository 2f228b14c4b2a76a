//! Tests of malformed protobuf: every error contains its location, and nothing panics, hangs or exhausts memory.

use prost::Message;
use prost::bytes::Bytes;
use xla_hlo::proto::messages::{
    BufferDonorEntryProto, HloComputationProto, HloInstructionProto, HloModuleProto, InstructionSequenceProto,
    LayoutProto, LiteralProto, PayloadProto, ShapeProto,
};
use xla_hlo::proto::{parse_module, serialize_module};
use xla_hlo::{Error, text};

const TEXT: &str = "HloModule m, is_scheduled=true\n\nsum {\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  \
     ROOT z = f32[] add(x, y)\n}\n\nENTRY main {\n  a = f32[2,3]{1,0} parameter(0)\n  zero = f32[] constant(0)\n  \
     r = f32[2]{0} reduce(a, zero), dimensions={1}, to_apply=sum\n  ROOT n = f32[2]{0} negate(r)\n}\n";

fn module() -> HloModuleProto {
    let bytes = serialize_module(&text::parse_module(TEXT).unwrap()).unwrap();
    HloModuleProto::decode(&bytes[..]).unwrap()
}

/// Returns the module with instruction `i` of the entry computation changed.
fn with_instruction(i: usize, change: impl FnOnce(&mut HloInstructionProto)) -> HloModuleProto {
    with_computation(1, |computation| {
        let mut instruction = HloInstructionProto::decode(&computation.instructions[i][..]).unwrap();
        change(&mut instruction);
        computation.instructions[i] = instruction.encode_to_vec().into();
    })
}

fn with_computation(i: usize, change: impl FnOnce(&mut HloComputationProto)) -> HloModuleProto {
    let mut module = module();
    let mut computation = HloComputationProto::decode(&module.computations[i][..]).unwrap();
    change(&mut computation);
    module.computations[i] = computation.encode_to_vec().into();
    module
}

fn with_module(change: impl FnOnce(&mut HloModuleProto)) -> HloModuleProto {
    let mut module = module();
    change(&mut module);
    module
}

fn message(bytes: &[u8]) -> String {
    match parse_module(bytes) {
        Ok(module) => panic!("a malformed module was accepted:\n{module}"),
        Err(Error::Internal(why)) => panic!("a bug was found: {why}"),
        Err(error) => error.to_string(),
    }
}

fn shape(instruction: &mut HloInstructionProto) -> &mut ShapeProto {
    instruction.shape.as_mut().unwrap()
}

fn layout(instruction: &mut HloInstructionProto) -> &mut LayoutProto {
    shape(instruction).layout.as_mut().unwrap()
}

fn literal(instruction: &mut HloInstructionProto) -> &mut LiteralProto {
    instruction.literal.as_mut().unwrap()
}

#[test]
fn messages() {
    let id = |computation: i64, place: i64| (computation << 32) | place;
    let modules = [
        with_module(|m| m.computations.clear()),
        with_module(|m| m.entry_computation_id = 7),
        with_module(|m| m.computations.push(m.computations[0].clone())),
        with_module(|m| m.computations[0] = Bytes::from_static(b"\x0a\x01s\x12\x7f")),
        with_module(|m| m.input_output_alias.as_mut().unwrap().entries.push(Default::default())),
        with_module(|m| {
            let donor = BufferDonorEntryProto { parameter_number: -1, parameter_shape_index: Vec::new() };
            m.buffer_donor.as_mut().unwrap().entries.push(donor);
        }),
        with_module(|m| m.host_program_shape.as_mut().unwrap().result = None),
        with_module(|m| drop(m.schedule.as_mut().unwrap().sequences.insert(9, InstructionSequenceProto::default()))),
        with_module(|m| m.schedule.as_mut().unwrap().sequences.get_mut(&1).unwrap().instruction_ids[0] = 5),
        with_computation(1, |c| c.root_id = 77),
        with_computation(1, |c| c.instructions.swap(2, 3)),
        with_computation(1, |c| c.instructions[0] = Bytes::from_static(b"\x0a\x7f")),
        with_computation(1, |c| c.instructions[0] = Bytes::new()),
        with_instruction(0, |i| i.id = id(2, 1)),
        with_instruction(0, |i| i.opcode = "parametre".to_string()),
        with_instruction(0, |i| i.parameter_number = -1),
        with_instruction(0, |i| i.shape = None),
        with_instruction(0, |i| shape(i).element_type = 99),
        with_instruction(0, |i| shape(i).dimensions[0] = -2),
        with_instruction(0, |i| shape(i).dimensions = vec![1_000_000_000_000_000_000; 2]),
        with_instruction(0, |i| shape(i).is_dynamic_dimension = vec![true]),
        with_instruction(0, |i| layout(i).minor_to_major = vec![0, 0]),
        with_instruction(0, |i| layout(i).element_size_in_bits = -4),
        with_instruction(0, |i| layout(i).pointer_primitive_type = 13),
        with_instruction(1, |i| i.literal = None),
        with_instruction(1, |i| literal(i).f32s.clear()),
        with_instruction(1, |i| literal(i).shape = None),
        with_instruction(1, |i| literal(i).shape.as_mut().unwrap().dimensions = vec![1 << 40]),
        with_instruction(1, |i| literal(i).shape.as_mut().unwrap().element_type = 17 + 17),
        with_instruction(2, |i| i.operand_ids.truncate(1)),
        with_instruction(2, |i| i.operand_ids[1] = id(2, 3)),
        with_instruction(2, |i| i.operand_ids[1] = id(2, 2)),
        with_instruction(2, |i| i.control_predecessor_ids.push(-1)),
        with_instruction(2, |i| i.called_computation_ids[0] = 2),
        with_instruction(2, |i| i.called_computation_ids[0] = 3),
        with_instruction(2, |i| i.called_computation_ids.clear()),
        with_instruction(2, |i| i.dimensions[0] = -1),
        with_instruction(3, |i| i.opcode = "compare".to_string()),
        with_instruction(3, |i| i.opcode = "fusion".to_string()),
        with_instruction(3, |i| i.metadata.as_mut().unwrap().metadata_payload = Some(PayloadProto { index: Some(3) })),
        with_instruction(3, |i| i.sharding.insert(Default::default()).r#type = 9),
        with_instruction(3, |i| i.sharding.insert(Default::default()).r#type = 3),
        with_instruction(3, |i| i.result_accuracy.insert(Default::default()).mode = Some(5)),
    ];
    let mut messages = String::new();
    for module in &modules {
        match parse_module(&module.encode_to_vec()) {
            Err(error) => messages += &format!("{error}\n"),
            Ok(_) => messages += "accepted\n",
        }
    }
    insta::assert_snapshot!(messages);
}

#[test]
fn truncated_messages_are_refused() {
    let bytes = module().encode_to_vec();
    parse_module(&bytes).unwrap();
    for length in 0..bytes.len() {
        // Bytes cut after a field of the header are a valid module.
        if let Err(error) = parse_module(&bytes[..length]) {
            assert!(error.to_string().starts_with("serialised HLO: "), "{error}");
        }
    }
    assert_eq!(message(&[]), "serialised HLO: the module has no computation");
}

#[test]
fn nesting_is_limited() {
    let mut deep = Vec::new();
    for _ in 0..100_000 {
        let mut outer = Vec::new();
        prost::encoding::encode_key(4, prost::encoding::WireType::LengthDelimited, &mut outer);
        prost::encoding::encode_varint(deep.len() as u64, &mut outer);
        // Nested from the inside out, with only the front of each message: the lengths are wrong, the nesting is valid.
        outer.extend(deep.iter().take(4_000));
        deep = outer;
    }
    let mut instruction = b"\x0a\x01x\x12\x05tuple\x1a".to_vec();
    prost::encoding::encode_varint(deep.len() as u64, &mut instruction);
    instruction.extend(deep);
    let module = with_computation(1, |c| c.instructions[0] = instruction.into());
    assert!(message(&module.encode_to_vec()).starts_with("serialised HLO: computation main: entry 0 of instructions"));

    let nested = format!("ENTRY e {{ ROOT t = {}f32[]{} parameter(0) }}", "(".repeat(150), ")".repeat(150));
    let error = serialize_module(&text::parse_module(&nested).unwrap()).unwrap_err().to_string();
    assert!(error.contains("a tuple nests deeper than the 90 levels"), "{error}");
}

/// Flipping any bit of a module results in an error with a location, or another module.
#[test]
fn flipped_bits_are_refused_or_mean_something() {
    let bytes = module().encode_to_vec();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        match parse_module(&flipped) {
            Ok(module) => drop(xla_hlo::VerifiedModule::new(module)),
            Err(error) => assert!(error.to_string().starts_with("serialised HLO: "), "{error}"),
        }
    }
}

#[test]
fn what_text_cannot_say_gets_a_name_or_is_refused() {
    let mut nameless = with_computation(1, |computation| computation.name.clear());
    nameless.name.clear();
    let module = parse_module(&nameless.encode_to_vec()).unwrap();
    assert_eq!((module.name(), module.entry().name()), ("module", "computation"));
    assert_eq!(text::parse_module(&module.to_string()).unwrap().to_string(), module.to_string());

    for key in ["", "a\u{7f}b", "1"] {
        let key = key.to_string();
        let module = with_module(|m| drop(m.frontend_attributes.get_or_insert_default().map.insert(key, "x".into())));
        let message = message(&module.encode_to_vec());
        assert!(message.contains("frontend_attributes") && message.contains("is not a name"), "{message}");
    }
}
