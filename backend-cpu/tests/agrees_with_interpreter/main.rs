//! Tests that programs in HLO text agree with the reference evaluator; one binary, so that LLVM is linked once.

mod ahead_of_time;
mod convolution;
mod custom_calls;
mod denormals;
mod dynamic;
mod external_calls;
mod layouts;
mod libraries;
mod loops;
mod mapped_constants;
mod numerics;
mod persistent_cache;
mod processors;
mod scatter;
mod self_contained;
mod several_programs;
mod sorting;
mod systems;
mod threads;
mod turned_dots;
mod windows;

/// Runs a program on this backend and in the evaluator; host fallbacks are not allowed.
fn native(text: &str) {
    xla_tests::agreement::assert_agrees(backend_cpu::platform(), text);
}

#[test]
fn elementwise_chain() {
    native(
        "HloModule m
        ENTRY main {
          x = f32[37,5] parameter(0)
          y = f32[37,5] parameter(1)
          s = f32[37,5] add(x, y)
          t = f32[37,5] tanh(s)
          m = f32[37,5] multiply(t, x)
          ROOT r = f32[37,5] maximum(m, y)
        }",
    );
}

#[test]
fn softmax_over_rows() {
    native(
        "HloModule m
        max { a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT c = f32[] maximum(a, b) }
        sum { a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT c = f32[] add(a, b) }
        ENTRY main {
          x = f32[9,100] parameter(0)
          low = f32[] constant(-inf)
          zero = f32[] constant(0)
          m = f32[9] reduce(x, low), dimensions={1}, to_apply=max
          mb = f32[9,100] broadcast(m), dimensions={0}
          d = f32[9,100] subtract(x, mb)
          e = f32[9,100] exponential(d)
          s = f32[9] reduce(e, zero), dimensions={1}, to_apply=sum
          sb = f32[9,100] broadcast(s), dimensions={0}
          ROOT r = f32[9,100] divide(e, sb)
        }",
    );
}

#[test]
fn columns_and_all_reduced() {
    native(
        "HloModule m
        sum { a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT c = f32[] add(a, b) }
        ENTRY main {
          x = f32[33,70] parameter(0)
          zero = f32[] constant(0)
          c = f32[70] reduce(x, zero), dimensions={0}, to_apply=sum
          a = f32[] reduce(x, zero), dimensions={0,1}, to_apply=sum
          ROOT t = (f32[70], f32[]) tuple(c, a)
        }",
    );
}

#[test]
fn movement() {
    native(
        "HloModule m
        ENTRY main {
          x = f32[6,10] parameter(0)
          i = s32[] parameter(1)
          t = f32[10,6] transpose(x), dimensions={1,0}
          r = f32[4,15] reshape(t)
          v = f32[4,15] reverse(r), dimensions={1}
          s = f32[2,5] slice(v), slice={[1:4:2], [2:15:3]}
          z = f32[] constant(7)
          p = f32[7,10] pad(s, z), padding=1_2_2x-1_2_1
          c = f32[7,12] concatenate(p, p2), dimensions={1}
          ROOT d = f32[3,4] dynamic-slice(c, i, i), dynamic_slice_sizes={3,4}
        }"
        .replace(
            "c = f32[7,12] concatenate(p, p2)",
            "sl = f32[7,2] slice(p), slice={[0:7], [3:5]}\n c = f32[7,12] concatenate(p, sl)",
        )
        .as_str(),
    );
}

