"""As much of a client of Iceberg's REST interface as it takes to drop what was made in a catalog."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass, field
from typing import Any

from tidemark.services.http import open_url

TIMEOUT_S = 30
NOT_THERE = 404
MOST_ROUNDS = 100  # of listing what is left, in a catalog that lists a page at a time


@dataclass(frozen=True, slots=True)
class OAuth:
    """Client credentials, and where they are exchanged for a token."""

    client_id: str
    client_secret: str = field(repr=False)
    token_uri: str
    scope: str


def drop_namespace(uri: str, warehouse: str, oauth: OAuth | None, name: str) -> None:
    """Drop the tables of a namespace, with their files where the catalog does that, and then the namespace.

    Nothing happens when it is not there. An OSError says what the catalog refused.
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
        _ask("DELETE", place, headers)  # a catalog may be set never to delete files


def token(oauth: OAuth) -> str:
    """What client credentials are exchanged for."""
    form = {"grant_type": "client_credentials", "client_id": oauth.client_id, "client_secret": oauth.client_secret}
    data = urllib.parse.urlencode({**form, "scope": oauth.scope}).encode()
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    return str(_ask("POST", oauth.token_uri, headers, data).get("access_token", ""))


def _ask(method: str, url: str, headers: dict[str, str], data: bytes | None = None) -> dict[str, Any]:
    """The answer as JSON; an empty one where the catalog has no such thing."""
    try:
        with open_url(urllib.request.Request(url, data, headers, method=method), TIMEOUT_S) as answer:
            found = json.loads(answer.read() or b"{}")
    except urllib.error.HTTPError as error:
        if error.code != NOT_THERE:
            raise
        return {}
    return found if isinstance(found, dict) else {}
