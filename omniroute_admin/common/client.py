"""Where a request comes from, as far as that can be known."""

import ipaddress

from django.conf import settings
from django.http import HttpRequest

_NETWORK = 64
"""One customer's part of IPv6: whoever has one address of it has them all."""


def client_address(request: HttpRequest) -> str:
    """Return the address of who asks; behind a trusted proxy (TRUST_PROXY) the one that it saw, the last it names.

    What is no address is the empty text.
    """
    said: str = request.META.get("REMOTE_ADDR", "")
    if settings.TRUST_PROXY:
        said = request.META.get("HTTP_X_FORWARDED_FOR", "").rpartition(",")[2].strip() or said
    if "." in said and said.count(":") == 1:  # some proxies name the port as well
        said = said.partition(":")[0]
    try:
        found = ipaddress.ip_address(said.partition("%")[0])
    except ValueError:
        return ""
    # A server on both kinds of address tells one of IPv4 as one of IPv6.
    return str(getattr(found, "ipv4_mapped", None) or found)


def network_of(address: str) -> str:
    """Return what tries are counted for: an address, or the network of one of IPv6."""
    if ":" not in address:
        return address
    return str(ipaddress.ip_network(f"{address}/{_NETWORK}", strict=False).network_address)
