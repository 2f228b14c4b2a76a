//! Tests of special cases of the protobuf form: messages around modules, ids, order, and values that are structured in
//! protobuf and text in modules.

use std::collections::BTreeMap;

use prost::Message;
use xla_hlo::proto::messages::{HloComputationProto, HloInstructionProto, HloModuleProto};
use xla_hlo::proto::{parse_module, serialize_module};
use xla_hlo::text;

/// Returns the text of a module after a round trip through protobuf.
fn round_trip(module: &str) -> String {
    let module = text::parse_module(module).unwrap_or_else(|e| panic!("{e}"));
    let bytes = serialize_module(&module).unwrap_or_else(|e| panic!("{e}"));
    let again = parse_module(&bytes).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(serialize_module(&again).unwrap(), bytes, "serialising is no fixed point");
    again.to_string()
}

/// Asserts that a round trip preserves a text.
fn assert_kept(instructions: &str) {
    let text = format!("HloModule m\n\nENTRY e {{\n{instructions}\n}}\n");
    let printed = text::parse_module(&text).unwrap_or_else(|e| panic!("{e}")).to_string();
    assert_eq!(round_trip(&printed), printed);
}

/// Returns a length-delimited field.
fn field(number: u32, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    prost::encoding::encode_key(number, prost::encoding::WireType::LengthDelimited, &mut out);
    prost::encoding::encode_varint(bytes.len() as u64, &mut out);
    out.extend(bytes);
    out
}

fn edited(text: &str, change: impl FnOnce(&mut HloModuleProto)) -> Vec<u8> {
    let bytes = serialize_module(&text::parse_module(text).unwrap()).unwrap();
    let mut proto = HloModuleProto::decode(&bytes[..]).unwrap();
    change(&mut proto);
    proto.encode_to_vec()
}

const CALLS: &str = include_str!("programs/calls.hlo");

#[test]
fn messages_around_a_module_are_taken_off() {
    let bytes = serialize_module(&text::parse_module(CALLS).unwrap()).unwrap();
    let expected = parse_module(&bytes).unwrap().to_string();
    let hlo_proto = [field(1, &bytes), field(3, b"")].concat();
    assert_eq!(parse_module(&hlo_proto).unwrap().to_string(), expected);
    let snapshot = [field(1, &hlo_proto), field(4, b"cpu")].concat();
    assert_eq!(parse_module(&snapshot).unwrap().to_string(), expected);
    let config = [0x20, 2, 0x28, 3];
    let module = parse_module(&[field(1, &bytes), field(2, &config)].concat()).unwrap();
    assert_eq!((module.attributes().replica_count, module.attributes().num_partitions), (2, 3));
    let nameless = edited(CALLS, |proto| proto.name.clear());
    parse_module(&nameless).unwrap();
    parse_module(&field(1, &nameless)).unwrap();
}

#[test]
fn unknown_fields_are_passed_over() {
    let bytes = serialize_module(&text::parse_module(CALLS).unwrap()).unwrap();
    let more = [&bytes[..], &field(999, b"later"), &[0x58, 1]].concat();
    assert_eq!(parse_module(&more).unwrap().to_string(), parse_module(&bytes).unwrap().to_string());
}

#[test]
fn computations_come_in_any_order() {
    let expected = round_trip(CALLS);
    let reversed = edited(CALLS, |proto| proto.computations.reverse());
    assert_eq!(parse_module(&reversed).unwrap().to_string(), expected);
}

/// Older producers number instructions across the module, without the computation in the upper half.
#[test]
fn ids_may_be_plain_numbers() {
    let plain = edited(CALLS, |proto| {
        let mut next = 100;
        for bytes in &mut proto.computations {
            let mut computation = HloComputationProto::decode(&bytes[..]).unwrap();
            let mut ids = BTreeMap::new();
            for bytes in &mut computation.instructions {
                let mut instruction = HloInstructionProto::decode(&bytes[..]).unwrap();
                ids.insert(instruction.id, next);
                instruction.id = next;
                instruction.operand_ids.iter_mut().for_each(|id| *id = ids[id]);
                *bytes = instruction.encode_to_vec().into();
                next += 1;
            }
            computation.root_id = ids[&computation.root_id];
            *bytes = computation.encode_to_vec().into();
        }
    });
    assert_eq!(parse_module(&plain).unwrap().to_string(), round_trip(CALLS));
}

#[test]
fn names_that_text_cannot_spell_are_changed() {
    let bytes = edited("ENTRY e { ROOT a = f32[] parameter(0) }", |proto| {
        proto.name = "jit(f) \u{e9}".to_string();
        let mut computation = HloComputationProto::decode(&proto.computations[0][..]).unwrap();
        computation.name = "1st.main".to_string();
        let mut instruction = HloInstructionProto::decode(&computation.instructions[0][..]).unwrap();
        instruction.name = "args[0]".to_string();
        computation.instructions[0] = instruction.encode_to_vec().into();
        proto.computations[0] = computation.encode_to_vec().into();
    });
    let module = parse_module(&bytes).unwrap();
    assert_eq!((module.name(), module.entry().name()), ("jit_f___", "_st.main"));
    assert_eq!(module.entry()[module.entry().root()].name(), "args_0_");
    text::parse_module(&module.to_string()).unwrap();
}

#[test]
fn names_differ_in_the_whole_message() {
    insta::assert_snapshot!(round_trip(include_str!("programs/names_differ_in_the_whole_message.hlo")));
}

