"""Texts that have to be read again and must not lie in the open in the database: encrypted (Fernet: AES-128-CBC, HMAC).

The key is derived (HKDF, SHA-256) from TOTP_KEY, or from SECRET_KEY where there is none. A database alone
opens nothing.
"""

import base64
from functools import lru_cache

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

_PURPOSE = b"omniroute_admin second factor"


class Unreadable(Exception):  # noqa: N818 - what it is, as the errors of the product are
    """What was sealed under another key, or was changed since."""


def seal(text: str) -> str:
    """Return a text encrypted."""
    return _box(_key()).encrypt(text.encode()).decode()


def unseal(sealed: str) -> str:
    """Return the text that was sealed.

    Raises:
        Unreadable: the key is another one now, or it is no sealed text.
    """
    try:
        return _box(_key()).decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise Unreadable from None


def opens(sealed: str) -> bool:
    """Tell whether a text was sealed under the key that there is now."""
    try:
        unseal(sealed)
    except Unreadable:
        return False
    return True


def _key() -> str:
    return settings.TOTP_KEY or settings.SECRET_KEY


@lru_cache(maxsize=2)
def _box(key: str) -> Fernet:
    derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=_PURPOSE).derive(key.encode())
    return Fernet(base64.urlsafe_b64encode(derived))
