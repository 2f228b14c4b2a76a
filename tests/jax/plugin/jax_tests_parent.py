"""The end of a process with its parent, so that a launcher that is killed leaves no processes."""

import ctypes
import signal
import sys

# `prctl`: the signal that a process gets when its parent ends.
PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Ends this process when its parent ends, on Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
