"""The channels of alerts from the environment: checked at start, and no address is ever told."""

import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from ladder.core.alerts.channels import LONGEST_NAME, WEBHOOK, Channel, channel_of
from omniroute_admin.environment import Environment, refusal

PREFIX, FILE = "ALERT_CHANNEL_", "_FILE"
SHORTEST_SECRET = 16
_NAME = re.compile(rf"[A-Z0-9][A-Z0-9_]{{0,{LONGEST_NAME - 1}}}")
_ADDRESSES = "write an address as Apprise takes it (slack://…, mailtos://…), or https://… for the signed webhook"


def alert_channels(env: Environment) -> Mapping[str, Channel]:
    """Return the channels by name: `ALERT_CHANNEL_OPS`, or `ALERT_CHANNEL_OPS_FILE` with a file of it, names `ops`.

    Raises:
        ImproperlyConfigured: an address cannot be used; with the variable's name, and nothing of the address.
    """
    variables = dict.fromkeys(name.removesuffix(FILE) for name in env.names(PREFIX))
    channels = (_channel(variable, env.secret(variable)) for variable in variables)
    # Channels are named as one likes: one of them stands for all where the variables are listed.
    env.asked -= {name for variable in variables for name in (variable, variable + FILE)}
    env.asked.add(f"{PREFIX}OPS")
    return {channel.name: channel for channel in channels}


def _channel(variable: str, address: str) -> Channel:
    name = variable.removeprefix(PREFIX)
    if not _NAME.fullmatch(name):
        problem = "what follows ALERT_CHANNEL_ names no channel"
        raise refusal(variable, problem, f"use A to Z, digits and _, at most {LONGEST_NAME}, as in ALERT_CHANNEL_OPS")
    channel = channel_of(name=name.lower(), address=address)
    if channel is None or not _is_readable(channel):
        raise refusal(variable, "its address cannot be read", _ADDRESSES)
    return channel


def _is_readable(channel: Channel) -> bool:
    if channel.kind == WEBHOOK:
        return _is_web_address(channel.address)
    # Only where such a channel is named: Apprise brings a hundred services, which cost memory and half a second.
    from ladder.adapters.apprise import is_readable

    return is_readable(channel.address)


def _is_web_address(address: str) -> bool:
    """Tell whether an address has a host, and a port that can be one."""
    try:
        parts = urlsplit(address)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def webhook_secret(env: Environment, *, channels: Iterable[Channel]) -> str:
    """Return what webhooks are signed with (`ALERT_WEBHOOK_SECRET`, or the file that `…_FILE` names).

    Raises:
        ImproperlyConfigured: it is short, or a webhook is named and it is missing.
    """
    secret = env.secret("ALERT_WEBHOOK_SECRET")
    hooks = sorted(channel.name for channel in channels if channel.kind == WEBHOOK)
    remedy = f"set a random text of at least {SHORTEST_SECRET} characters, the same as at the receiver"
    if hooks and not secret:
        raise refusal("ALERT_WEBHOOK_SECRET", f"the channel {hooks[0]} is a webhook and cannot be signed", remedy)
    if secret and len(secret) < SHORTEST_SECRET:
        raise refusal("ALERT_WEBHOOK_SECRET", f"it has fewer than {SHORTEST_SECRET} characters", remedy)
    return secret


def public_url(env: Environment) -> str:
    """Return scheme and host under which people open the pages, for links in alerts; empty: no links.

    Raises:
        ImproperlyConfigured: it is no single origin.
    """
    origins = env.origins("PUBLIC_URL")
    if len(origins) > 1:
        raise refusal("PUBLIC_URL", "it names more than one address", "name the one that people use")
    return origins[0] if origins else ""
