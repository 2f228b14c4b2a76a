"""Process that runs the programs of one module of `programs/`; `run.py` starts it, and starts it again after a crash.

    worker.py MODULE --list                        prints the names of its programs
    worker.py MODULE --out DIR --via ... NAME ...  runs them, and writes DIR/NAME.json after each
"""

import importlib
import os
import pathlib
import sys

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("KERAS_BACKEND", "jax")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
# Checks of Equinox at run time are callbacks into Python otherwise.
os.environ.setdefault("EQX_ON_ERROR", "nan")
# Libraries initialize weights operation by operation, which compiles hundreds of small programs.
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import ours
import record


def programs_of(module):
    from registry import Registry

    registry = Registry(module)
    importlib.import_module(f"programs.{module}").register(registry)
    return registry.programs


def head(program):
    return {"name": program.name, "kind": program.kind, "batch": program.batch}


def one(program, side, work, keep):
    """Record of one program."""
    import reference
    from registry import Random

    return record.record_of(head(program), lambda: reference.make(program, Random(program.name)), side, work, keep)


def main():
    options = record.arguments(__doc__)
    programs = programs_of(options.module)
    if options.list:
        return record.list_all(head(program) for program in programs.values())
    side = ours.Plugin(options.library, options.timeout) if options.library else ours.Command(options.command, options.timeout)
    work, kept = options.out / "work" / options.module, options.out / "kept"
    record.run_all(options.names, options.out, lambda name: one(programs[name], side, work, kept / name))
    side.close()


if __name__ == "__main__":
    main()
