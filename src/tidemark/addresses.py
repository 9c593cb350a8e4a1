"""Addresses of external servers, none of which may contain a secret.

The configuration is copied into plan.json, run.json and archives that are published. A part of an address that may
be a secret is never repeated in a message either, because messages go into logs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from tidemark.errors import ConfigError
from tidemark.schema import Key, Origin

Rule = tuple[Callable[[str], str | None], str]  # describes the secret in an address, if any; and where it belongs

# Parameters of libpq whose values are secrets.
LIBPQ_SECRETS = ("password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")
LIBPQ_PLACES = (
    "put it into the environment variable PGPASSWORD, into the file that PGPASSFILE names or into ~/.pgpass; "
    "DuckDB, psycopg and the JDBC driver of the Iceberg catalog find it there"
)
HTTP_PLACES = (
    "give scheme, host, port and path alone; a Polaris takes its client's secret from TIDEMARK_POLARIS_SECRET or "
    "services.polaris_secret_file, and other catalogs are reached without credentials"
)
ENGINE_PLACES = "give scheme, host and port alone; workers of Connect and clusters are reached without credentials"
KAFKA_PLACES = "give host:port, with commas between several; brokers are reached without credentials"


def refuse_secrets(values: Mapping[Any, Any], origin: Origin) -> None:
    """Raise ConfigError for an address that contains a secret, with the place where the secret belongs.

    `values` is the configuration as written; values that are not strings are left to the schema.
    """
    for place, (find, instead) in _places(values):
        address: object = values
        for key in place:
            address = address.get(key) if isinstance(address, Mapping) else None
        found = find(address) if isinstance(address, str) else None
        if found is not None:
            raise ConfigError(
                f"{origin.place(place)}: found {found}, not shown here; the configuration is copied into "
                f"plan.json, run.json and archives, so no secret may be in it: {instead}"
            )


def _places(values: Mapping[Any, Any]) -> Iterator[tuple[Key, Rule]]:
    """Yield the keys of addresses, with their rules: those below `services`, and the engine of a study's section."""
    yield from ((("services", key), rule) for key, rule in RULES.items())
    yield from (((str(section), "engine", "master"), RULES["spark_master"]) for section in values)


def _in_libpq(address: str) -> str | None:
    """Describe what a libpq address (URL or keywords) must not contain; None if it is acceptable."""
    from psycopg import ProgrammingError  # imported only if an external server is configured
    from psycopg.conninfo import conninfo_to_dict

    try:
        parts = conninfo_to_dict(address)
    except ProgrammingError:
        # libpq's own message quotes what it could not read, which may be part of a password.
        return "an address that libpq cannot read"
    secrets = [name for name in LIBPQ_SECRETS if parts.get(name)]
    return f"a value for {' and '.join(secrets)}" if secrets else None


def _in_url(address: str) -> str | None:
    """Describe what an http address must not contain; None if it is acceptable."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return "an address that is no URL"
    if "@" in parts.netloc:
        return "user information (something before an '@')"
    if parts.query or parts.fragment:
        return "a query or a fragment (something behind a '?' or a '#')"
    return None


def _in_brokers(addresses: str) -> str | None:
    return "user information (something before an '@')" if "@" in addresses else None


def _in_client_id(client: str) -> str | None:
    return "an id with something behind a ':'" if ":" in client else None


RULES: Mapping[str, Rule] = {
    "postgres_address": (_in_libpq, LIBPQ_PLACES),
    "iceberg_rest_address": (_in_url, HTTP_PLACES),
    "polaris_address": (_in_url, HTTP_PLACES),
    "polaris_client_id": (_in_client_id, HTTP_PLACES),
    "kafka_address": (_in_brokers, KAFKA_PLACES),
    "connect_address": (_in_url, ENGINE_PLACES),
    "flink_address": (_in_url, ENGINE_PLACES),
    "spark_master": (_in_brokers, ENGINE_PLACES),
}
