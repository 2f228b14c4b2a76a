"""Runs JAX's own tests on the plugin and compares them with XLA:CPU; `cargo xtask jax-tests --help` describes it."""

import argparse
import concurrent.futures
import hashlib
import json
import os
import pathlib
import queue
import shutil
import signal
import subprocess
import sys
import time

import process
import report
from records import KINDS, PASSED, SKIPPED, Record

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Modules that run in the processes of the tests.
PLUGIN = ROOT / "tests/jax/plugin"
# Runs a file in several processes.
JOB = ROOT / "tests/jax/job.py"
# The Python package that registers the library.
PACKAGE = ROOT / "python/jax-xlars"
BASELINE = ROOT / "tests/jax/baseline.zip"
# Folder of the tests of several processes.
PROCESSES = "multiprocess/"

TAG = "jax-v0.10.2 (commit 990e6a0b84)"
VERSION = "0.10.2"

# Files and folders that are run only if they are named.
LEFT_OUT = {
    "programs of several devices": """
        array_test async_collectives_test custom_partitioning_test linalg_sharding_test pjit_test pmap_test
        ragged_collective_test shard_alike_test shard_map_test""",
    "needs a GPU": """
        cudnn_fusion_test gpu_memory_flags_test magma_linalg_test mock_gpu_test mock_gpu_topology_test
        multiprocess_gpu_test""",
    "kernels for GPUs and TPUs": "mosaic/ mosaic_test pallas/",
    "several processes": f"distributed_initialize_test distributed_test {PROCESSES}",
    "programs of other devices, and of old versions": "export_back_compat_test export_serialization_back_compat_test",
    "needs PyTorch": "pytorch_interoperability_test",
}


def reason(name: str) -> str | None:
    """Reason for leaving a file out."""
    for reason, entries in LEFT_OUT.items():
        if any(name == entry or entry.endswith("/") and name.startswith(entry) for entry in entries.split()):
            return reason
    return None


def checkout(given: pathlib.Path) -> pathlib.Path:
    """Root of a checkout of JAX, from its root or its folder `tests`."""
    if not given.is_dir():
        raise SystemExit(f"error: there is no folder {given}")
    parts = ("tests", "conftest.py", "pyproject.toml")
    for root in (given.resolve(), given.resolve().parent):
        if all((root / part).exists() for part in parts):
            return root
    raise SystemExit(f"error: {given} is no checkout of JAX at tag {TAG}: {', '.join(parts)} are not side by side")


def test_files(root: pathlib.Path) -> list:
    """Paths below `tests` without `.py`."""
    paths = (root / "tests").rglob("*_test.py")
    return sorted(path.relative_to(root / "tests").with_suffix("").as_posix() for path in paths)


def select(known: list, asked: list, processes: int = 1) -> list:
    """Requested files; by default all except the ones that are left out, or all that need several processes."""
    is_job = lambda name: name.startswith(PROCESSES)
    if processes > 1:
        known = [name for name in known if is_job(name)]
    if not asked:
        return [name for name in known if processes > 1 or reason(name) is None]
    found = set()
    for file in asked:
        name = file.removeprefix("tests/").removesuffix(".py")
        prefixes = ("", PROCESSES) if processes > 1 else ("",)
        names = [f"{prefix}{name}{suffix}" for prefix in prefixes for suffix in ("", "_test")]
        matches = [one for one in names if one in known]
        if not matches:
            where = f" below tests/{PROCESSES} for --processes" if processes > 1 else ""
            raise SystemExit(f"error: there is no test file {file}{where}")
        if processes == 1 and is_job(matches[0]):
            raise SystemExit(f"error: {matches[0]} needs several processes: --processes 4")
        found.add(matches[0])
    return sorted(found)


