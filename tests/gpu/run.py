"""Runs all steps of the report with what lies beside this file: python3 run.py [--out DIR] [--deadline SECONDS] [--resume] ...

`python3 run.py --help` lists the options and the steps. Needs Python 3.8 and NVIDIA's driver, and nothing else.
"""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import report  # noqa: E402


def main():
    for name in ("xla", "xla-tests"):
        # Not everything that unpacks archives keeps this.
        os.chmod(os.path.join(HERE, name), 0o755)
    beside = [("--xla", "xla"), ("--tests", "xla-tests"), ("--data", "tests"), ("--executables", "executables")]
    sys.argv[1:1] = [word for option, name in beside for word in (option, os.path.join(HERE, name))]
    return report.main()


if __name__ == "__main__":
    sys.exit(main())
