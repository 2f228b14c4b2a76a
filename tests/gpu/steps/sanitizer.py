"""Runs programs under NVIDIA's compute-sanitizer: memory and races."""
import os
import shutil

from . import toolbox
from .toolbox import Failure

TITLE = "memory and race checks by compute-sanitizer"
LIMIT, LEAST = 2400, 60

CHECKS = ("memcheck", "racecheck", "initcheck", "synccheck")


def run(opt, results):
    tool = shutil.which("compute-sanitizer")
    folder = os.path.join(opt.data or "", "conformance", "programs")
    if not tool or not opt.data:
        return results.leave_out("no --data" if tool else "there is no compute-sanitizer on the search path")
    names = sorted(name for name in os.listdir(folder) if name.endswith(".hlo"))
    names = names[:1] if opt.small else names[:5] if opt.quick else names
    work = [(check, name) for name in names for check in CHECKS]

    def judge(item):
        check, name = item
        output = opt.scratch("sanitizer", "%s-%s.npz" % item)
        try:
            toolbox.run([tool, "--tool", check, "--error-exitcode", "9", opt.xla, "run", os.path.join(folder, name),
                         "--platform", opt.platform, "--inputs-seed", "0", "--output", output], env=opt.environment())
        except Failure as error:
            return item, str(error)
        return item, None

    for (check, name), message in opt.side_by_side(judge, work):
        results.add("%s %s" % (check, name), ok=message is None, message=message)