def parse(words: list | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="cargo xtask jax-tests", add_help=False, allow_abbrev=False)
    parser.add_argument("places", metavar="FOLDER [FILE...]", nargs="+")
    side = parser.add_mutually_exclusive_group()
    side.add_argument("--baseline", dest="platform", action="store_const", const="baseline")
    side.add_argument("--platform")
    parser.add_argument("--library", type=pathlib.Path, default=ROOT / "target/release/libpjrt_plugin_xlars.so")
    parser.add_argument("--python", default="python3")
    parser.add_argument("--workers", type=positive)
    parser.add_argument("--timeout", type=positive, default=120)
    parser.add_argument("--processes", type=positive, default=1)
    parser.add_argument("--devices-per-process", dest="devices", type=positive, default=1)
    parser.add_argument("--collectives", choices=("tcp", "mpi"), default="tcp")
    parser.add_argument("--mpiexec", default="mpiexec")
    parser.add_argument("--no-x64", dest="width", action="store_const", const="x32", default="x64")
    kept = parser.add_mutually_exclusive_group()
    kept.add_argument("--misses", action="store_true")
    kept.add_argument("--again", action="store_true")
    kept.add_argument("--report", action="store_true")
    options = parser.parse_intermixed_args(words)
    options.platform = options.platform or "cpu"
    options.folder, options.files = pathlib.Path(options.places[0]), options.places[1:]
    is_job = options.processes > 1
    if not is_job and (options.devices, options.collectives) != (1, "tcp"):
        parser.error("--devices-per-process and --collectives need --processes")
    if options.collectives == "mpi" and options.platform == "baseline":
        parser.error("the baseline has Gloo's collectives, not those of MPI")
    # The processes of a job share the processors.
    options.workers = options.workers or (1 if is_job else 2)
    # Key of the outcomes in the baseline.
    options.setting = f"{options.width}-{options.processes}x{options.devices}" if is_job else options.width
    options.output = ROOT / f"target/jax-tests/{options.platform}-{options.setting}"
    if options.collectives == "mpi":
        options.output = options.output.with_name(f"{options.output.name}-mpi")
    options.library = options.library.absolute()
    if "/" in options.python:
        options.python = os.path.abspath(options.python)
    return options


