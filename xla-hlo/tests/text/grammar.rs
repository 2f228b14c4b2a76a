//! Tests of corner cases of the text form: hand-written modules and their printed form.

use xla_hlo::text::{PrintOptions, parse_literal, parse_module, parse_shape, print_module};
use xla_hlo::{Literal, Module};

/// Parses a module, checks that printing it is a fixed point, and returns the printed text.
fn printed(text: &str) -> String {
    let module = parse(text);
    let printed = module.to_string();
    assert_eq!(parse(&printed).to_string(), printed, "printing is no fixed point");
    printed
}

fn parse(text: &str) -> Module {
    parse_module(text).unwrap_or_else(|e| panic!("{e}"))
}

/// Prints the instructions of an entry computation with the parameters that most cases need.
fn body(instructions: &str) -> String {
    printed(&format!(
        "HloModule m\nsum {{ x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }}\n\
         keep {{ p = f32[2,3] parameter(0) }}\n\
         ENTRY main {{ a = f32[2,3] parameter(0) b = f32[2,3] parameter(1) i = s32[] parameter(2) zero = f32[] constant(0)\n\
         {instructions} }}"
    ))
}

#[test]
fn names_and_comments() {
    insta::assert_snapshot!(printed(
        "// a comment before\nHloModule a-b.c /* in between */\n\n/* * / */ %add.1 (%a.2: f32[], b.3 : f32[]) -> f32[] {\n\
         // nothing here\n  %a.2 = f32[] parameter(0)\n\tb.3 = f32[] parameter(1)\r\n  ROOT %c-4 = f32[] add(f32[] %a.2,f32[] b.3) }\n\
         ENTRY _ { inf.1 = f32[]parameter(0) nan_x = f32[] parameter(1) %inf = f32[] parameter(2) f32 = f32[] parameter(3)\n\
         ROOT r = (f32[],f32[],f32[],f32[]) tuple(inf.1, nan_x, %inf, %f32)}"
    ));
}

