"""Test programs of StableHLO's interpreter: the values that they check become results of `main`."""

import dataclasses
import re

import source

# Statements of a function start a line with one of these.
STATEMENT_END = re.compile(r"\n\s*(?=check\.|func\.return|return\b|stablehlo\.|chlo\.|%|\}|\"|$)")
CHECK = re.compile(r"check\.expect_(\w+)\s+(%[\w#]+)\s*,\s*")
RETURN = re.compile(r"\b(?:func\.)?return\b[^\n]*")
NUMBER = r"\s*=\s*([-+.\w]+)"
# Programs that only the interpreter runs, by a text that they contain.
LEFT_OUT = {
    "interpreter.run_parallel": "several devices",
    "!stablehlo.token": "tokens",
    "interpreter.probe": "probes",
    "check.expect_serialized_eq": "probes",
    "interpreter.print": "prints",
}
# Operands from this position on are shapes, strides or paddings: sizes of the result, which compilers must know.
SIZES_FROM = {
    "dynamic_broadcast_in_dim": 1,
    "dynamic_conv": 2,
    "dynamic_gather": 2,
    "dynamic_iota": 0,
    "dynamic_pad": 2,
    "dynamic_reshape": 1,
    "real_dynamic_slice": 1,
}
SIZED = re.compile(rf'stablehlo\.({"|".join(SIZES_FROM)})"?\s*\(?\s*((?:%[\w#]+\s*,?\s*)+)')
CONSTANT = re.compile(r'(%\w+)\s*=\s*"?stablehlo\.constant"?\s*(?:\(\)\s*[<{]+\s*value\s*=\s*)?(?=dense<)')
BRACES = re.compile(rf"{source.STRING}|[{{}}]")


@dataclasses.dataclass
class Program:
    """Adapted program. Without checks, its results must be those of the reference, if it has any."""

    name: str
    text: str = ""
    # Comparisons: `kind`, `actual` and `expected`, numbers of results, or `constant`, the number of a constant.
    checks: list = dataclasses.field(default_factory=list)
    constants: list = dataclasses.field(default_factory=list)
    # The program whose constants are arguments, and these constants; empty if it has none.
    text_of_arguments: str = ""
    arguments: list = dataclasses.field(default_factory=list)
    # Reason why the program is not run.
    left_out: str = ""


def programs(text: str, path: str) -> list:
    """Programs of a file, named after their functions."""
    found = []
    for number, part in enumerate(source.parts(text)):
        known = source.functions(part)
        if not known:
            continue
        entries = [function for function in known if "check." in function.text]
        entry = (entries or [function for function in known if function.name == "main"] or known)[0]
        module = re.search(r"\bmodule\s+@([\w.-]+)", part)
        label = module.group(1) if module and entry.name == "main" else entry.name
        found.append(program(part, known, entry, f"{path}:{number}:{label}"))
    return found


def program(part: str, known: list, entry: source.Function, name: str) -> Program:
    reasons = [reason for text, reason in LEFT_OUT.items() if text in part]
    if reasons:
        return Program(name, left_out=reasons[0])
    if not re.match(r"\s*\(\s*\)", entry.text):
        return Program(name, left_out="arguments of a command line")
    adapted = Program(name)
    results = []
    body = remove_checks(entry.text, adapted, results)
    if adapted.checks:
        values, types = zip(*results) if results else ((), ())
        body = re.sub(r"^\s*\(\s*\)", lambda _: f"() -> ({', '.join(types)})", body, count=1)
        last = list(RETURN.finditer(body))[-1]
        body = f"{body[:last.start()]}return {', '.join(values)} : {', '.join(types)}{body[last.end():]}"
    adapted.text = with_main(part, known, entry, body)
    body = take_arguments(body, adapted.arguments)
    if adapted.arguments:
        adapted.text_of_arguments = with_main(part, known, entry, body)
    return adapted


def with_main(part: str, known: list, entry: source.Function, body: str) -> str:
    main = source.Function(entry.name, body)
    return source.alone(part, [main if function is entry else function for function in known], main)


def take_arguments(text: str, taken: list) -> str:
    """Text whose constants outside of regions are arguments, except for sizes; `taken` gets the constants."""
    sizes = set()
    for match in SIZED.finditer(text):
        operands = re.findall(r"%[\w#]+", match.group(2))
        sizes.update(operands[SIZES_FROM[match.group(1)]:])
    kept, names, position = [], [], 0
    for match in CONSTANT.finditer(text):
        depth = sum({"{": 1, "}": -1}.get(brace, 0) for brace in BRACES.findall(text[:match.start()]))
        constant, end = typed_attribute(text, match.end())
        if depth != 1 or match.group(1) in sizes or "quant" in constant[1]:
            continue
        if '"' in match.group(0):
            end = source.end_of_type(text, text.index("->", end) + 2)
        kept.append(text[position:match.start()])
        position = end
        names.append(f"{match.group(1)}: {constant[1]}")
        taken.append(constant)
    rest = "".join(kept) + text[position:]
    return re.sub(r"^\s*\(\s*\)", lambda _: f"({', '.join(names)})", rest, count=1)


def typed_attribute(text: str, position: int) -> tuple:
    """An attribute `dense<...> : TYPE` with its type, and the position after it."""
    end = source.end_of_group(text, text.index("<", position))
    colon = text.index(":", end)
    end_of_type = source.end_of_type(text, colon + 1)
    kind = text[colon + 1:end_of_type].strip()
    return (f"{text[position:end]} : {kind}", kind), end_of_type


def remove_checks(text: str, adapted: Program, results: list) -> str:
    """Text without its checks, which are added to the program; `results` get their values with types."""
    kept, position = [], 0
    while match := CHECK.search(text, position):
        kept.append(text[position:match.start()])
        end = STATEMENT_END.search(text, match.end())
        position = end.start() if end else len(text)
        add_check(match.group(1), match.group(2), text[match.end():position].strip(), adapted, results)
    return "".join(kept) + text[position:]


def add_check(kind: str, actual: str, rest: str, adapted: Program, results: list) -> None:
    check = {"kind": kind.removesuffix("_const"), "actual": len(results)}
    if check["kind"] not in ("eq", "almost_eq", "close"):
        raise ValueError(f"{adapted.name}: there is no rule for check.expect_{kind}")
    check |= {"tolerance": number(rest, "tolerance", 1e-4), "most": number(rest, "max_ulp_difference", 1)}
    check["least"] = number(rest, "min_ulp_difference", 0)
    if kind.endswith("_const"):
        constant, _ = typed_attribute(rest, 0)
        check["constant"] = len(adapted.constants)
        adapted.constants.append(constant)
        results.append((actual, constant[1]))
    else:
        expected = re.match(r"%[\w#]+", rest).group()
        types = rest[rest.rindex(":", 0, rest.index("tensor<")) + 1:].strip()
        first = types[:source.end_of_type(types, 0)].strip()
        check["expected"] = len(results) + 1
        results += [(actual, first), (expected, first)]
    adapted.checks.append(check)


def number(text: str, name: str, default: float) -> float:
    match = re.search(rf"\b{name}{NUMBER}", text)
    return float(match.group(1)) if match else default


def constants_module(constants: list) -> str:
    """Module that returns constants: attribute and type of each."""
    lines = [f"  %{number} = stablehlo.constant {attribute}" for number, (attribute, _) in enumerate(constants)]
    values = ", ".join(f"%{number}" for number in range(len(constants)))
    types = ", ".join(kind for _, kind in constants)
    return "\n".join([f"func.func @main() -> ({types}) {{", *lines, f"  return {values} : {types}", "}", ""])