def positive(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return int(text)


def platforms(name: str) -> tuple:
    """`JAX_PLATFORMS` for a platform, and its client's name. `cpu` replaces XLA:CPU; others are added to it."""
    if name == "baseline":
        return "cpu", "cpu"
    return ("xlars", "cpu") if name == "cpu" else (f"xlars_{name},cpu", f"xlars_{name}")


def environment(options: argparse.Namespace) -> tuple:
    """Variables of the tests' processes, and the subject: library and versions under test."""
    # Variables that the user has set for JAX must not change the outcomes.
    is_kept = lambda name: not name.startswith("JAX_") and name != "XLA_FLAGS"
    variables = {name: value for name, value in os.environ.items() if is_kept(name)} | {
        "JAX_ENABLE_X64": "1" if options.width == "x64" else "0",
        "JAX_SKIP_SLOW_TESTS": "true",
        "JAX_NUM_GENERATED_CASES": "10",
        "TF_CPP_MIN_LOG_LEVEL": "1",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(options.output / "hypothesis"),
        "JAX_TESTS_TIMEOUT": str(options.timeout),
        "JAX_PLATFORMS": platforms(options.platform)[0],
        "PYTHONPATH": str(PLUGIN),
    }
    plugin = ""
    if options.platform != "baseline":
        library, fingerprint = copy_library(options)
        plugin = f"plugin {fingerprint}, "
        variables |= {
            # The tests expect the results of the CPU on every platform.
            "JAX_TEST_DUT": "cpu",
            "XLARS_PLATFORM": "cpu",
            "XLARS_LIBRARY": str(library),
            "PYTHONPATH": f"{PACKAGE}{os.pathsep}{PLUGIN}",
        }
    command = [options.python, PLUGIN / "jax_tests_environment.py"]
    collectives = "" if options.collectives == "tcp" else f"{options.collectives}, "
    try:
        text = subprocess.run(command, env=variables, stdout=subprocess.PIPE, text=True, check=True).stdout
        found = json.loads(text.splitlines()[-1])
    except (OSError, subprocess.CalledProcessError, ValueError, IndexError) as error:
        raise SystemExit(f"error: {options.python} does not run: name a Python 3.11 or later with --python ({error})")
    subject = plugin + collectives + versions(found, options.python, platforms(options.platform)[1])
    return variables | job_variables(options), subject


def job_variables(options: argparse.Namespace) -> dict:
    """Variables of the processes of a job."""
    if options.processes == 1:
        return {}
    variables = {"JAX_NUM_CPU_DEVICES": str(options.devices)}
    if options.collectives == "mpi":
        # Containers run everything as root, on fewer processors than processes. The library is found by its `mpiexec`.
        variables |= {f"OMPI_ALLOW_RUN_AS_ROOT{suffix}": "1" for suffix in ("", "_CONFIRM")}
        variables |= {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
        variables |= {"JAX_CPU_COLLECTIVES_IMPLEMENTATION": "mpi", "PATH": mpi_path(options.mpiexec)}
    return variables


def mpi_path(mpiexec: str) -> str:
    """`PATH` with the folder of `mpiexec` in front."""
    found = shutil.which(mpiexec)
    if found is None:
        raise SystemExit(f"error: there is no {mpiexec}: install MPI (pip install mpich), or name one with --mpiexec")
    return f"{pathlib.Path(found).absolute().parent}{os.pathsep}{os.environ.get('PATH', '')}"


def versions(found: dict, python: str, platform: str) -> str:
    """Versions that `jax_tests_environment.py` prints; an error if the environment is incomplete."""
    if missing := found.get("missing"):
        raise SystemExit(f"error: {python} lacks packages: {python} -m pip install {' '.join(missing)}")
    if failure := found.get("failure"):
        raise SystemExit(f"error: JAX does not start: {failure}")
    jax = found["versions"]["jax"]
    if jax != VERSION:
        remedy = f"{python} -m pip install jax=={VERSION} jaxlib=={VERSION}"
        raise SystemExit(f"error: {python} has JAX {jax}, and the tests belong to {TAG}: {remedy}")
    if found["under_test"] != "cpu":
        raise SystemExit(f"error: the tests would run for the device {found['under_test']}, not for cpu")
    if found["platform"] != platform:
        raise SystemExit(f"error: the tests would run on the platform {found['platform']}, not on {platform}")
    return ", ".join(f"{name} {version}" for name, version in sorted(found["versions"].items()))


def copy_library(options: argparse.Namespace) -> tuple:
    """Copy of the library, so that a build has no effect on the run; fingerprint of the library and its package."""
    if not options.library.is_file():
        remedy = "build it with `cargo build --release -p xla-pjrt-plugin`, or name one with --library"
        raise SystemExit(f"error: there is no plugin library {options.library}: {remedy}")
    sources = [options.library, *sorted((PACKAGE / "jax_plugins/xlars").glob("*.py"))]
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources))
    copy = options.output / f"plugin-{digest.hexdigest()[:16]}.so"
    if not copy.exists():
        shutil.copyfile(options.library, copy)
    return copy, digest.hexdigest()[:16]


def record_path(options: argparse.Namespace, file: str) -> pathlib.Path:
    return options.output / f"{file.replace('/', '.')}.jsonl"


def take_up(path: pathlib.Path, subject: str, misses: bool, again: bool) -> bool:
    """Prepares a record for the tests to run; false if none are left."""
    record = Record(path)
    if record.subject == subject and not misses and not again:
        return not record.is_complete
    path.with_suffix(".log").unlink(missing_ok=True)
    record.restart(subject, keeps_passed=misses)
    return True


def run_file(options: argparse.Namespace, root: pathlib.Path, file: str, worker: int, environment: tuple) -> None:
    variables, subject = environment
    path = record_path(options, file)
    if not take_up(path, subject, options.misses, options.again):
        return
    start = time.monotonic()
    own = {"JAX_TESTS_RECORD": str(path), "JAX_TESTS_WORKER": f"{worker}/{options.workers}"}
    own["JAX_TESTS_PARENT"] = str(os.getpid())
    # `-P`: Python would otherwise import JAX from the checkout. Options of JAX's own runs, then the recorder, which
    # watches time limits and crashes. Nothing is captured: the output of native code reaches the log even after a
    # crash, and the tests of `debug.print` read it from the descriptor of standard output.
    command = [options.python, *"-P -m pytest --rootdir=. --override-ini=addopts= --import-mode=importlib -q".split()]
    command += "-p no:cacheprovider -p no:faulthandler --tb=short --capture=no".split()
    command += ["-p", "jax_tests_recorder", f"tests/{file}.py"]
    if options.processes > 1:
        command = job_command(options, command)
    process.run(path, options.timeout, command, cwd=root, env=variables | own)
    record = Record(path)
    passed, skipped = record.count(PASSED), record.count(SKIPPED)
    seconds = time.monotonic() - start
    print(f"{file}: {passed} of {len(record.outcomes)} passed, {skipped} skipped, {seconds:.0f} s", flush=True)


