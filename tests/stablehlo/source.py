"""Text of MLIR test files: their parts, the functions of a part, and a function with its callees as a module."""

import functools
import re

SEPARATOR = re.compile(r"^\s*//\s*-----.*$", re.MULTILINE)
STRING = r'"(?:[^"\\\n]|\\.)*"'
# A string, or a comment up to the end of its line.
STRING_OR_COMMENT = re.compile(rf"({STRING})|//[^\n]*")
NAME = rf"@([\w$.-]+|{STRING})"
FUNCTION = re.compile(rf"\b(?:func\.)?func\b(?:\s+(?:public|private|nested))?\s+{NAME}\s*(?=\()")
SYMBOL = re.compile(NAME)
# Attribute and type aliases: a line, and the lines up to the next alias or operation.
ALIAS = re.compile(r"^[#!][\w.$-]+\s*=.*(?:\n(?![#!]|\s*(?:module|func)\b).*)*", re.MULTILINE)
TYPE_NAME = re.compile(r"\s*[!\w.]*")
CLOSING = {"(": ")", "[": "]", "{": "}", "<": ">"}


def parts(text: str) -> list:
    """Parts of a file, which `-split-input-file` reads one by one, without comments."""
    return [STRING_OR_COMMENT.sub(lambda match: match.group(1) or "", part) for part in SEPARATOR.split(text)]


@functools.cache
def brackets(opening: str) -> re.Pattern:
    return re.compile(rf"{STRING}|->|[{re.escape(opening + CLOSING[opening])}]")


def end_of_group(text: str, start: int) -> int:
    """Position after the bracket that closes the one at `start`; -1 if none does."""
    depth = 0
    opening = text[start]
    for match in brackets(opening).finditer(text, start):
        depth += {opening: 1, CLOSING[opening]: -1}.get(match.group(), 0)
        if depth == 0:
            return match.end()
    return -1


def end_of_type(text: str, position: int) -> int:
    """Position after a type, or a list of types in parentheses; -1 if there is none."""
    match = TYPE_NAME.match(text, position)
    if text[match.end():match.end() + 1] in ("<", "("):
        return end_of_group(text, match.end())
    return match.end() if match.group().strip() else -1


class Function:
    """Function of a part: its name, and the text of its arguments, results and body."""

    def __init__(self, name: str, text: str):
        self.name, self.text = name, text
        self.symbols = set(SYMBOL.findall(text))


def functions(part: str) -> list:
    """Functions of a part that have a body."""
    found = []
    position = 0
    while match := FUNCTION.search(part, position):
        position = match.end()
        body = start_of_body(part, end_of_group(part, match.end()))
        end = end_of_group(part, body) if body >= 0 else -1
        if end >= 0:
            found.append(Function(match.group(1), part[match.end():end]))
            position = end
    return found


def start_of_body(part: str, position: int) -> int:
    """Position of the `{` of a function's body, after its arguments; -1 for a declaration."""
    while 0 <= position < len(part):
        if part[position].isspace():
            position += 1
        elif part.startswith("->", position):
            position = end_of_type(part, position + 2)
        elif part.startswith("attributes", position):
            opening = part.find("{", position)
            position = end_of_group(part, opening) if opening >= 0 else -1
        else:
            return position if part[position] == "{" else -1
    return -1


def alone(part: str, known: list, entry: Function) -> str:
    """Module of one function of a part, as `main`, with the functions that it refers to."""
    by_name = {function.name: function for function in reversed(known)}
    needed, waiting = set(), set(entry.symbols)
    while waiting:
        name = waiting.pop()
        if name in by_name and name not in needed:
            needed.add(name)
            waiting |= by_name[name].symbols
    lines = [alias.strip() for alias in ALIAS.findall(part)]
    lines.append(f"func.func @main{renamed(entry)}")
    lines += [f"func.func private @{new_name(name)}{renamed(by_name[name])}" for name in sorted(needed)]
    return "\n".join(lines) + "\n"


def new_name(name: str) -> str:
    """Name of a callee: `main` is the entry."""
    return "main.callee" if name == "main" else name


def renamed(function: Function) -> str:
    return SYMBOL.sub(lambda match: f"@{new_name(match.group(1))}", function.text)
