"""Writes the names of processors and features in LLVM to src/target; `cargo xtask llvm-names` calls it.

Features of x86 processors are queried with the inliner: LLVM inlines a function only into functions whose processor has
all features of the first one. One module has a function for each feature, and callers of them all for each processor
and feature; the calls that `opt` leaves show the missing features. Only tuning features and APX do not prevent
inlining; code of `llc` shows APX.
"""

import pathlib
import re
import subprocess
import sys

TARGET = pathlib.Path(__file__).parent / "src/target"
# Kinds of processor, by LLVM's name of the target and an architecture of its triple.
TARGETS = {
    "aarch64": "aarch64",
    "arm": "armv7",
    "avr": "avr",
    "bpf": "bpf",
    "hexagon": "hexagon",
    "loongarch": "loongarch64",
    "m68k": "m68k",
    "mips": "mips64",
    "msp430": "msp430",
    "nvptx": "nvptx64",
    "powerpc": "powerpc64le",
    "riscv": "riscv64",
    "sparc": "sparcv9",
    "systemz": "s390x",
    "ve": "ve",
    "webassembly": "wasm32",
    "x86": "x86_64",
    "xtensa": "xtensa",
}
# Feature under which APX is listed; LLVM splits it into several features that processors have together.
APX = "ndd"


def llvm(tool: str, *words: str, module: str = "") -> subprocess.CompletedProcess:
    try:
        # `llc` fails for some processors after it has listed the names.
        return subprocess.run([tool, *words], input=module, capture_output=True, text=True, check=module != "")
    except FileNotFoundError:
        sys.exit(f"{tool} is not there; Debian: apt-get install llvm-22")
    except subprocess.CalledProcessError as error:
        sys.exit(f"{tool} failed: {error.stderr.strip()}")


def listed(text: str, title: str) -> list:
    """The names below a title, each at the beginning of an indented line."""
    section = re.search(rf"^{title}.*\n.*\n((?:  .*\n)*)", text, re.MULTILINE)
    return [line.split()[0] for line in section[1].splitlines()] if section else []


def function(head: str, cpu: str, features: str, body: str) -> str:
    return f'define {head} "target-cpu"="{cpu}" "target-features"="{features}" {{\n{body}}}\n'


def inlined(opt: str, features: list, callers: list) -> list:
    """The features of each caller, a pair of processor and additional feature."""
    text = 'target triple = "i386-unknown-linux-gnu"\n'
    for number, feature in enumerate(features):
        text += function(f"i32 @f{number}(i32 %x)", "i386", f"+{feature}", f"%y = add i32 %x, {number}\nret i32 %y\n")
    calls = "".join(
        f"%r{number} = call i32 @f{number}(i32 %x)\nstore volatile i32 %r{number}, ptr %p\n"
        for number in range(len(features))
    )
    for number, (cpu, feature) in enumerate(callers):
        text += function(f"void @c{number}(i32 %x, ptr %p)", cpu, feature, f"{calls}ret void\n")
    bodies = llvm(opt, "-passes=inline", "-S", "-", module=text).stdout.split("define void @c")[1:]
    calls = {int(body.split("(")[0]): map(int, re.findall(r"call i32 @f(\d+)", body)) for body in bodies}
    return [set(features) - {features[call] for call in calls[number]} for number in range(len(callers))]


def with_apx(llc: str, processors: list) -> set:
    """The processors with APX: their code subtracts into a third register."""
    text = 'target triple = "x86_64-unknown-linux-gnu"\n'
    for number, cpu in enumerate(processors):
        body = "%z = sub i32 %x, %y\nret i32 %z\n"
        text += function(f"i32 @f{number}(i32 %x, i32 %y)", cpu, "+64bit", body)
    code = llvm(llc, "-o", "-", "-", module=text).stdout
    bodies = re.findall(r"^f(\d+):(.*?)^\.Lfunc_end", code, re.MULTILINE | re.DOTALL)
    return {processors[int(number)] for number, body in bodies if re.search(r"\bsubl\b[^,\n]*,[^,\n]*,", body)}


def x86_features(llc: str, processors: list, features: list) -> str:
    """A line `NAME: FEATURES` for each processor, and `+FEATURE: FEATURES` for each feature that implies others."""
    # The triple chooses the mode.
    features = [feature for feature in features if not feature.endswith("bit-mode")]
    callers = [(cpu, "") for cpu in processors] + [("i386", f"+{feature}") for feature in features]
    path = pathlib.Path(llc)
    # Both have the release in their names, or neither has.
    has = inlined(str(path.with_name(path.name.replace("llc", "opt"))), features, callers)
    own, implied = dict(zip(processors, has)), has[len(processors) :]
    always = own["i386"]
    implies = {feature: all - {feature} - always for feature, all in zip(features, implied)}

    def short(all: set) -> str:
        """Features without the ones that others of them imply."""
        return " ".join(sorted(one for one in all if not any(one in implies.get(other, ()) for other in all - {one})))

    text = "# Features of x86 processors, and features that features imply, from `cargo xtask llvm-names`.\n"
    apx = with_apx(llc, processors)
    for cpu, has in own.items():
        text += f"{cpu}: {short(has - always | ({APX} if cpu in apx else set()))}\n"
    return text + "".join(f"+{feature}: {short(all)}\n" for feature, all in sorted(implies.items()) if all)


def main(llc: str, version: str, *flags: str) -> None:
    names = f"# Names of processors and features in LLVM {version.split('.')[0]}, from `cargo xtask llvm-names`.\n"
    for target, architecture in TARGETS.items():
        text = llvm(llc, f"-mtriple={architecture}", "-mcpu=help").stderr
        processors, features = listed(text, "Available CPUs"), listed(text, "Available features")
        if not processors:
            sys.exit(f"llc lists no processors of {architecture}: {text.strip()}")
        names += f"{target}\ncpus {' '.join(processors)}\nfeatures {' '.join(features)}\n"
        if target == "x86":
            x86 = x86_features(llc, processors, features)
    for file, text in [("names.txt", names), ("x86_features.txt", x86)]:
        if "--check" not in flags:
            (TARGET / file).write_text(text)
        elif (TARGET / file).read_text() != text:
            sys.exit(f"{TARGET / file} is of another LLVM than {version}: run `cargo xtask llvm-names`")


main(*sys.argv[1:])