def job_command(options: argparse.Namespace, command: list) -> list:
    """Command that runs pytest in each process of a job."""
    job = [sys.executable, JOB, "--processes", str(options.processes), "--limit", str(options.timeout)]
    if options.collectives == "mpi":
        job += ["--mpiexec", options.mpiexec]
    # The module of the ranks chooses the record, and must be loaded before the recorder.
    return [*job, "--", *command[:-3], "-p", "jax_tests_rank", *command[-3:]]


def run_all(options: argparse.Namespace, root: pathlib.Path, files: list) -> None:
    """Runs files, `--workers` at a time, each on its share of the processors."""
    prepared = environment(options)
    print(prepared[1], flush=True)
    todo = queue.SimpleQueue()
    for file in files:
        todo.put(file)

    def work(worker: int) -> None:
        while not todo.empty():
            try:
                file = todo.get_nowait()
            except queue.Empty:
                return
            run_file(options, root, file, worker, prepared)

    with concurrent.futures.ThreadPoolExecutor(options.workers) as pool:
        for done in [pool.submit(work, worker) for worker in range(options.workers)]:
            done.result()


def keep(options: argparse.Namespace, records: dict) -> None:
    """Adds XLA:CPU's outcomes to the repository."""
    references, kept = report.read_baseline(BASELINE), 0
    for file, record in records.items():
        if not record.is_complete:
            print(f"{file} was interrupted: not kept")
            continue
        counts = ", ".join(f"{record.count(kind)} {kind}" for kind in KINDS)
        print(f"{file}: {counts}, {record.seconds():.1f} s")
        print("".join(f"  {note}\n" for note in [*record.notes, *record.uncollected]), end="")
        references[f"{options.setting}/{file}"] = report.Reference.of(record)
        kept += 1
    report.write_baseline(BASELINE, references)
    print(f"\ntests/jax/baseline.zip: XLA:CPU's outcomes of {kept} files are kept")


def compare(options: argparse.Namespace, records: dict) -> None:
    """Prints the score and the misses of the plugin."""
    if not records:
        raise SystemExit(f"error: none of these files was run on platform {options.platform}")
    references = report.read_baseline(BASELINE)
    references = {file: references.get(f"{options.setting}/{file}") for file in records}
    pairs = [(file, record) for file, record in records.items() if references[file]]
    found = report.groups([miss for file, record in pairs for miss in report.misses(file, record, references[file])])
    print(f"{report.table(records, references)}\n{report.notes(records)}\n{report.causes(found)}", end="")
    (options.output / "misses.txt").write_text(report.whole_list(found))
    print(f"\nevery miss, with messages: {options.output / 'misses.txt'}")
    for file, record in records.items():
        if not record.is_complete:
            print(f"{file} was interrupted after {len(record.outcomes)} tests: run again to continue it")


def main() -> None:
    # Ctrl-C ends this process at once: a handler would let the workers record the file as complete and start the next.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    options = parse()
    root = checkout(options.folder)
    known = test_files(root)
    files = select(known, options.files, options.processes)
    options.output.mkdir(parents=True, exist_ok=True)
    if not options.report:
        for file in [] if options.files or options.processes > 1 else [file for file in known if reason(file)]:
            print(f"left out: {file} ({reason(file)})")
        run_all(options, root, files)
    # Files that were not started belong to no run.
    records = {file: Record(record_path(options, file)) for file in files if record_path(options, file).exists()}
    for file, record in records.items():
        record.path.with_suffix(".xml").write_bytes(report.junit(file, record))
    (keep if options.platform == "baseline" else compare)(options, records)


if __name__ == "__main__":
    main()
