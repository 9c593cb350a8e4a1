"""PyArrow converts values in processes without pandas; elsewhere it imports pandas at the first value."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tidemark.without_pandas import NAME

CONVERT = "import pyarrow, sys; print(pyarrow.array([1]).to_pylist(), 'pandas' in sys.modules)"


@pytest.mark.parametrize(("start", "imported"), [(("-m",), "True"), (("-m", NAME), "False")])
def test_pandas_is_imported_with_the_first_value_only_where_it_is_allowed(start: tuple[str], imported: str) -> None:
    command = [sys.executable, *start, "timeit", "-n1", "-r1", CONVERT]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == f"[1] {imported}"
