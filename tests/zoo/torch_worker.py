"""Process that runs modules of PyTorch: forward, backward and small trainings, on PyTorch's CPU backend and by torch_xla on our plugin.

    torch_worker.py torch --list
    torch_worker.py torch --out DIR --library PLUGIN NAME ...

Where the results differ from PyTorch's, or torch_xla refuses the program, torch_xla runs it on its own XLA:CPU as well. A program whose
results equal these agrees; its record names the difference, which is torch_xla's.
"""

import copy
import faulthandler
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import zlib

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import numpy as np

import arrays
import ours
import record
from tolerance import Expected, is_float, shake

STEPS = 10


def programs():
    """`(head, make, inputs, optimizer)` by name."""
    import torch_modules

    found = {}

    def add(name, make, batch, inputs, optimizer):
        head = {"name": f"torch.{name}", "kind": "training" if optimizer else "gradient", "batch": batch}
        found[head["name"]] = (head, make, inputs, optimizer)

    torch_modules.register(add)
    return found


def flat(outputs):
    import torch

    if isinstance(outputs, torch.Tensor):
        return [outputs]
    return [leaf for output in outputs if output is not None for leaf in flat(output)]


def weighted(outputs):
    """Scalar whose gradient is taken; the weights differ from element to element."""
    import torch

    total = 0.0
    for output in outputs:
        if output.is_floating_point():
            index = torch.arange(output.numel(), device=output.device, dtype=output.dtype)
            total = total + (output.reshape(-1) * torch.cos(0.7 * index)).sum()
    return total


def tensors(leaves, device, wide=False):
    """Inputs on a device; integers have 64 bits, as PyTorch wants indices."""
    import torch

    made = []
    for leaf in leaves:
        kind = (np.float64 if wide else leaf.dtype) if is_float(leaf) else np.int64
        made.append(torch.from_numpy(leaf.astype(kind)).to(device))
    return made


def gradients(module, inputs):
    """Outputs, loss, gradients of inputs and parameters, and buffers such as running means."""
    import torch

    for value in inputs:
        value.requires_grad_(value.is_floating_point())
    outputs = flat(module(*inputs))
    loss = weighted(outputs)
    wanted = [*[value for value in inputs if value.requires_grad], *module.parameters()]
    found = torch.autograd.grad(loss, wanted, allow_unused=True)
    return [*outputs, loss, *[value for value in found if value is not None], *module.buffers()]


def training(module, inputs, optimizer, after_step):
    """Losses of some steps, then the parameters and buffers."""
    import torch

    chosen = optimizer(module.parameters())
    losses = []
    for _ in range(STEPS):
        chosen.zero_grad()
        loss = torch.nn.functional.cross_entropy(module(inputs[0]), inputs[1])
        loss.backward()
        chosen.step()
        losses.append(loss.detach())
        after_step()
    return [torch.stack(losses), *module.parameters(), *module.buffers()]


def run(module, inputs, optimizer, after_step=lambda: None):
    module = copy.deepcopy(module)
    results = training(module, inputs, optimizer, after_step) if optimizer else gradients(module, inputs)
    return [value.detach() for value in results]


class Device:
    """Device that torch_xla opens through our PJRT plugin, or without one its own XLA:CPU."""

    name = "torch_xla"

    def __init__(self, library):
        os.environ["PJRT_DEVICE"] = "XLARS" if library else "CPU"
        import torch

        # torch_xla replaces this class by one that does not run on the CPU backend.
        self.own_gru = torch.nn.GRU
        import torch_xla

        self.torch_xla, self.program, self.outputs = torch_xla, None, None
        if library:
            self.register(library)
        self.device = torch_xla.device()

    def register(self, library):
        from torch_xla.experimental import plugins

        class Plugin(plugins.DevicePlugin):
            def library_path(self):
                return library

            def client_create_options(self):
                return {"platform": "cpu"}

        plugins.use_dynamic_plugins()
        plugins.register_plugin("XLARS", Plugin())

    def run(self, folder):
        """Runs `self.program`, a module, its inputs and an optimizer; returns the time in seconds."""
        module, leaves, optimizer = self.program
        self.outputs = None
        started = time.perf_counter()
        try:
            results = run(copy.deepcopy(module).to(self.device), tensors(leaves, self.device), optimizer, self.torch_xla.sync)
            if not optimizer:
                # The program that torch_xla compiles, for `xla run`; some results are made on the host.
                ours_alone = [value for value in results if value.device.type == "xla"]
                (folder / "module.hlo").write_text(self.torch_xla._XLAC._get_xla_tensors_hlo(ours_alone))
            self.torch_xla.sync()
            self.outputs = [value.cpu().numpy() for value in results]
        except Exception as error:
            raise ours.Failure("refused", f"{type(error).__name__}: {str(error)[:600]}") from None
        ours.store(folder / "out.npz", "out", self.outputs)
        return time.perf_counter() - started


