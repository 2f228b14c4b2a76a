"""Misses by name, and the table of shares."""

import collections

# Least share of successes in percent.
LEAST = {"accepted": 97.0, "interpret": 98.0}
# Results of a function that jaxlib converts; `sizes` is one that is accepted when `--shapes` states sizes.
CONVERTED = ("accepted", "sizes", "refused", "crashed", "timed out")
# Results of a run that counts; other programs are `left out` or have `no reference`.
RUN = ("passed", "differs", "refused", "crashed", "timed out")
FORMS = ("in place", "arguments")
PLATFORMS = ("cpu", "interpreter")
# Results that are listed with their reasons.
LISTED = ("left out", "no reference", "differs", "refused", "crashed", "timed out")


def rows_of(part: str, found: list) -> list:
    """Rows of the table: label, number of counted cases, successes, and the number of each other result."""
    rows = []
    if part == "accepted":
        groups = {"accepted functions": [record for record in found if record["result"] in CONVERTED]}
        successes = ("accepted", "sizes")
    else:
        counted = [record for record in found if record["result"] in RUN]
        groups = {
            f"interpret, constants {'in place' if form == 'in place' else 'as arguments'}, {platform}": [
                record for record in counted if (record["form"], record["platform"]) == (form, platform)]
            for form in FORMS for platform in PLATFORMS
        }
        successes = ("passed",)
    for label, group in groups.items():
        if group:
            counts = collections.Counter(record["result"] for record in group)
            rows.append((label, len(group), sum(counts[result] for result in successes), counts))
    return rows


def show(part: str, found: list, least: float) -> bool:
    """Prints misses by cause and the table; returns whether every row reaches the least share."""
    for record in sorted(found, key=lambda record: record["name"]):
        if record["result"] in LISTED:
            print(f"{record['result']}: {record['name']}: {record['message']}")
    print(f"\n{'':<52}{'cases':>7}{'good':>7}{'share':>9}")
    rows = rows_of(part, found)
    passes = bool(rows)
    for label, cases, good, counts in rows:
        share = 100 * good / cases
        verdict = "" if share >= least else f"  below {least:g} %"
        rest = sorted((result, count) for result, count in counts.items() if result not in ("accepted", "passed"))
        others = ", ".join(f"{count} {result}" for result, count in rest)
        print(f"{label:<52}{cases:>7}{good:>7}{share:>7.1f} %{verdict}{'  (' + others + ')' if others else ''}")
        passes &= share >= least
    if not rows:
        print(f"{part}: there are no records")
    return passes
