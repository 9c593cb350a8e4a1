"""`python -m tidemark.dataset MONTH...`: whether files can be used as trips, and if not, why."""

from __future__ import annotations

import sys
from pathlib import Path

from tidemark.dataset.model import check_all
from tidemark.errors import DatasetError

try:
    check_all(tuple(map(Path, sys.argv[1:])))
except DatasetError as error:
    sys.exit(str(error))