def make(name, program, side):
    """Runs a program on PyTorch's CPU backend, in double precision as well; `side` gets the same module and inputs."""
    import torch

    _, build, inputs, optimizer = program
    torch.manual_seed(zlib.crc32(name.encode()))
    theirs, torch.nn.GRU = torch.nn.GRU, side.own_gru
    try:
        module = build()
    finally:
        torch.nn.GRU = theirs
    with torch.no_grad():
        for parameter in module.parameters():
            # Initial biases of zero and scales of one hide faults.
            parameter.add_(0.1 * torch.randn_like(parameter))
    leaves = [np.asarray(leaf) for leaf in inputs(arrays.Random(name))]
    replaced = build().train(module.training)
    replaced.load_state_dict(module.state_dict())
    side.program = (replaced, leaves, optimizer)
    on_cpu = lambda values: [value.numpy() for value in run(module, tensors(values, "cpu"), optimizer)]
    expected = on_cpu(leaves)
    shaken = [on_cpu(shake(leaves, seed)) for seed in (1, 2)]
    exact = [value.numpy() for value in run(copy.deepcopy(module).double(), tensors(leaves, "cpu", True), optimizer)]
    return Expected(None, None, leaves, expected, exact, shaken)


def on_xla_cpu(name, folder, timeout):
    """Runs a program by torch_xla on its own XLA:CPU, in a process of its own; returns the outputs, or the error as text."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    words = [sys.executable, __file__, "torch", name, "--out", str(folder), "--timeout", str(timeout)]
    done = subprocess.run(words, capture_output=True, text=True)
    answer = folder / f"{name}.json"
    if done.returncode or not answer.exists():
        return f"the process ended with {done.returncode}"
    answer = json.loads(answer.read_text())
    if "ratio" not in answer:
        return answer["message"]
    with np.load(folder / "work/torch/out.npz") as stored:
        return [stored[f"out{i}"] for i in range(len(stored.files))]


def blame(result, expected, outputs, other):
    """Decides whether a difference from PyTorch is torch_xla's: then its own XLA:CPU has the same."""
    if isinstance(other, str):
        if result["result"] == "refused" and result["message"].split("\n")[0] in other:
            return result | {"result": "no reference", "message": f"torch_xla on XLA:CPU, too: {result['message']}"}
        return result
    if outputs is None or [y.shape for y in other] != [y.shape for y in outputs]:
        return result
    same = copy.copy(expected)
    same.expected = same.centre = other
    same.source = "torch_xla on XLA:CPU"
    found = record.verdict(same, outputs)
    if found["result"] != "agree":
        return result
    return result | found | {"reference": same.source, "message": f"torch_xla differs from PyTorch on XLA:CPU, too: {result['message']}"}


def main():
    options = record.arguments(__doc__)
    known = programs()
    if options.list:
        return record.list_all(program[0] for program in known.values())
    side = Device(options.library)

    def one(name):
        # torch_xla runs in this process, which ends where a program takes too long.
        faulthandler.dump_traceback_later(options.timeout, exit=True)
        work, keep = options.out / "work" / "torch", options.out / "kept" / name
        made = []

        def expected():
            made.append(make(name, known[name], side))
            return made[0]

        result = record.record_of(known[name][0], expected, side, work, keep)
        faulthandler.cancel_dump_traceback_later()
        if options.library and result["result"] in ("differ", "refused"):
            other = on_xla_cpu(name, options.out / "work" / "torch_xla", options.timeout)
            result = blame(result, made[0], side.outputs, other)
        return result

    record.run_all(options.names, options.out, one)


if __name__ == "__main__":
    main()
