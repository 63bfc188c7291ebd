"""What libraries that send write to logs may hold the address that they send to: it is kept out of ours.

Apprise names hosts and recipients in its warnings and whole addresses in its debug lines; urllib3 logs paths, which
are the secret of many services; the OAuth libraries log tokens.
"""

import logging

APPRISE = "apprise"
_TALKATIVE = ("urllib3", "requests_oauthlib", "oauthlib")


def quieten() -> None:
    """Keep these loggers from ours, at whatever level ours are. To be called before the libraries are used."""
    apprise = logging.getLogger(APPRISE)
    apprise.propagate = False
    if not apprise.handlers:
        apprise.addHandler(logging.NullHandler())
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.CRITICAL)
