"""Registration of a Delta table in Unity Catalog, through its REST interface.

delta-rs cannot open `uc://` tables on local storage: it requires cloud credentials, and the open-source server answers
its request for them with an empty object (delta-rs issue 3966). The table is therefore registered, its location
requested, and that path written to; commits do not pass through the catalog. No package registry has such a server,
so that no test here uses one.
"""

from __future__ import annotations

import json
import os
import secrets
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tidemark.errors import SystemFailure
from tidemark.services.http import fetch

if TYPE_CHECKING:
    import pyarrow as pa

TOKEN = "TIDEMARK_UNITY_TOKEN"


def register(address: str, schema_name: str, schema: pa.Schema, location: Path) -> Path:
    """Register an external table at `location`; return the location that the catalog reports.

    `schema_name` is "catalog.schema". A token is taken from the environment (TIDEMARK_UNITY_TOKEN). Raise SystemFailure
    if the server refuses, or reports a location that is not on this machine.
    """
    catalog, _, below = schema_name.partition(".")
    name = f"tidemark_{secrets.token_hex(6)}"
    tables = f"{address.rstrip('/')}/api/2.1/unity-catalog/tables"
    _call(
        tables,
        {
            "name": name,
            "catalog_name": catalog,
            "schema_name": below,
            "table_type": "EXTERNAL",
            "data_source_format": "DELTA",
            "storage_location": location.as_uri(),
            "columns": [_column(position, field) for position, field in enumerate(schema)],
        },
    )
    answer = _call(f"{tables}/{catalog}.{below}.{name}")
    parts = urlsplit(str(answer.get("storage_location", "")))
    if parts.scheme not in ("", "file") or not parts.path:
        raise SystemFailure(
            f"Unity Catalog at {address} puts the table at {parts.geturl()!r}; only a path of this machine can be "
            "written to. Give a catalog whose storage is a local folder."
        )
    return Path(parts.path)


def _column(position: int, field: pa.Field) -> dict[str, Any]:
    import pyarrow as pa

    if pa.types.is_timestamp(field.type):
        kind = "timestamp_ntz"
    elif pa.types.is_floating(field.type):
        kind = "double"
    elif pa.types.is_int64(field.type):
        kind = "long"
    elif pa.types.is_integer(field.type):
        kind = "int"
    else:
        kind = "string"
    described = {"name": field.name, "type": kind, "nullable": True, "metadata": {}}
    return {
        "name": field.name,
        "type_name": kind.upper(),
        "type_text": "bigint" if kind == "long" else kind,
        "type_json": json.dumps(described),
        "position": position,
        "nullable": True,
    }


def _call(url: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    headers = {"Content-Type": "application/json"}
    if token := os.environ.get(TOKEN):
        headers["Authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    try:
        found = json.loads(fetch(urllib.request.Request(url, data, headers), 30))
    except (OSError, ValueError) as error:
        raise SystemFailure(f"Unity Catalog refused {url}: {error}. Check unity_address and unity_schema.") from error
    return dict(found)
