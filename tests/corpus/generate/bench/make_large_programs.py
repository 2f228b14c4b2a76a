"""Writes programs of one large fusion each, 1,000 to 4,000 instructions of many values at a time, for `cargo xtask ptxas`.

According to its issue tracker, XLA:GPU limits such kernels to 32 registers and spills the rest.

    make_large_programs.py FOLDER
"""

import pathlib
import sys

ELEMENTS = 1 << 20
# Operations that take one instruction of the machine, each with its number of operands.
SIMPLE = [("add", 2), ("multiply", 2), ("subtract", 2), ("maximum", 2), ("minimum", 2)]
INTEGER = [("add", 2), ("multiply", 2), ("xor", 2), ("and", 2), ("minimum", 2)]
# Some of them take dozens.
FUNCTIONS = [("add", 2), ("multiply", 2), ("subtract", 2), ("sine", 1), ("exponential", 1), ("tanh", 1), ("log", 1)]
FUNCTIONS += [("divide", 2), ("sqrt", 1)]
# Name, element type, operations, number of live values, number of instructions.
PROGRAMS = [
    ("chain_f32", "f32", SIMPLE, 6, 3900),
    ("chain_bf16", "bf16", SIMPLE, 6, 2000),
    ("wide_f32_50", "f32", SIMPLE, 50, 1500),
    ("wide_f32_100", "f32", SIMPLE, 100, 1200),
    ("wide_f32_200", "f32", SIMPLE, 200, 2000),
    ("wide_f64_60", "f64", SIMPLE, 60, 1200),
    ("wide_s32_150", "s32", INTEGER, 150, 1500),
    ("wide_bf16_100", "bf16", SIMPLE, 100, 1000),
    ("functions_f32", "f32", FUNCTIONS, 6, 1000),
]


def random_below(seed: int):
    """Numbers of a linear congruential generator (D. Knuth's MMIX), the same each time."""

    def below(bound: int) -> int:
        nonlocal seed
        seed = (seed * 6364136223846793005 + 1442695040888963407) % 2**64
        return (seed >> 33) % bound

    return below


def program(name: str, element_type: str, operations: list, most_live: int, instructions: int) -> str:
    """Each instruction combines live values and replaces one of them; the end adds up all live values."""
    lines = []

    def add(name: str, value: str) -> str:
        lines.append(f"  {name} = {element_type}[{ELEMENTS}] {value}\n")
        return name

    below = random_below(instructions)
    live = [add("x", "parameter(0)"), add("y", "parameter(1)")]
    for number in range(instructions - most_live):
        operation, arity = operations[below(len(operations))]
        operands = [live[below(len(live))] for _ in range(arity)]
        value = add(f"v{number}", f"{operation}({', '.join(operands)})")
        if len(live) < most_live:
            live.append(value)
        else:
            live[number % most_live] = value
    total = live[0]
    for number, value in enumerate(live[1:], 1):
        total = add("ROOT r" if number + 1 == len(live) else f"s{number}", f"add({total}, {value})")
    assert len(lines) == instructions + 1
    return f"HloModule {name}\n\nENTRY main {{\n{''.join(lines)}}}\n"


folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
for row in PROGRAMS:
    (folder / f"{row[0]}.hlo").write_text(program(*row))
