//! Recipes of control flow, calls, tokens, and collectives on one and several devices.

use xla_hlo::Opcode::{self, *};

use super::{COMBINER, Recipe, device_only, lines, program};

const TWO_FUNCTIONS: &str = "first { x = $t[4] parameter(0)\n ROOT y = $add(x, x) }\n\
    second { x = $t[4] parameter(0)\n ROOT y = $t[4] reverse(x), dimensions={0} }";
const LOOP: &str = "more { s = (s32[], $t[4]) parameter(0)\n i = get-tuple-element(s), index=0\n n = s32[] constant(3)\n \
    ROOT c = compare(i, n), direction=LT }\n\
    step { s = (s32[], $t[4]) parameter(0)\n i = get-tuple-element(s), index=0\n one = s32[] constant(1)\n \
    x = get-tuple-element(s), index=1\n j = add(i, one)\n y = $add(x, x)\n ROOT r = tuple(j, y) }";

pub(super) const RECIPES: &[(&[Opcode], Recipe)] = &[
    (
        &[While],
        program(
            LOOP,
            "x = $t[4] parameter(0)\n z = s32[] parameter(1)\n s = tuple(z, x)\n \
            w = (s32[], $t[4]) while(s), condition=more, body=step\n ROOT r = get-tuple-element(w), index=1",
        ),
    ),
    (
        &[Conditional],
        program(
            TWO_FUNCTIONS,
            "p = pred[] parameter(0)\n x = $t[4] parameter(1)\n \
            ROOT r = $t[4] conditional(p, x, x), true_computation=first, false_computation=second",
        ),
    ),
    (&[Call], program(TWO_FUNCTIONS, "x = $t[4] parameter(0)\n ROOT r = $t[4] call(x), to_apply=first")),
    (
        &[Map],
        program(
            COMBINER,
            "x = $t[3,5] parameter(0)\n y = $t[3,5] parameter(1)\n \
            ROOT r = $t[3,5] map(x, y), dimensions={0,1}, to_apply=combiner",
        ),
    ),
    (&[Fusion], program(TWO_FUNCTIONS, "x = $t[4] parameter(0)\n ROOT r = $t[4] fusion(x), kind=kLoop, calls=first")),
    (
        &[AsyncStart, AsyncUpdate, AsyncDone],
        program(
            TWO_FUNCTIONS,
            "x = $t[4] parameter(0)\n s = (($t[4]), $t[4], s32[]) async-start(x), calls=first\n u = (($t[4]), $t[4], s32[]) async-update(s)\n ROOT r = $t[4] async-done(u)",
        ),
    ),
    (
        &[CopyStart, CopyDone],
        lines("x = $t[3,4] parameter(0)\n s = ($t[3,4], $t[3,4], u32[]) copy-start(x)\n ROOT r = $t[3,4] copy-done(s)"),
    ),
    (
        &[CustomCall],
        lines("x = $t[3,5] parameter(0)\n ROOT r = $t[3,5] custom-call(x), custom_call_target=\"coverage\""),
    ),
    (
        &[Domain],
        lines(
            "x = $t[3] parameter(0)\n ROOT r = $t[3] domain(x), domain={kind=\"sharding\", entry={maximal device=0}, exit={replicated}}",
        ),
    ),
    (&[AfterAll], lines("x = $t[3] parameter(0)\n t = token[] after-all()\n ROOT r = add-dependency(x, t)")),
    (&[AddDependency], lines("x = $t[3] parameter(0)\n t = token[] after-all()\n ROOT r = add-dependency(x, t)")),
    (
        &[AllReduce],
        program(
            COMBINER,
            "x = $t[4] parameter(0)\n ROOT r = $t[4] all-reduce(x), replica_groups={}, to_apply=combiner",
        ),
    ),
    (&[AllGather], lines("x = $t[4] parameter(0)\n ROOT r = $t[4] all-gather(x), replica_groups={}, dimensions={0}")),
    (&[AllToAll], lines("x = $t[4] parameter(0)\n ROOT r = $t[4] all-to-all(x), replica_groups={{0}}, dimensions={0}")),
    (
        &[CollectivePermute],
        lines("x = $t[4] parameter(0)\n ROOT r = $t[4] collective-permute(x), source_target_pairs={{0,0}}"),
    ),
    (
        &[CollectiveBroadcast],
        lines("x = $t[4] parameter(0)\n ROOT r = $t[4] collective-broadcast(x), replica_groups={{0}}"),
    ),
    (
        &[ReduceScatter],
        program(
            COMBINER,
            "x = $t[4] parameter(0)\n ROOT r = $t[4] reduce-scatter(x), replica_groups={}, dimensions={0}, to_apply=combiner",
        ),
    ),
    (
        &[PartitionId, ReplicaId],
        lines("x = u32[] $op()\n y = $t[] parameter(0)\n z = $t[] convert(x)\n ROOT r = $add(y, z)"),
    ),
    (
        &[AllReduceStart, AllReduceDone],
        program(
            COMBINER,
            "x = $t[4] parameter(0)\n s = $t[4] all-reduce-start(x), replica_groups={}, to_apply=combiner\n ROOT r = $t[4] all-reduce-done(s)",
        ),
    ),
    (
        &[AllGatherStart, AllGatherDone],
        lines(
            "x = $t[4] parameter(0)\n s = ($t[4], $t[4]) all-gather-start(x), replica_groups={}, dimensions={0}\n ROOT r = $t[4] all-gather-done(s)",
        ),
    ),
    (
        &[CollectivePermuteStart, CollectivePermuteDone],
        lines(
            "x = $t[4] parameter(0)\n s = ($t[4], $t[4], u32[], u32[]) collective-permute-start(x), source_target_pairs={{0,0}}\n ROOT r = $t[4] collective-permute-done(s)",
        ),
    ),
    (
        &[CollectiveReduce],
        program(
            COMBINER,
            "x = $t[4] parameter(0)\n ROOT r = $t[4] collective-reduce(x), replica_groups={{0}}, to_apply=combiner",
        ),
    ),
    (
        &[RaggedAllToAll],
        lines(
            "x = $t[8,2] parameter(0)\n y = $t[10,2] parameter(1)\n reads = s64[3] constant({2, 0, 6})\n sizes = s64[3] constant({4, 3, 2})\n writes = s64[3] constant({5, 0, 8})\n ROOT r = $t[10,2] ragged-all-to-all(x, y, reads, sizes, writes, sizes)",
        ),
    ),
    // Transfers, which need a peer.
    (
        &[Infeed],
        device_only(
            "t = token[] after-all()\n i = ($t[3], token[]) infeed(t)\n ROOT r = get-tuple-element(i), index=0",
        ),
    ),
    (
        &[Outfeed],
        device_only(
            "x = $t[3] parameter(0)\n t = token[] after-all()\n ROOT r = token[] outfeed(x, t), outfeed_shape=$t[3]",
        ),
    ),
    (
        &[Send, SendDone],
        device_only(
            "x = $t[3] parameter(0)\n t = token[] after-all()\n s = ($t[3], u32[], token[]) send(x, t), channel_id=1\n ROOT r = token[] send-done(s), channel_id=1",
        ),
    ),
    (
        &[Recv, RecvDone],
        device_only(
            "t = token[] after-all()\n s = ($t[3], u32[], token[]) recv(t), channel_id=1\n d = ($t[3], token[]) recv-done(s), channel_id=1\n ROOT r = get-tuple-element(d), index=0",
        ),
    ),
];
