"""The part of Polaris' management API that creates a catalog and a principal that may use it."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from http.client import HTTPException
from typing import Any

from tidemark.errors import ServiceError
from tidemark.services.http import fetch

SCOPE = "PRINCIPAL_ROLE:ALL"
TOKENS = "/api/catalog/v1/oauth/tokens"
MANAGEMENT = "/api/management/v1"
NAME = "tidemark"


class Management:
    """A principal at the Polaris server with the URL `base`; it obtains a token with its first request.

    Refused requests raise ServiceError with the server's response, which contains neither secret nor token.
    """

    def __init__(self, base: str, client_id: str, client_secret: str) -> None:
        self._base, self._client = base, (client_id, client_secret)
        self._token: str | None = None

    def config(self, warehouse: str) -> dict[str, Any]:
        """Return the configuration that the catalog gives to clients; this also checks the credentials."""
        return self._call("GET", f"/api/catalog/v1/config?{urllib.parse.urlencode({'warehouse': warehouse})}")

    def set_up(self, catalog: str, location: str) -> tuple[str, str]:
        """Create `catalog` with tables below `location`; return id and secret of a principal for its content."""
        storage = {"storageType": "FILE", "allowedLocations": [location]}
        described = {
            "name": catalog,
            "type": "INTERNAL",
            "properties": {"default-base-location": location},
            "storageConfigInfo": storage,
        }
        principal = {"principal": {"name": NAME}, "credentialRotationRequired": False}
        role, catalog_role = {"principalRole": {"name": NAME}}, {"catalogRole": {"name": NAME}}
        grant = {"grant": {"type": "catalog", "privilege": "CATALOG_MANAGE_CONTENT"}}
        roles = f"/catalogs/{catalog}/catalog-roles"
        self._manage("POST", "/catalogs", {"catalog": described})
        created = self._manage("POST", "/principals", principal)
        self._manage("POST", "/principal-roles", role)
        self._manage("PUT", f"/principals/{NAME}/principal-roles", role)
        self._manage("POST", roles, catalog_role)
        self._manage("PUT", f"/principal-roles/{NAME}/catalog-roles/{catalog}", catalog_role)
        self._manage("PUT", f"{roles}/{NAME}/grants", grant)
        try:
            return str(created["credentials"]["clientId"]), str(created["credentials"]["clientSecret"])
        except (KeyError, TypeError) as error:
            raise ServiceError("Apache Polaris created a principal and returned no credentials for it.") from error

    def _manage(self, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return self._call(method, MANAGEMENT + path, json.dumps(body).encode())

    def _call(self, method: str, path: str, data: bytes | None = None) -> dict[str, Any]:
        if self._token is None:
            self._token = self._new_token()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        return self._request(method, path, data, headers)

    def _new_token(self) -> str:
        client_id, client_secret = self._client
        form = {"grant_type": "client_credentials", "client_id": client_id, "client_secret": client_secret}
        data = urllib.parse.urlencode({**form, "scope": SCOPE}).encode()
        answer = self._request("POST", TOKENS, data, {"Content-Type": "application/x-www-form-urlencoded"})
        if not isinstance(answer.get("access_token"), str):
            raise ServiceError(f"Apache Polaris gave client {client_id} no token.")
        return str(answer["access_token"])

    def _request(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> dict[str, Any]:
        request = urllib.request.Request(self._base + path, data, headers, method=method)
        try:
            found = json.loads(fetch(request, 60) or b"{}")
        except urllib.error.HTTPError as error:
            said = error.read(2000).decode(errors="replace")
            raise ServiceError(f"Apache Polaris refused {method} {path} ({error.code}): {said}") from error
        except (OSError, HTTPException, ValueError) as error:
            raise ServiceError(f"Apache Polaris did not answer {method} {path}: {error}") from error
        return found if isinstance(found, dict) else {}
