"""Ends a process with its parent, so that a launcher that is killed leaves no processes."""

import ctypes
import os
import signal
import sys

# `prctl`: the signal that a process gets when its parent ends.
PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Ends this process when its parent ends, on Linux.

    `JAX_TESTS_PARENT` is the process id of the parent. It is empty below `mpiexec`, which starts the parent.
    """
    if sys.platform != "linux":
        return
    parent = int(os.environ.get("JAX_TESTS_PARENT") or os.getppid())
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # `prctl` sends no signal for a parent that ended before the call.
    if os.getppid() != parent:
        raise SystemExit(f"error: the parent, process {parent}, has ended, or has started this process by a wrapper")
