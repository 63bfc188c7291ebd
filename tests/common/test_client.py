"""Where a request comes from: the address that is counted, and nothing that a client makes up."""

from typing import Any

import pytest
from django.test import RequestFactory

from omniroute_admin.common.client import client_address, network_of


@pytest.mark.parametrize(
    ("trusts", "remote", "forwarded", "address"),
    [
        (False, "192.0.2.1", "203.0.113.9", "192.0.2.1"),
        (True, "192.0.2.1", "203.0.113.9", "203.0.113.9"),
        (True, "192.0.2.1", "10.0.0.1, 203.0.113.9", "203.0.113.9"),
        (True, "192.0.2.1", "203.0.113.9:4711", "203.0.113.9"),
        (True, "192.0.2.1", None, "192.0.2.1"),
        (True, "192.0.2.1", "nonsense\n", ""),
        (False, "::ffff:192.0.2.1", None, "192.0.2.1"),
        (False, "fe80::1%eth0", None, "fe80::1"),
        (False, "", None, ""),
    ],
)
def test_the_address(
    rf: RequestFactory, settings: Any, trusts: bool, remote: str, forwarded: str | None, address: str
) -> None:
    settings.TRUST_PROXY = trusts
    headers = {} if forwarded is None else {"X-Forwarded-For": forwarded}
    assert client_address(rf.get("/", headers=headers, REMOTE_ADDR=remote)) == address


@pytest.mark.parametrize(
    ("address", "network"),
    [("192.0.2.1", "192.0.2.1"), ("", ""), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::")],
)
def test_what_is_counted(address: str, network: str) -> None:
    assert network_of(address) == network
