"""Runs the conformance suite in full sizes, the levels that take long last."""
from .conformance import suites

TITLE = "conformance with libraries, full sizes"
LIMIT, LEAST = 7200, 300


def run(opt, results):
    suites(opt, results, [["--level", level] for level in ("2", "3", "5", "4", "6")], patience=300)
