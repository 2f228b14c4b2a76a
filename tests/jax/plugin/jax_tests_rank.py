"""pytest plugin: makes this process one of several that run a test file together, as JAX's own launcher does.

`JAX_TESTS_RANK` is the number of the process, unless `mpiexec` has numbered it, `JAX_TESTS_PROCESSES` the number of
processes and `JAX_TESTS_COORDINATOR` the address of JAX's coordination service. The plugin is loaded before the
recorder: each process has a record of its own.
"""

import os
import pathlib

from jax_tests_parent import end_with_parent

# Variables with the number of a process: of `job.py`, MPICH and Open MPI.
RANKS = ("JAX_TESTS_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK")
# Limits in seconds. JAX's defaults assume a processor for each process.
START, HEARTBEAT, SHUTDOWN = 120, 60, 30

processes = int(os.environ["JAX_TESTS_PROCESSES"])
rank = int(next(os.environ[name] for name in RANKS if name in os.environ))


def take_record() -> None:
    """Replaces the record of the job by the record of this process, for the recorder."""
    record = pathlib.Path(os.environ["JAX_TESTS_RECORD"])
    os.environ["JAX_TESTS_RECORD"] = str(record.with_name(f"{record.stem}.rank{rank}.jsonl"))


take_record()
end_with_parent()


def pytest_configure(config) -> None:
    from absl import flags
    from jax._src import distributed, test_multiprocess  # noqa: F401, which defines the flags

    coordinator = os.environ["JAX_TESTS_COORDINATOR"]
    flags.FLAGS(
        [
            "pytest",
            f"--num_processes={processes}",
            f"--multiprocess_test_worker_id={rank}",
            f"--multiprocess_test_controller_address={coordinator}",
        ]
    )
    distributed.initialize(
        coordinator,
        num_processes=processes,
        process_id=rank,
        heartbeat_timeout_seconds=HEARTBEAT,
        shutdown_timeout_seconds=SHUTDOWN,
        initialization_timeout=START,
        # Otherwise, JAX takes Open MPI's local rank as the id of the local device.
        cluster_detection_method="deactivate",
    )
