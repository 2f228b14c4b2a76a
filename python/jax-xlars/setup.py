"""What `pyproject.toml` cannot say: the version is that of the Cargo workspace, the tag that of any CPython 3."""

import pathlib
import tomllib

from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel


class Library(Distribution):
    """A package with a library of machine code, which lies there when it is built."""

    def has_ext_modules(self):
        return True


class Wheel(bdist_wheel):
    """The library knows nothing of Python."""

    def get_tag(self):
        return "py3", "none", super().get_tag()[2]


def version() -> str:
    workspace = next(folder for folder in pathlib.Path(__file__).resolve().parents if (folder / "Cargo.lock").exists())
    return tomllib.loads((workspace / "Cargo.toml").read_text())["workspace"]["package"]["version"]


setup(version=version(), distclass=Library, cmdclass={"bdist_wheel": Wheel})
