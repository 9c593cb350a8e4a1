"""Requests to servers over HTTP, none of which goes through a proxy where the server is on this machine.

A proxy of the environment (http_proxy, ALL_PROXY and their like) is for the world outside. It cannot reach our
loopback, and what it would answer in a server's place is an error at best.
"""

from __future__ import annotations

import ipaddress
import os
import urllib.request
from http.client import HTTPResponse
from typing import cast
from urllib.parse import urlsplit

HERE = ("127.0.0.1", "localhost", "::1")
EXCEPTIONS = ("no_proxy", "NO_PROXY")  # libraries read one or the other, and most the first that is there

_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def is_loopback(host: str | None) -> bool:
    """Whether `host` is this machine's own loopback."""
    if host is None:
        return False
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def names_loopback(address: str) -> bool:
    """Whether a host of `address` is this machine's own loopback: host:port, or a URL; with commas between several."""
    hosts = address.rpartition("://")[2].partition("/")[0].split(",")
    return any(is_loopback(urlsplit(f"//{host}").hostname) for host in hosts)


def open_url(request: str | urllib.request.Request, timeout_s: float) -> HTTPResponse:
    """The answer to `request`, which the caller closes; directly where the server is on this machine."""
    url = request if isinstance(request, str) else request.full_url
    # Made anew for others: the one that urllib keeps has the proxies of its first use.
    opener = _direct if is_loopback(urlsplit(url).hostname) else urllib.request.build_opener()
    return cast(HTTPResponse, opener.open(request, timeout=timeout_s))


def keep_loopback_direct() -> None:
    """Have every library of this process reach this machine's servers without a proxy.

    Called where a measuring process starts. The exceptions that the user named stay in force.
    """
    named: dict[str, None] = {}
    for variable in EXCEPTIONS:
        named |= {each.strip(): None for each in os.environ.get(variable, "").split(",") if each.strip()}
    exceptions = ",".join(dict.fromkeys((*named, *HERE)))
    if "*" in named:
        exceptions = "*"  # everything already; libraries know the star only where it stands alone
    for variable in EXCEPTIONS:
        os.environ[variable] = exceptions
