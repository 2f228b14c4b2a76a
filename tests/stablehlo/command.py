"""Runs of the command `xla`."""

import subprocess


def run(words: list, timeout: float) -> tuple:
    """Runs the command; returns `passed`, `refused`, `crashed` or `timed out`, and the first line of its error."""
    try:
        pipes = {"capture_output": True, "text": True, "errors": "replace", "stdin": subprocess.DEVNULL}
        done = subprocess.run(words, timeout=timeout, **pipes)
    except subprocess.TimeoutExpired:
        return "timed out", f"more than {timeout:g} s"
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    message = next((line for line in lines if line.startswith("error")), lines[0] if lines else "no message")
    if done.returncode == 0:
        return "passed", ""
    return ("refused" if done.returncode in (1, 2) and "panicked" not in done.stderr else "crashed"), message[:400]
