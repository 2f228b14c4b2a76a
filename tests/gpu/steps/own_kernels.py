"""Runs the conformance suite in quick sizes, without NVIDIA's libraries: our own kernels do everything."""
from .conformance import LEVELS, suites

TITLE = "conformance without libraries, quick sizes"
LIMIT, LEAST = 3600, 60


def run(opt, results):
    suites(opt, results, [["--quick", "--level", LEVELS]], libraries=False)
