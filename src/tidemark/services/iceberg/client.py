"""Minimal client of Iceberg's REST interface, with only what is needed to drop the contents of a catalog."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from typing import Any

from tidemark.services.http import fetch

TIMEOUT_S = 30
NOT_THERE = 404
MOST_ROUNDS = 100  # list requests, for a catalog that returns one page at a time


@dataclass(frozen=True, slots=True)
class OAuth:
    """Client credentials, and the URI that exchanges them for a token."""

    client_id: str
    client_secret: str = field(repr=False)
    token_uri: str
    scope: str


def drop_namespace(uri: str, warehouse: str, oauth: OAuth | None, name: str) -> None:
    """Drop the tables of a namespace, with their files if the catalog supports that, and then the namespace.

    Do nothing if it does not exist. Raise OSError, with the reason, if the catalog refuses a request.
    """
    headers = {} if oauth is None else {"Authorization": f"Bearer {token(oauth)}"}
    base = f"{uri.rstrip('/')}/v1"
    config = _ask("GET", f"{base}/config?{urllib.parse.urlencode({'warehouse': warehouse})}", headers)
    prefix = {**config.get("defaults", {}), **config.get("overrides", {})}.get("prefix")
    place = f"{base}/{prefix}/namespaces" if prefix else f"{base}/namespaces"
    place += f"/{urllib.parse.quote(name, safe='')}"
    for _ in range(MOST_ROUNDS):
        tables = _ask("GET", f"{place}/tables", headers).get("identifiers", [])
        if not tables:
            break
        for table in tables:
            _drop_table(f"{place}/tables/{urllib.parse.quote(table['name'], safe='')}", headers)
    _ask("DELETE", place, headers)


def _drop_table(place: str, headers: dict[str, str]) -> None:
    try:
        _ask("DELETE", f"{place}?purgeRequested=true", headers)
    except urllib.error.HTTPError:
        _ask("DELETE", place, headers)  # the catalog may be configured never to delete files


def token(oauth: OAuth) -> str:
    """Return the access token for the client credentials."""
    form = {"grant_type": "client_credentials", "client_id": oauth.client_id, "client_secret": oauth.client_secret}
    data = urllib.parse.urlencode({**form, "scope": oauth.scope}).encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    return str(_ask("POST", oauth.token_uri, headers, data).get("access_token", ""))


def _ask(method: str, url: str, headers: dict[str, str], data: bytes | None = None) -> dict[str, Any]:
    """Return the JSON response; an empty dictionary if the resource does not exist."""
    try:
        request = urllib.request.Request(url, data, headers, method=method)
        found = json.loads(fetch(request, TIMEOUT_S) or b"{}")
    except urllib.error.HTTPError as error:
        if error.code != NOT_THERE:
            raise
        return {}
    return found if isinstance(found, dict) else {}
