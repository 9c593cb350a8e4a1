"""Processes without pandas, which PyArrow imports when it converts its first value, where it is installed.

Figures and Snakemake need pandas, and no client of a table does. Its import takes 0.3 s of CPU and 50 MB in each
process, before the window or after it, depending on the system. As a program, this module runs another one:
`python -m tidemark.without_pandas MODULE ARGUMENTS...`.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

NAME = "tidemark.without_pandas"


class _NoPandas(MetaPathFinder):
    def find_spec(self, name: str, _path: Sequence[str] | None, _target: ModuleType | None = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not used in this process", name=name)


def refuse_pandas() -> None:
    """Have all later imports of pandas in this process fail, as if it were not installed."""
    sys.meta_path.insert(0, _NoPandas())


if __name__ == "__main__":
    refuse_pandas()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
