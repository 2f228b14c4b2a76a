"""Threads that compile, run and drop programs again and again, and processes that share the device."""
from .conformance import suites

TITLE = "threads that compile, run and drop"
LIMIT, LEAST = 1800, 60


def run(opt, results):
    parts = [["--level", "6", "--filter", "endurance"], ["--level", "3", "--filter", "/threads"], ["--level", "1", "--filter", "many"]]
    suites(opt, results, parts, patience=600)