#[test]
fn headers() {
    insta::assert_snapshot!(round_trip(include_str!("programs/headers.hlo")));
}

#[test]
fn shapes_are_kept() {
    assert_kept(
        "  a = f32[?,<=4,3]{2,0,1} parameter(0)\n  b = opaque[] parameter(1)\n  c = b(f32[2]{0}) parameter(2)\n  \
         d = (token[], (), (s4[2]{0:E(4)})) parameter(3)\n  \
         e = f32[8,8]{0,1:T(8,128)(*,2)L(4)E(32)S(1)SC(1:3,5)M(8)} parameter(4)\n  \
         f = u32[]{:S(2)} parameter(5)\n  g = f32[2]{0:#(u32)*(u8)} parameter(6)\n  ROOT r = () tuple()",
    );
}

#[test]
fn literals_are_kept() {
    assert_kept(
        "  a = f32[2,3]{0,1} constant({{1, 2, 3}, {4, 5, 6}})\n  b = s4[3] constant({-8, -1, 7})\n  \
         c = u2[3] constant({0, 1, 3})\n  d = s1[2] constant({-1, 0})\n  e = pred[2] constant({1, 0})\n  \
         f = f16[3] constant({1.5, -inf, nan})\n  g = bf16[2]{0} constant({-0.0, 1e10})\n  \
         h = c64[1,2]{0,1} constant({{(1, -2), (nan(0x1234), inf)}})\n  i = c128[] constant((1e300, -0.0))\n  \
         j = f8e8m0fnu[2] constant({1, nan})\n  k = f4e2m1fn[2] constant({-6, 0.5})\n  l = f6e3m2fn[1] constant({28})\n  \
         m = s64[1] constant({-9223372036854775808})\n  n = u64[1] constant({18446744073709551615})\n  \
         o = (f32[], (s16[2], u16[0])) constant((1, ({-1, 32767}, {})))\n  p = u8[2,2,2]{1,2,0} constant({{{1,2},{3,4}},{{5,6},{7,255}}})\n  \
         q = f64[1] constant({-nan(0x1)})\n  s = f8e4m3fn[1] constant({448})\n  ROOT r = () tuple()",
    );
}

#[test]
fn annotations_are_kept() {
    assert_kept(
        "  a = f32[2] parameter(0), parameter_replication={true}, sharding={devices=[2]0,1 metadata={op_name=\"z\"}}\n  \
         b = (f32[2], (f32[], f32[])) parameter(1), sharding={{replicated shard_as 3}, {maximal device=3}, {manual}}, \
         origin={({\"x\" {0}}, ({}, {\"y\" {1,0}}))}\n  \
         c = f32[2] sine(a), sharding={devices=[2,2]<=[4] last_tile_dims={manual}}, result_accuracy={mode=highest}, \
         metadata={op_type=\"t\" op_name=\"n\" source_file=\"f\" source_line=3 source_end_line=4 source_column=5 \
         source_end_column=6 profile_type={1} deduplicated_name=\"d\" scheduling_name=\"s\" stack_frame_id=2 \
         metadata_payload=\"p\"}\n  \
         d = f32[2] cosine(c), sharding={devices=[2,2]<=[2,2]T(1,0) last_tile_dim_replicate shard_like 4}, \
         result_accuracy={tolerance={atol=1,rtol=0.5,ulps=2}}, frontend_attributes={x=\"y\",z={\"a\": 1}}, \
         origin={{\"x\"}}, control-predecessors={b}, statistics={visualizing_index=1,s=1.5,t=1e-300}\n  \
         f = f32[2] negate(d), sharding={mesh['x'=2,'y'=4], [{'x', ?}], replicated={'y'}}, origin={[synthetic_call]}\n  \
         g = f32[2] negate(f), sharding={maximal_mesh[device_id=3]}, origin={()}, backend_config=\"text\"\n  \
         h = f32[2] negate(g), sharding={mesh['x'=2,'y'=4], [{'y':(1)2}], unreduced={'x'}, manual={'y':(2)2}, \
         metadata={{op_name=\"x\"}}}\n  \
         i = f32[2] negate(h), sharding={mesh['x'=4], device_ids=([2,2]T(1,0)), replicated}\n  \
         j = f32[2] negate(i), sharding={mesh['x'=2,'y'=2], device_ids=(0,2,1,3), unreduced}, backend_config={\"a\": 2}\n  \
         ROOT r = () tuple(), sharding={}",
    );
}

#[test]
fn numbers_of_statistics_read_back() {
    let text = "ENTRY e { ROOT a = f32[] parameter(0), statistics={visualizing_index=0,s=1e-300} }";
    let bytes = serialize_module(&text::parse_module(text).unwrap()).unwrap();
    let at =
        bytes.windows(8).position(|window| window == 1e-300_f64.to_le_bytes()).expect("the number is in the message");
    let statistic = |value: f64| {
        let mut bytes = bytes.clone();
        bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        let module = parse_module(&bytes).unwrap();
        module.entry()[module.entry().root()].annotations().unwrap().statistics[1].1.clone()
    };
    for value in [0.0, -0.0, 1.5, 0.1, 3.0, 1e300, -2.5e-300, f64::INFINITY, f64::MAX, 1e-5, 123456789012345678.0] {
        assert_eq!(statistic(value).parse::<f64>().unwrap().to_bits(), value.to_bits(), "{value}");
    }
    assert_eq!(statistic(f64::NAN), "nan");
}