#[test]
fn loops_and_branches() {
    native(
        "HloModule m
        body {
          s = (s32[], f32[8]) parameter(0)
          i = s32[] get-tuple-element(s), index=0
          v = f32[8] get-tuple-element(s), index=1
          one = s32[] constant(1)
          n = s32[] add(i, one)
          h = f32[] constant(0.5)
          hb = f32[8] broadcast(h), dimensions={}
          w = f32[8] multiply(v, hb)
          c = f32[8] cosine(w)
          ROOT t = (s32[], f32[8]) tuple(n, c)
        }
        cond {
          s = (s32[], f32[8]) parameter(0)
          i = s32[] get-tuple-element(s), index=0
          ten = s32[] constant(10)
          ROOT p = pred[] compare(i, ten), direction=LT
        }
        yes { x = f32[8] parameter(0)
          ROOT r = f32[8] negate(x) }
        no { x = f32[8] parameter(0)
          ROOT r = f32[8] abs(x) }
        ENTRY main {
          x = f32[8] parameter(0)
          zero = s32[] constant(0)
          init = (s32[], f32[8]) tuple(zero, x)
          w = (s32[], f32[8]) while(init), condition=cond, body=body
          v = f32[8] get-tuple-element(w), index=1
          p = pred[] parameter(1)
          ROOT c = f32[8] conditional(p, v, v), true_computation=yes, false_computation=no
        }",
    );
}

#[test]
fn dots_large_and_small() {
    native(
        "HloModule m
        ENTRY main {
          x = f32[4,33,64] parameter(0)
          w = f32[64,48] parameter(1)
          y = f32[4,33,48] dot(x, w), lhs_contracting_dims={2}, rhs_contracting_dims={0}
          a = bf16[3,5] parameter(2)
          b = bf16[5,7] parameter(3)
          c = f32[3,7] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
          ROOT t = (f32[4,33,48], f32[3,7]) tuple(y, c)
        }",
    );
}

#[test]
fn layer_norm_with_its_statistics() {
    native(
        "HloModule m
        sum { a = f32[] parameter(0)
          b = f32[] parameter(1)
          ROOT c = f32[] add(a, b) }
        ENTRY main {
          x = f32[21,70] parameter(0)
          y = f32[21,70] parameter(1)
          zero = f32[] constant(0)
          n = f32[] constant(70)
          nb = f32[21] broadcast(n), dimensions={}
          r = f32[21,70] add(x, y)
          e = f32[21,70] exponential(r)
          s = f32[21] reduce(e, zero), dimensions={1}, to_apply=sum
          mean = f32[21] divide(s, nb)
          mb = f32[21,70] broadcast(mean), dimensions={0}
          d = f32[21,70] subtract(e, mb)
          q = f32[21,70] multiply(d, d)
          v = f32[21] reduce(q, zero), dimensions={1}, to_apply=sum
          rs = f32[21] rsqrt(v)
          rb = f32[21,70] broadcast(rs), dimensions={0}
          o = f32[21,70] multiply(d, rb)
          ROOT t = (f32[21,70], f32[21], f32[21], f32[21,70]) tuple(o, mean, rs, r)
        }",
    );
}

#[test]
fn transposes_of_every_width() {
    for ty in ["pred", "s8", "bf16", "f32", "f64", "c64", "c128"] {
        native(&format!(
            "HloModule m
            ENTRY main {{
              x = {ty}[70,149] parameter(0)
              y = {ty}[3,64,128] parameter(1)
              z = {ty}[2,9,33,40] parameter(2)
              a = {ty}[149,70] transpose(x), dimensions={{1,0}}
              b = {ty}[128,64,3] transpose(y), dimensions={{2,1,0}}
              c = {ty}[3,128,64] transpose(y), dimensions={{0,2,1}}
              d = {ty}[2,33,40,9] transpose(z), dimensions={{0,2,3,1}}
              ROOT t = ({ty}[149,70], {ty}[128,64,3], {ty}[3,128,64], {ty}[2,33,40,9]) tuple(a, b, c, d)
            }}"
        ));
    }
}

#[test]
fn transposes_among_other_operations() {
    native(
        "HloModule m
        ENTRY main {
          x = f32[80,90] parameter(0)
          y = f32[90,80] parameter(1)
          i = s32[] parameter(2)
          j = s32[] parameter(3)
          v = f32[100,100] parameter(4)
          w = bf16[80,90] parameter(5)
          s = f32[80,90] slice(v), slice={[10:90], [0:90]}
          u = f32[80,90] dynamic-slice(v, i, j), dynamic_slice_sizes={80,90}
          r = f32[80,90] reverse(s), dimensions={0}
          wide = f32[80,90] convert(w)
          a = f32[80,90] add(x, u)
          b = f32[80,90] multiply(a, r)
          c = f32[80,90] subtract(b, wide)
          t = f32[90,80] transpose(c), dimensions={1,0}
          ROOT z = f32[90,80] multiply(t, y)
        }",
    );
}

