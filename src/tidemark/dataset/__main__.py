"""`python -m tidemark.dataset MONTH...`: check that files can be used as trips, or report why not."""

from __future__ import annotations

import sys
from pathlib import Path

from tidemark.dataset.model import check_all
from tidemark.errors import DatasetError

try:
    check_all(tuple(map(Path, sys.argv[1:])))
except DatasetError as error:
    sys.exit(str(error))
