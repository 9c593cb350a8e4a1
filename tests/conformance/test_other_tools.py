"""The tests of `core` for table systems whose tools or servers the default tier does not fetch."""

from __future__ import annotations

import pytest
from tests.conformance.conftest import BY_DEFAULT
from tests.conformance.core.test_core import (  # noqa: F401 - pytest collects them here as well
    test_describes_itself,
    test_one_row_per_write,
    test_values_of_every_kind,
)

from tidemark.systems.registry import of_kind
from tidemark.systems.tables import TableSystem

OTHERS = {name: kind for name, kind in of_kind(TableSystem).items() if name not in BY_DEFAULT}
pytestmark = pytest.mark.parametrize("kind", OTHERS.values(), ids=OTHERS.keys(), indirect=True)