#[test]
fn tokens_asynchronous_operations_and_collectives_of_one_device() {
    native(
        "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n\
         body { a = f32[8,2] parameter(0) d = f32[8,2] sine(a) ROOT r = f32[8,2] multiply(d, a) }, execution_thread=\"t\"\n\
         ENTRY main {\n x = f32[8,2] parameter(0)\n y = f32[5,2] parameter(1)\n i = s32[] parameter(2)\n\
         t = token[] after-all()\n a = f32[8,2] add-dependency(x, t)\n\
         s = ((f32[8,2]), f32[8,2], s32[]) async-start(a), calls=body\n b = f32[8,2] async-done(s)\n\
         n = ((f32[8,2], f32[8,2]), f32[8,2], u32[]) add-start(a, b)\n c = f32[8,2] add-done(n)\n\
         k = (f32[8,2], f32[8,2], u32[]) copy-start(c)\n d = f32[8,2] copy-done(k)\n\
         e = f32[8,2] all-reduce(d), to_apply=add\n f = (f32[8,2], f32[8,2]) all-gather-start(e), dimensions={0}\n\
         g = f32[8,2] all-gather-done(f)\n h = f32[8,2] collective-permute(g), source_target_pairs={{0,1}}\n\
         o = (s32[], s32[]) tuple(i, i)\n\
         p = f32[5,2] collective-permute(g, y, o, o), source_target_pairs={{0,0}}, slice_sizes={{2,1}}\n\
         reads = s32[3] constant({0, 4, -1})\n sizes = s32[3] constant({2, 3, 2})\n writes = s32[3] constant({1, 2, 3})\n\
         q = f32[5,2] ragged-all-to-all(g, p, reads, sizes, writes, sizes)\n z = u32[] replica-id()\n\
         j = f32[8,2] domain(h), domain={kind=\"sharding\", entry={replicated}, exit={replicated}}\n\
         ROOT r = (f32[8,2], f32[8,2], f32[5,2], u32[]) tuple(g, j, q, z)\n}",
    );
}

#[test]
fn sizes_known_when_running() {
    native(
        "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }\n\
         max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }\n\
         ENTRY main {\n x = f32[3,4] parameter(0)\n w = f32[4,5] parameter(1)\n k = s32[] constant(2)\n\
         zero = f32[] constant(0)\n low = f32[] constant(-inf)\n ten = f32[] constant(10)\n\
         y = f32[3,<=4] set-dimension-size(x, k), dimensions={1}\n e = f32[3,<=4] exponential(y)\n\
         sum = f32[3] reduce(e, ten), dimensions={1}, to_apply=add\n greatest = f32[] reduce(y, low), dimensions={0,1}, to_apply=max\n\
         product = f32[3,5] dot(e, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n\
         twice = f32[3,<=8] concatenate(y, e), dimensions={1}\n flat = f32[<=24] reshape(twice)\n i = f32[24] iota(), iota_dimension=0\n\
         weighted = f32[<=24] multiply(flat, i)\n all = f32[] reduce(weighted, zero), dimensions={0}, to_apply=add\n\
         three = s32[] constant(3)\n turned = f32[<=4,3] dynamic-reshape(y, k, three)\n\
         columns = f32[3] reduce(turned, zero), dimensions={0}, to_apply=add\n\
         padded = f32[3,<=9] pad(y, ten), padding=0_0x1_1_1\n rows = f32[3] reduce(padded, zero), dimensions={1}, to_apply=add\n\
         size = s32[] get-dimension-size(padded), dimensions={1}\n\
         ROOT r = (f32[3], f32[], f32[3,5], f32[], f32[3], f32[3], s32[]) tuple(sum, greatest, product, all, columns, rows, size)\n}",
    );
}
