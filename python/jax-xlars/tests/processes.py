"""Collectives of several processes, which `jax.distributed.initialize` connects, against NumPy.

python processes.py [PROCESSES [DEVICES]] starts the processes and waits for them. Each prints `ok` or fails.
`--kill RANK` lets one process kill itself: the others must end with an error that names it.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("localhost", 0))
        return listener.getsockname()[1]


def start(processes: int, devices: int, kill: int) -> int:
    """Starts the processes; returns 0 if all have succeeded."""
    own = [sys.executable, __file__, str(processes), str(devices), "--kill", str(kill), "--port", str(free_port())]
    jobs = [subprocess.Popen([*own, "--rank", str(rank)]) for rank in range(processes)]
    codes = [job.wait(timeout=300) for job in jobs]
    expected = [-signal.SIGKILL if rank == kill else 0 for rank in range(processes)]
    if codes != expected:
        print(f"exit codes {codes}, expected {expected}", file=sys.stderr)
    return int(codes != expected)


def work(processes: int, devices: int, kill: int, port: int, rank: int) -> None:
    """Runs as one of the processes."""
    import jax
    import numpy as np
    from jax import lax
    from jax.sharding import NamedSharding, PartitionSpec as P

    jax.config.update("jax_num_cpu_devices", devices)
    jax.distributed.initialize(f"localhost:{port}", processes, rank)
    count = processes * devices
    assert jax.process_index() == rank and jax.process_count() == processes
    assert [device.process_index for device in jax.devices()] == [i // devices for i in range(count)]
    assert [device.id for device in jax.local_devices()] == [rank * devices + i for i in range(devices)]

    mesh = jax.make_mesh((count,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    whole = np.arange(count * count * 3, dtype=np.float32).reshape(count * count, 3)
    array = jax.make_array_from_callback(whole.shape, NamedSharding(mesh, P("x")), lambda index: whole[index])
    parts = whole.reshape(count, count, 3)
    shift = [(i, (i + 1) % count) for i in range(count)]
    cases = {
        "psum": (lambda x: lax.psum(x, "x"), np.broadcast_to(parts.sum(0), parts.shape)),
        "pmax": (lambda x: lax.pmax(x, "x"), np.broadcast_to(parts.max(0), parts.shape)),
        "all_gather": (lambda x: lax.all_gather(x[:1], "x", tiled=True), np.broadcast_to(parts[:, 0], parts.shape)),
        "ppermute": (lambda x: lax.ppermute(x, "x", shift), np.roll(parts, 1, 0)),
        "all_to_all": (lambda x: lax.all_to_all(x, "x", 0, 0, tiled=True), parts.transpose(1, 0, 2)),
        "psum_scatter": (lambda x: lax.psum_scatter(x, "x", tiled=True), parts.sum(0)[:, None]),
        "axis_index": (lambda x: x[:1] * 0 + lax.axis_index("x"), np.ones((count, 1, 3)) * np.arange(count)[:, None, None]),
    }
    for name, (body, expected) in cases.items():
        program = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))
        for _ in range(3):
            result = program(array)
        for shard in result.addressable_shards:
            wanted = np.asarray(expected).reshape(result.shape)[shard.index]
            np.testing.assert_array_equal(np.asarray(shard.data), wanted, err_msg=name)
    # Programs of one process alone, which the others do not launch.
    assert jax.jit(lambda x: x + rank)(1) == rank + 1
    if kill >= 0:
        if rank == kill:
            os.kill(os.getpid(), signal.SIGKILL)
        try:
            jax.block_until_ready(jax.jit(jax.shard_map(cases["psum"][0], mesh=mesh, in_specs=P("x"), out_specs=P("x")))(array))
        except Exception as error:
            assert f"process {kill}" in str(error), error
            print(f"{rank}: ok: {str(error).splitlines()[0]}", flush=True)
            # Without the barrier of JAX, which would wait for the process that has ended.
            os._exit(0)
        raise AssertionError("the collective of a process that has ended succeeded")
    print(f"{rank}: ok", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("processes", type=int, nargs="?", default=4)
    parser.add_argument("devices", type=int, nargs="?", default=1)
    parser.add_argument("--kill", type=int, default=-1)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--rank", type=int, default=-1)
    args = parser.parse_args()
    if args.rank < 0:
        sys.exit(start(args.processes, args.devices, args.kill))
    work(args.processes, args.devices, args.kill, args.port, args.rank)
