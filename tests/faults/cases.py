"""Cases, drawn from a seed: a command line, and the fault under which it runs."""

import dataclasses
import random
import signal

import programs

KINDS = ("memory", "threads", "file size", "full disk", "full device", "open files", "signal")
VERBS = ("run", "run", "run", "compile", "compile", "bench", "opt")
SIGNALS = ("SIGTERM", "SIGKILL", "SIGINT")
# Programs that the interpreter runs in a second.
QUICK = ("few_kernels", "dense", "sort")
# Programs without code ahead of time.
RUN_ALONE = ("transform",)
# Share of the cases that use a generated program.
GENERATED_SHARE = 0.6


@dataclasses.dataclass(frozen=True)
class Case:
    number: int
    kind: str
    # Limit in the unit of the kind: MB, threads, bytes, descriptors; of a signal, a share of the time without fault.
    limit: float
    signal: str
    verb: str
    program: str
    # Options of the command. Paths are relative to the folder of the run.
    options: tuple
    # Cache folder: `none`, `cold`, or `warm`, which an earlier run has filled.
    cache: str

    def words(self) -> list:
        """Arguments of the command."""
        cache = ["--cache-dir", "none" if self.cache == "none" else "cache"]
        return [self.verb, "program.hlo", *self.options, *cache]

    def fault(self) -> str:
        """The fault in words."""
        return {
            "memory": f"address space {self.limit:g} MB",
            "threads": f"{self.limit:g} processes and threads",
            "file size": f"files of {self.limit:g} bytes",
            "full disk": f"a disk of {self.limit:g} bytes",
            "full device": "output to /dev/full",
            "open files": f"{self.limit:g} open files",
            "signal": f"{self.signal} after {100 * self.limit:.0f} % of the time",
        }[self.kind]


def limit_of(kind: str, draw: random.Random) -> float:
    if kind == "memory":
        return draw.randint(400, 1400)
    if kind == "threads":
        return draw.randint(1, 12)
    if kind == "file size":
        return int(10 ** draw.uniform(0, 6))
    if kind == "full disk":
        return 4096 * draw.choice((1, 2, 4, 8, 32, 128, 1024))
    if kind == "open files":
        # The dynamic linker needs four.
        return draw.randint(4, 8)
    return draw.uniform(0.02, 1.05) if kind == "signal" else 0


def case(seed: int, number: int, names: list) -> Case:
    """Case of a number; it depends on no other one."""
    draw = random.Random(f"{seed}:{number}")
    # Kinds take turns, so that every hundred cases have all of them. Memory and signals have two places each.
    kind = (*KINDS, "memory", "signal")[number % (len(KINDS) + 2)]
    verb = draw.choice(VERBS)
    cache = draw.choice(("none", "none", "cold", "cold", "warm"))
    generated = draw.random() < GENERATED_SHARE
    left_out = RUN_ALONE if verb == "compile" else ()
    name = draw.choice([name for name in names if (name in programs.GENERATED) == generated and name not in left_out])
    options = ["--platform", "cpu"]
    if verb == "run":
        if name in QUICK and draw.random() < 0.3:
            options = ["--platform", "interpreter"]
        options += ["--inputs-seed", "0", "--output", "out.npz"]
    elif verb == "compile":
        options += ["--output", "build", *draw.choice(([], ["--constants", "file"], ["--archive"], ["--emit", "asm"]))]
    elif verb == "bench":
        options += ["--reps", "3", "--compiles", "1", "--json"]
    else:
        options += ["--output", "out.hlo"]
    if draw.random() < 0.4:
        options += ["--trace", "trace.json"]
    if draw.random() < 0.2:
        options += ["--dump-to", "dump"]
    if kind == "full device":
        options = full_device(verb, options)
    return Case(number, kind, limit_of(kind, draw), draw.choice(SIGNALS), verb, name, tuple(options), cache)


def full_device(verb: str, options: list) -> list:
    """Options with the output, or without one the trace, at /dev/full."""
    for name in ("out.npz", "out.hlo", "trace.json"):
        if name in options:
            return ["/dev/full" if word == name else word for word in options]
    return [*options, "--trace", "/dev/full"]


def number_of(name: str) -> int:
    return getattr(signal, name).value
