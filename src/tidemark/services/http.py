"""HTTP requests to servers; those to this machine never use a proxy.

A proxy from the environment (http_proxy, ALL_PROXY etc.) is meant for other hosts. It cannot reach this machine's
loopback, and would answer in place of the server with an error at best.
"""

from __future__ import annotations

import ipaddress
import os
import urllib.request
from http.client import HTTPResponse
from typing import cast
from urllib.parse import urlsplit

HERE = ("127.0.0.1", "localhost", "::1")
EXCEPTIONS = ("no_proxy", "NO_PROXY")  # libraries read one or the other, and most use the first that is set

_direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def is_loopback(host: str | None) -> bool:
    """Return True if `host` is a loopback address of this machine."""
    if host is None:
        return False
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def names_loopback(address: str) -> bool:
    """Return True if a host in `address` is loopback: host:port or a URL; several are separated by commas."""
    hosts = address.rpartition("://")[2].partition("/")[0].split(",")
    return any(is_loopback(urlsplit(f"//{host}").hostname) for host in hosts)


def open_url(request: str | urllib.request.Request, timeout_s: float) -> HTTPResponse:
    """Return the open response to `request`; the caller closes it. Requests to this machine bypass proxies."""
    url = request if isinstance(request, str) else request.full_url
    # A new opener for other hosts: urllib's default opener keeps the proxies of its first use.
    opener = _direct if is_loopback(urlsplit(url).hostname) else urllib.request.build_opener()
    return cast(HTTPResponse, opener.open(request, timeout=timeout_s))


def fetch(request: str | urllib.request.Request, timeout_s: float) -> bytes:
    """Return the complete response to `request`, as by `open_url`."""
    with open_url(request, timeout_s) as answer:
        return answer.read()


def keep_loopback_direct() -> None:
    """Make every library in this process reach servers on this machine without a proxy.

    Called when a measuring process starts. Exceptions that the user configured stay in force.
    """
    words = [word.strip() for variable in EXCEPTIONS for word in os.environ.get(variable, "").split(",")]
    named = [word for word in words if word]
    # The star covers everything; libraries recognise it only on its own.
    exceptions = "*" if "*" in named else ",".join(dict.fromkeys((*named, *HERE)))
    os.environ.update(dict.fromkeys(EXCEPTIONS, exceptions))
