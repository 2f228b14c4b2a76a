"""What all steps use: options, commands with a time limit, the device, and programs from the suites."""
import glob
import json
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor, as_completed

HERE = os.path.dirname(os.path.abspath(__file__))
# The suite whose programs take several devices, and those that have no expected results.
NOT_CORPUS = ("multi_device", "bench", "bench_gpu")
# In the folder of executables: what they were compiled for.
ARCHITECTURE = "architecture"


class Failure(Exception):
    """A command that failed or did not end, with all that it said."""


class Options:
    """The options of a run, as the process of a step finds them in OUT."""

    def __init__(self, options):
        self.__dict__.update(options)

    def write(self):
        path = os.path.join(self.out, "options.json")
        with open(path + ".new", "w") as file:
            json.dump(self.__dict__, file, indent=1)
        os.replace(path + ".new", path)

    @staticmethod
    def read(out):
        with open(os.path.join(out, "options.json")) as file:
            return Options(json.load(file))

    def environment(self, libraries=True):
        """Lets a command find the driver and, unless it must not, NVIDIA's libraries; what it keeps goes to OUT."""
        known = os.environ.get("LD_LIBRARY_PATH", "")
        folders = [self.libraries if libraries else self.no_libraries(), self.driver, known]
        more = {"LD_LIBRARY_PATH": os.pathsep.join(folder for folder in folders if folder)}
        more["XLA_CACHE_DIR"] = os.path.join(self.out, "cache" if libraries else "cache-own")
        return dict(os.environ, **more)

    def no_libraries(self):
        """A folder of files that have the names of NVIDIA's libraries and are none: those that the system has are not found."""
        folder = self.scratch("no-libraries", "")
        for name in ("cublasLt", "cublas", "cudnn", "cufft"):
            for ending in [""] + [".%d" % major for major in range(1, 20)]:
                with open(os.path.join(folder, "lib%s.so%s" % (name, ending)), "w") as file:
                    file.write("Not a library.\n")
        return folder

    def scratch(self, *names):
        path = os.path.join(self.out, "scratch", *names)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def seconds(self):
        """How long a program is timed."""
        return "0.01" if self.small else "0.1" if self.quick else "1"

    def end_with_parent(self):
        """Ends this process and those that it started when the one that started it is gone."""
        parent = os.getppid()

        def watch():
            while os.getppid() == parent:
                time.sleep(0.2)
            os.killpg(0, signal.SIGKILL)

        threading.Thread(target=watch, daemon=True).start()

    def executable(self, suite, name):
        """The executable of a program with machine code, if there is one."""
        path = os.path.join(self.executables or "", suite, name + ".xlax")
        return path if self.executables and os.path.exists(path) else None

    def suite(self, name):
        """A suite as files."""
        folder = self.scratch("suites", name)
        if not os.path.isdir(folder):
            with zipfile.ZipFile(os.path.join(self.data, "corpus", "suites", name + ".zip")) as archive:
                archive.extractall(folder + ".new")
            os.rename(folder + ".new", folder)
        return folder

    def suites(self):
        names = [os.path.basename(path)[:-4] for path in glob.glob(os.path.join(self.data, "corpus", "suites", "*.zip"))]
        return sorted(name for name in names if name not in NOT_CORPUS)

    def side_by_side(self, work, items):
        """Results of work on items as they come, several at a time."""
        with ThreadPoolExecutor(max_workers=max(1, self.jobs)) as pool:
            for done in as_completed([pool.submit(work, item) for item in items]):
                yield done.result()


def run(words, timeout=600, env=None, stderr=False):
    """Standard output of a command, or its standard error; all that it said as a Failure."""
    words = [str(word) for word in words]
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=timeout, env=env)
    except subprocess.TimeoutExpired as error:
        said = (error.stderr or b"").decode(errors="replace")
        raise Failure("it has not ended after %.0f s\n%s" % (timeout, said))
    except OSError as error:
        raise Failure("%s cannot be run: %s" % (words[0], error))
    out, said = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    if done.returncode:
        how = "signal %d" % -done.returncode if done.returncode < 0 else "exit code %d" % done.returncode
        raise Failure(said.strip() or "%s\n%s" % (how, out.strip()[-2000:]))
    return said if stderr else out


def timed(opt, path, options=(), executable=False, libraries=True):
    """What `xla bench` says about a program."""
    program = ["--executable", path] if executable else [path, "--compiles", "1"]
    words = [opt.xla, "bench"] + program + ["--platform", opt.platform] * (not executable)
    # The emulated GPU has no clock.
    words += ["--json", "--min-seconds", opt.seconds()] + ["--device-time"] * (opt.platform == "gpu")
    return json.loads(run(words + list(options), timeout=60 if opt.small else 300, env=opt.environment(libraries)))


def device_us(times):
    """Microseconds of a run on the device; where it has no clock, those that the host waits."""
    return times.get("device_time", times).get("device_us", times["run_us"])


def write_program(opt, name, text):
    path = opt.scratch("programs", name.replace(" ", "_") + ".hlo")
    with open(path, "w") as file:
        file.write(text)
    return path


def find_libraries(python):
    """The folders of NVIDIA's Python packages, such as nvidia-cublas-cu12."""
    code = "import site; print('\\n'.join(site.getsitepackages() + [site.getusersitepackages()]))"
    try:
        places = run([python, "-c", code], timeout=60).splitlines()
    except Failure:
        return ""
    folders = [folder for place in places for folder in sorted(glob.glob(os.path.join(place, "nvidia", "*", "lib")))]
    return os.pathsep.join(folders)


def find_device(opt):
    """Model and attributes of the first GPU that `xla platforms` lists; ends the program if there is none."""
    try:
        lines = run([opt.xla, "platforms"], timeout=300, env=opt.environment()).splitlines()
    except Failure as error:
        sys.exit("gpu-report: %s platforms: %s" % (opt.xla, error))
    at = next((i for i, line in enumerate(lines) if line.startswith(opt.platform + ": ")), None)
    if at is None:
        sys.exit("gpu-report: this build of xla has no platform %s" % opt.platform)
    if at + 1 >= len(lines) or not lines[at + 1].startswith("  device 0: "):
        sys.exit("gpu-report: no GPU to report on: %s" % lines[at].split(": ", 1)[1])
    device = {"model": lines[at + 1].split(": ", 1)[1].split(",")[0], "summary": lines[at + 1].strip()}
    for line in lines[at + 2:]:
        if not line.startswith("    "):
            break
        name, _, value = line.strip().partition(": ")
        device[name] = value
    return device


def misfit(opt):
    """Why the executables that came along are left out, if they are for one GPU alone and this is another one."""
    try:
        with open(os.path.join(opt.executables or os.devnull, ARCHITECTURE)) as file:
            architecture = file.read().strip()
    except OSError:
        return None
    # With a letter, code is for one GPU; without, later ones run it too.
    capability = opt.device.get("compute capability")
    this = "sm_" + (capability or "").replace(".", "")
    if not capability or not architecture[-1:].isalpha() or architecture[:-1] == this:
        return None
    return "executables are left out: they are for %s alone, and this GPU is %s; programs are run as text" % (architecture, this)