#[test]
fn header_attributes() {
    insta::assert_snapshot!(printed(
        r#"HloModule m, is_scheduled=true, entry_computation_layout={(f32[2,3]{0,1}, s32[])->(f32[2,3]{1,0:T(2,128)}, s32[])},
        input_output_alias={ {0}: (0, {}, must-alias), {1}: (1, {}) }, buffer_donor={ (0, {}), (1, {}) },
        alias_passthrough_params=true, replica_count=2, num_partitions=4,
        allow_spmd_sharding_propagation_to_parameters={true,false}, allow_spmd_sharding_propagation_to_output=true,
        frontend_attributes={a="text \"quoted\"",b={"json": {"x": "}"}},a.b-c={mesh = #sdy.mesh<["a"=2]>}},
        origin_recovery_table={ {"name" {0}} : {"name"  {1}}, "HloModule x" }, debug_attributes={ {"n"}:({log_mode=default}) }
        ENTRY main { a = f32[2,3]{0,1} parameter(0) b = s32[] parameter(1) ROOT t = (f32[2,3], s32[]) tuple(a, b) }"#
    ));
}

#[test]
fn defaults_are_not_printed() {
    let header = "HloModule m, replica_count=1, num_partitions=1, allow_spmd_sharding_propagation_to_output={false}, \
        is_scheduled=false, alias_passthrough_params=false\n";
    insta::assert_snapshot!(printed(&format!("{header} main {{ a = f32[] parameter(0) }}")));
}

#[test]
fn stack_tables() {
    insta::assert_snapshot!(printed(
        r#"HloModule m
        FileNames 1 "a.py" 2 "dir/b \"c\".py"
        FunctionNames 1 "main" 2 "f.<locals>.g"
        FileLocations 1 {file_name_id=1 function_name_id=2 line=3 end_line=4 column=5 end_column=6} 2 {line=1, file_name_id=2}
        StackFrames 1 {file_location_id=1 parent_frame_id=1} 2 {file_location_id=2 parent_frame_id=2}
        main { a = f32[] parameter(0), metadata={op_name="a" stack_frame_id=2} }"#
    ));
}

#[test]
fn entry_and_root_by_default() {
    insta::assert_snapshot!(printed(
        "first { a = f32[] parameter(0) }\nsecond { ROOT b = f32[] parameter(0) c = f32[] negate(b) }\n"
    ));
    let module = parse("ENTRY first { a = f32[] parameter(0) } second { b = f32[] parameter(0) c = f32[] negate(b) }");
    assert_eq!((module.name(), module.entry().name()), ("module_first", "first"));
    let second = &module[module.find("second").expect("it is there")];
    assert_eq!(second[second.root()].name(), "c");
}

#[test]
fn lone_instructions() {
    insta::assert_snapshot!(printed("%r = f32[10] add(f32[10] %x, f32[10] y), metadata={op_name=\"n\"}"));
    insta::assert_snapshot!(printed("f32[10] add(f32[10], f32[10])"));
    insta::assert_snapshot!(printed(
        "(f32[2], s32[]) reduce(f32[2,3] x, s32[2,3] y, f32[] constant(0), s32[] z), dimensions={1}, to_apply={\n\
         a = f32[] parameter(0) b = s32[] parameter(1) c = f32[] parameter(2) d = s32[] parameter(3)\n\
         ROOT t = (f32[], s32[]) tuple(a, b) }"
    ));
}

#[test]
fn computations_in_attributes_and_operands() {
    insta::assert_snapshot!(body(
        "r = f32[2] reduce(negate(add(a, b)), f32[] constant(1)), dimensions={1}, to_apply={ x = f32[] parameter(0)\n\
         y = f32[] parameter(1) ROOT z = f32[] map(x, y), dimensions={}, to_apply={ x = f32[] parameter(0)\n\
         y = f32[] parameter(1) z = f32[] multiply(x, y) } }\n\
         s = f32[2] reduce(a, zero), dimensions={1}, to_apply=%sum\n\
         c = f32[2,3] conditional(i, a, b, a), branch_computations={keep, { p = f32[2,3] parameter(0) ROOT n = f32[2,3] negate(p) }, %keep}\n\
         q = pred[] compare(i, i), direction=EQ\n\
         d = f32[2,3] conditional(q, a, b), true_computation=keep, false_computation={ROOT p = f32[2,3] parameter(0)}"
    ));
}

/// Shapes that the operation's rule infers can be omitted.
#[test]
fn shapes_left_out() {
    insta::assert_snapshot!(body(
        "s = add(a, b)\n c = compare(s, b), direction=GT\n t = transpose(s), dimensions={1,0}\n\
         d = dot(a, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n u = tuple(s, negate(i))\n\
         ROOT g = get-tuple-element(u), index=0"
    ));
}

#[test]
fn shapes() {
    let texts = [
        "f32[]",
        "f32[2,3]",
        "f32[2,3]{0,1}",
        "f32[<=4,?,5]{2,1,0}",
        "pred[0]{0}",
        "()",
        "(f32[], ((s4[3]{0:E(4)})), token[], opaque[])",
        "u32[]{:S(2)}",
        "f32[]{}",
        "b(f32[4]{0})",
        "bf16[8,128]{1,0:T(8,128)(2,1)S(1)}",
        "f32[8,128]{1,0:T(*,*,8)L(16)#(u32)*(s64)E(8)S(5)SC(0:4,8)(1:64)M(128)}",
        "f32[3]{0:D(D+~)S(1)}",
        "(f32[],f32[],f32[],f32[],f32[],f32[1],f32[])",
        "f8e4m3b11fnuz[1]{0}",
    ];
    let report: Vec<String> = texts
        .iter()
        .map(|text| match parse_shape(text) {
            Ok(shape) => {
                assert_eq!(parse_shape(&shape.to_string()).expect("it was printed"), shape, "{text}");
                format!("{text} -> {shape}")
            }
            Err(e) => format!("{text} -> {e}"),
        })
        .collect();
    insta::assert_snapshot!(report.join("\n"));
}

#[test]
fn literals() {
    let texts = [
        "f32[] -2.5e-3",
        "f32[3] {1, .5, 1.}",
        "f32[2]{0} {0.1, 3.14159274}",
        "f32[2] {-0, 0}",
        "f64[4] {0.1, 1e300, -inf, 4.9e-324}",
        "f16[2] {0.1, 65504}",
        "bf16[4] {0.1, 1e30, nan, -nan}",
        "f32[3] {nan, nan(0x1), -nan(0x7fffff)}",
        "f8e5m2[4] {inf, 1.75, nan, nan(0x3)}",
        "f8e4m3fn[2] {448, -nan}",
        "f8e4m3b11fnuz[2] {30, nan}",
        "f8e8m0fnu[3] {1, 0.25, nan}",
        "f4e2m1fn[3] {6, -0, 0.5}",
        "f6e3m2fn[1] {28}",
        "s4[3] {-8, 7, 0}",
        "u2[2] {0, 3}",
        "s1[2] {-1, 0}",
        "s64[2] {-9223372036854775808, 9223372036854775807}",
        "u64[2] {18446744073709551615, 0}",
        "pred[] true",
        "pred[3] {true, 0, 1}",
        "c64[2] {(1, -2), (0.5, inf)}",
        "c128[] (0.1, -0)",
        "s32[0] {}",
        "f32[0,3] {}",
        "f32[2,0] {{},{}}",
        "f32[2,0,2] {{} {}}",
        "s32[2,1] {{1}, {2}}",
        "s32[2,2] {{1 2} {3,,4}}",
        "s32[1,1,2,2] {{{{1,2},{3,4}}}}",
        "s32[2,2,1,1] {{{{1}},{{2}}},{{{3}},{{4}}}}",
        "()",
        "(s32[] 1, (f32[2] {1, 2}), pred[] 0)",
        "u8[6] {...}",
        "u16[2,2] {...}",
        "pred[6] {...}",
        "s4[20] {...}",
    ];
    let report: Vec<String> = texts
        .iter()
        .map(|text| {
            let literal = parse_literal(text).unwrap_or_else(|e| panic!("{text}: {e}"));
            let again: Literal = parse_literal(&literal.to_string()).unwrap_or_else(|e| panic!("{literal}: {e}"));
            assert_eq!(again, literal, "{text}");
            format!("{text} -> {literal}")
        })
        .collect();
    insta::assert_snapshot!(report.join("\n"));
}

#[test]
fn attributes_of_every_family() {
    insta::assert_snapshot!(body(
        "c0 = pred[2,3] compare(a, b), direction=LT\n\
         c1 = pred[2,3] compare(a, b), direction=GE, type=TOTALORDER\n\
         e0 = f32[2,3] exponential(a), result_accuracy={mode=highest}\n\
         e1 = f32[2,3] exponential(a), result_accuracy={tolerance={atol=1e-7, rtol=0.5, ulps=2}}\n\
         e2 = f32[2,3] exponential(a), result_accuracy={mode=default}\n\
         rp = f32[2,3] reduce-precision(a), exponent_bits=5, mantissa_bits=10\n\
         bc = f32[2,3] broadcast(zero), dimensions={}\n\
         bd = f32[2,3] broadcast(zero)\n\
         rs = f32[3,2] reshape(a), inferred_dimension=0\n\
         tr = f32[3,2] transpose(a), dimensions={1,0}\n\
         s0 = f32[1,2] slice(a), slice={[0:1], [0:3:2]}\n\
         s1 = f32[1,2] slice(a), slice={[0:1:1], [1:3]}\n\
         p0 = f32[4,2] pad(a, zero), padding=1_1x-2_1\n\
         p1 = f32[4,5] pad(a, zero), padding=1_1_0x0_0_1\n\
         p2 = f32[] pad(zero, zero), padding=\n\
         cc = f32[4,3] concatenate(a, b), dimensions={0}\n\
         rv = f32[2,3] reverse(a), dimensions={0,1}\n\
         io = s32[2,3] iota(), iota_dimension=1\n\
         ds = f32[1,3] dynamic-slice(a, i, i), dynamic_slice_sizes={1,3}\n\
         du = f32[2,3] dynamic-update-slice(a, ds, i, i)\n\
         cp = f32[2,3]{0,1} copy(a)\n\
         bi = f32[6] bitcast(a)\n\
         d0 = f32[2,2] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={1}, operand_precision={highest,default}\n\
         d1 = f32[2] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={1}, algorithm=dot_bf16_bf16_f32_x3\n\
         rd = f32[2] reduce(a, zero), dimensions={1}, to_apply=sum\n\
         rw = f32[2,3] reduce-window(a, zero), window={size=1x3 pad=0_0x1_1}, to_apply=sum\n\
         rx = f32[2,3] reduce-window(a, zero), window={rhs_reversal=0x1 size=2x3 stride=1x2 lhs_dilate=2x1 rhs_dilate=1x2 pad=-1_1x0_0}, to_apply=sum\n\
         v = f32[9] broadcast(zero), dimensions={}\n\
         ry = f32[3] reduce-window(v, zero), window={size=3 stride=3}, to_apply=sum\n\
         g = f32[1,3] gather(a, i), offset_dims={0,1}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=0, slice_sizes={1,3}, indices_are_sorted=true\n\
         ca = f32[2,3] call(a), to_apply=keep, is_composite=true, frontend_attributes={composite.name=\"x\"}\n\
         fu = f32[2,3] fusion(a), kind=kLoop, calls=keep, output_to_operand_aliasing={{}: (0, {})}\n\
         st = u64[2] constant({1,2})\n\
         rn = (u64[2], u32[4]) rng-bit-generator(st), algorithm=rng_philox\n\
         gt = u32[4] get-tuple-element(rn), index=1\n\
         ROOT ob = f32[2,3] opt-barrier(a)"
    ));
}

#[test]
fn annotations() {
    insta::assert_snapshot!(body(
        r#"m0 = f32[2,3] negate(a), metadata={op_type="t", op_name="scope/n" source_file="a.py" source_line=1 source_end_line=2
            source_column=3 source_end_column=4 profile_type={1} deduplicated_name="d" scheduling_name="s" stack_frame_id=5 metadata_payload="p"}
        m1 = f32[2,3] negate(a), metadata={}
        m2 = f32[2,3] negate(a), metadata={op_name="tab\t newline\n quote\" \'single\' \\ é \303\251 \u00e9"}
        c0 = f32[2,3] negate(a), control-predecessors={%m0, m1}, backend_config={"a": [1, "}"], "b": {}}
        c1 = f32[2,3] negate(a), backend_config="not { json", frontend_attributes={x="1",y={}, z='single "quoted"'}
        c2 = f32[2,3] negate(a), backend_config="{\"json\": \"in a string\"}"
        s0 = f32[2,3] negate(a), statistics={visualizing_index=1, stat-1=33, stat-2=44.5}
        o0 = f32[2,3] negate(a), origin={ { "inst"   {0, 1} } /* gone */ }
        o1 = f32[2,3] negate(a), origin={({"a"}, {"b" {0}})}
        p3 = f32[2,3] parameter(3), parameter_replication={true}, sharding={replicated}"#
    ));
}

#[test]
fn shardings() {
    let shardings = [
        "{replicated}",
        "{manual}",
        "{unknown}",
        "{unreduced}",
        "{maximal device=3}",
        "{devices=[2,2]0,1,2,3}",
        "{devices=[4,2]<=[2,4]T(1,0)}",
        "{devices=[2,1,2]<=[4] last_tile_dim_replicate}",
        "{devices=[1,1,2,2]0,1,2,3 last_tile_dims={replicated, manual}}",
        "{replicated shard_as 1}",
        "{devices=[2]<=[2] shard_like 7 metadata={op_name=\"x\"}}",
        "{replicated metadata={{op_name=\"x\"}, {op_name=\"y\"}}}",
        "{}",
        "{{replicated}, {manual}, {replicated}, {replicated}, {replicated}, /*index=5*/{maximal device=0}}",
        "{mesh['x'=2,'y'=4],  [{'x'}, {?}, {'y':(1)2}], replicated={'z'}}",
        "{maximal_mesh[device_id=3]}",
    ];
    let line = |(i, sharding)| format!("n{i} = f32[2,3] negate(a), sharding={sharding}\n");
    insta::assert_snapshot!(body(&shardings.iter().enumerate().map(line).collect::<String>()));
}

#[test]
fn schedules_and_threads() {
    let text = "HloModule m, is_scheduled=true\nfused { p = f32[] parameter(0) ROOT n = f32[] negate(p) }\n\
        other { p = f32[] parameter(0) }, execution_thread=\"side\"\n\
        ENTRY main { a = f32[] parameter(0) b = f32[] call(a), to_apply=other ROOT f = f32[] fusion(b), kind=kLoop, calls=fused }";
    let module = parse(text);
    let scheduled = |name: &str| module[module.find(name).expect("it is there")].schedule().map(<[_]>::len);
    assert_eq!((scheduled("fused"), scheduled("other"), scheduled("main")), (None, Some(1), Some(3)));
    insta::assert_snapshot!(printed(text));
}

#[test]
fn print_options() {
    let text = "HloModule m\nENTRY main { a = f32[2,3] parameter(0), metadata={op_name=\"a\"} \
        c = f32[12] constant({1,2,3,4,5,6,7,8,9,10,11,12}), backend_config=\"x\" d = f32[2] constant({1,2})\n\
        ROOT t = (f32[2,3],f32[2,3],f32[2,3],f32[2,3],f32[2,3],f32[12]) tuple(a,a,a,a,a,c), control-predecessors={d} }";
    let module = parse(text);
    let plain = PrintOptions {
        operand_shapes: true,
        large_constants: false,
        layouts: false,
        backend_config: false,
        ..PrintOptions::default()
    };
    let short = print_module(&module, &PrintOptions::short_parsable());
    assert_eq!(print_module(&parse(&short), &PrintOptions::short_parsable()), short);
    insta::assert_snapshot!([print_module(&module, &plain), short].join("\n"));
}

#[test]
fn transforms_and_linear_algebra() {
    insta::assert_snapshot!(body(
        "z = c64[2,3] complex(a, b)\n\
         f0 = c64[2,3] fft(z), fft_type=FFT, fft_length={3}\n\
         f1 = c64[2,3] fft(z), fft_length={2,3}, fft_type=IFFT\n\
         f2 = c64[2,2] fft(a), fft_type=RFFT, fft_length={3}\n\
         f3 = f32[2,4] fft(z), fft_type=IRFFT, fft_length={2,4}\n\
         m = f32[3,3] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n\
         c0 = f32[3,3] cholesky(m), lower=true\n\
         c1 = f32[3,3] cholesky(m), lower=false\n\
         c2 = f32[3,3] cholesky(m)\n\
         t0 = f32[2,3] triangular-solve(m, a), transpose_a=NO_TRANSPOSE\n\
         t1 = f32[2,3] triangular-solve(m, a), transpose_a=ADJOINT, unit_diagonal=true, lower=true, left_side=false\n\
         ROOT t2 = f32[3,3] triangular-solve(m, m), left_side=true, lower=false, transpose_a=TRANSPOSE"
    ));
}
