"""Compiles the templates into the wheel; all else is said in pyproject.toml.

A template compiles in 3 to 20 ms. Done here, the first kernel on a machine need not wait for it.
An editable install has none of this: there templates change.
"""

import importlib.util
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOM = Path(__file__).resolve().parent / "codegen"


class BuildWithTemplates(build_py):
    """`build_py`, and then the templates as Python modules beside their sources."""

    def run(self):
        super().run()
        if not self.editable_mode:
            spec = importlib.util.spec_from_file_location("render", ROOM / "render.py")
            render = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(render)
            render.precompile(Path(self.build_lib) / "wengert" / "codegen" / "compiled")


setup(cmdclass={"build_py": BuildWithTemplates})
