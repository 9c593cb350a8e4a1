"""Configurations changed at random, ten times as many as in tests/test_config.py."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.test_config import load_a_mutation


@pytest.mark.long(reason="two minutes of what tests/test_config.py does with fewer")
@settings(max_examples=500, deadline=None)
@given(data=st.data())
def test_mutated_file_gives_a_configuration_or_a_config_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    load_a_mutation(tmp_path_factory, data)
