"""Fill a cache of roc-validator with the context of RO-Crate 1.1, which the package rocrate ships.

`PYTHON crate_context.py CACHE`, with the interpreter of the tool: the validator then finds it there, with no network.
"""

from __future__ import annotations

import io
import json
import sys
from importlib.resources import files
from typing import Any

from requests.adapters import HTTPAdapter
from requests_cache import CachedSession
from urllib3 import HTTPResponse

CONTEXT = "https://w3id.org/ro/crate/1.1/context"


class Shipped(HTTPAdapter):
    """Answer to every request with the context."""

    def send(self, request: Any, *_: Any, **__: Any) -> Any:
        shipped = (files("rocrate") / "data" / "ro-crate.jsonld").read_bytes()
        assert json.loads(shipped)["@id"] == CONTEXT
        kind = {"Content-Type": "application/ld+json"}
        return self.build_response(request, HTTPResponse(io.BytesIO(shipped), kind, 200, preload_content=False))


if __name__ == "__main__":
    with CachedSession(sys.argv[1], backend="sqlite") as session:
        session.mount("https://", Shipped())
        session.get(CONTEXT).raise_for_status()
