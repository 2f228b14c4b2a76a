"""Programs over several processes, which `processes.py` starts."""

import pathlib
import subprocess
import sys

import pytest

SCRIPT = pathlib.Path(__file__).parent / "processes.py"


@pytest.mark.parametrize("arguments", [("2", "2"), ("3", "1", "--kill", "1")], ids=["agree", "one dies"])
def test_processes(arguments):
    job = subprocess.run([sys.executable, SCRIPT, *arguments], capture_output=True, text=True, timeout=400)
    assert job.returncode == 0, job.stdout + job.stderr
