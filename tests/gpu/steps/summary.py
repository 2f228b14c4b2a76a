"""Makes one page of whatever results there are."""
import math
import os
import time

from . import STEPS
from .bench import PRODUCTS
from .results import read

# Failures of a step that are told on the page; the files have all of them, and whole.
TOLD, LINES = 40, 12


def write(opt, left_out=()):
    """Writes OUT/report.md and returns its path."""
    device = opt.device
    lines = ["# %s, %s" % (device["model"], time.strftime("%Y-%m-%d")), "", device["summary"]]
    lines += ["", "| step | | seconds | items | failed |", "| --- | --- | ---: | ---: | ---: |"]
    found = [(name, read(opt.out, name)) for name in STEPS]
    lines += [overview(name, records, name in left_out) for name, records in found if records or name in left_out]
    for name, records in found:
        if records:
            lines += ["", "## %s: %s" % (name, STEPS[name].TITLE), ""] + page(name, records)
    path = os.path.join(opt.out, "report.md")
    with open(path + ".new", "w") as file:
        file.write("\n".join(lines) + "\n")
    os.replace(path + ".new", path)
    return path


def overview(name, records, is_left_out):
    items = [record for record in records if "item" in record]
    failed = sum(not record["ok"] for record in items)
    last = records[-1] if records else {}
    state = "no time was left" if is_left_out else "not ended" if not last.get("ended") else "passes" if last["ok"] else "FAILS"
    why = next((record["value"] for record in records if record.get("fact") == "left out"), None)
    return "| %s | %s | %s | %d | %d |" % (name, "left out: %s" % why if why else state, last.get("seconds", ""), len(items), failed)


def page(name, records):
    items = [record for record in records if "item" in record]
    lines = ["- %s: %s" % (record["fact"], told(record["value"])) for record in records if "fact" in record]
    lines += TABLES[name](items) if name in TABLES and items else []
    failures = [record for record in items if not record["ok"]]
    for record in failures[:TOLD]:
        lines += ["", "**%s** %s" % (record["item"], record.get("outcome", "failed")), "", "```"]
        said = str(record.get("message") or {key: value for key, value in record.items() if key not in ("item", "ok")}).splitlines()
        lines += said[:LINES] + ["..."] * (len(said) > LINES) + ["```"]
    if len(failures) > TOLD:
        lines += ["", "and %d more" % (len(failures) - TOLD)]
    lines += ["- warning at %s: %s" % (record["item"], warning) for record in items for warning in record.get("warnings", [])]
    return lines


def told(value):
    if isinstance(value, dict):
        return ", ".join("%s %s" % pair for pair in value.items())
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return "\n\n```\n%s\n```\n" % text if "\n" in text else text


def table(head, items, cells):
    lines = ["", "| %s |" % " | ".join(head), "| --- |" + " ---: |" * (len(head) - 1)]
    rows = [[record["item"]] + cells(record) for record in items if record["ok"]]
    return lines + ["| %s |" % " | ".join(row) for row in rows]


def ceilings(items):
    return table(["program", "device us", "GB/s", "of a copy"], items, lambda row: [
        number(row["device_us"], "%.1f"), number(row["gb_per_s"], "%.0f"), percent(row["of_copy"])])


def products(items):
    return table(["program", "device us", "10^12 operations/s", "cuBLAS us", "of cuBLAS"], items, lambda row: [
        number(row["device_us"], "%.1f"), number(row["tera_per_s"], "%.2f"), number(row.get("cublas_us"), "%.1f"),
        percent(row.get("of_cublas"))])


def launches(items):
    return table(["", "device us", "queued call us", "latency us"], items, lambda row: [
        number(row[name], "%.2f") for name in ("device_us", "queued_us", "run_us")])


def device_time(items):
    names = ("device_us", "queued_us", "latency_us")
    head = ["program"] + ["%s %s" % (name.replace("_", " "), how) for how in ("graphs", "without") for name in names]
    return table(head, items, lambda row: [
        number(row[how][name], "%.2f") for how in ("graphs", "without_graphs") for name in names])


def bench(items):
    head = ["program", "exact us", "device us", "JAX us", "ratio", "TF32 us", "device us", "JAX us", "ratio", "machine code, device us"]
    lines = table(head, items, lambda row: [
        cell for products in PRODUCTS for cell in (
            number(row.get(products, {}).get("run_us"), "%.1f"), number(row.get(products, {}).get("device_us"), "%.1f"),
            number(row.get(products, {}).get("jax_us"), "%.1f"), number(row.get(products, {}).get("ratio"), "%.2f"))] + [number(row.get("machine_code_us"), "%.1f")])
    for products in PRODUCTS:
        ratios = [row[products]["ratio"] for row in items if "ratio" in row.get(products, {})]
        if ratios:
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            lines += ["", "Geometric mean of %d ratios, %s beside %s: %.3f" % (len(ratios), products, products, mean)]
    return lines


TABLES = {"ceilings": ceilings, "products": products, "launches": launches, "bench": bench, "bench_large": bench,
          "device_time": device_time}


def number(value, form):
    return "" if value is None else form % value


def percent(value):
    return "" if value is None else "%.0f%%" % (100 * value)
