"""One process with JAX for all programs, which is asked line by line; started again where it dies or does not answer."""
import json
import os
import queue
import subprocess
import threading

from . import toolbox

SCRIPT = os.path.join(os.path.dirname(toolbox.HERE), "jax_time.py")
# Seconds until JAX has found its devices, and for a program to be compiled and timed.
START, ANSWER = 300, 300


class JaxServer:
    """The process. `device` is what it says about itself, or why there is none."""

    def __init__(self, opt, manifest):
        self.words = [opt.python, SCRIPT, manifest, opt.seconds()]
        self.environment, self.log, self.process = opt.environment(), opt.scratch("jax.log"), None
        self.device = self.start()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.end()

    def start(self):
        self.answers = queue.Queue()
        with open(self.log, "w") as log:
            self.process = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
                                            env=self.environment, universal_newlines=True)
        threading.Thread(target=listen, args=(self.process.stdout, self.answers), daemon=True).start()
        first = self.answer(START)
        if "version" not in first:
            self.end()
        return first

    def end(self):
        if self.process:
            self.process.kill()
            self.process.wait()
        self.process = None

    def answer(self, seconds):
        try:
            line = self.answers.get(timeout=seconds)
        except queue.Empty:
            return {"jax_error": "no answer within %d s" % seconds}
        if line is not None:
            return json.loads(line)
        with open(self.log, errors="replace") as log:
            return {"jax_error": log.read().strip()[-4000:] or "the process of JAX died"}

    def time(self, path, products):
        """The time of a program; nothing where there is no JAX."""
        if not self.process:
            if "version" not in self.device:
                return {}
            # The program before took the process with it.
            if "version" not in self.start():
                return {"jax_error": "JAX cannot be started again"}
        try:
            self.process.stdin.write(json.dumps({"program": path, "products": products}) + "\n")
            self.process.stdin.flush()
        except OSError:
            pass  # It is gone, which shows when it does not answer.
        found = self.answer(ANSWER)
        if "jax_us" not in found and not found.get("goes_on"):
            self.end()
        found.pop("goes_on", None)
        return found


def listen(lines, answers):
    for line in lines:
        if line.startswith("{"):
            answers.put(line)
    answers.put(None)
