"""Settings from environment variables: each value checked at start, each refusal naming the variable and the remedy."""

import re
import secrets
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import dj_database_url
from django.core.exceptions import ImproperlyConfigured

SECRET_KEY_LENGTH = 50
DATABASE_SCHEMES = {"sqlite", "postgres", "postgresql"}
BROKER_SCHEMES = {"filesystem", "redis", "rediss", "redis+socket", "amqp", "amqps"}
_TRUE = {"1", "true", "yes", "on"}
_FALSE = {"0", "false", "no", "off"}
_SQLITE_HEAD = b"SQLite format 3\x00"
_SQLITE_OPTIONS = {
    # Without IMMEDIATE a transaction that reads first and writes later fails at once beside another writer.
    "transaction_mode": "IMMEDIATE",
    "timeout": 20,
    "init_command": (
        "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;"
        "PRAGMA mmap_size=134217728;PRAGMA cache_size=-20000;PRAGMA temp_store=MEMORY;"
    ),
}
# A server that does not answer must not hold a request for the minutes that TCP would wait, neither a new connection
# (seconds) nor one that lasted (milliseconds until what was sent must have arrived).
_POSTGRES_OPTIONS = {"connect_timeout": 3, "tcp_user_timeout": 10_000, "keepalives_idle": 30, "keepalives_interval": 10}


class Environment:
    """The variables of one process. Every method raises ImproperlyConfigured for a value it cannot use.

    A value is never part of a message where it may hold a secret (SECRET_KEY, DATABASE_URL, CELERY_BROKER_URL).
    """

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self.asked: set[str] = set()

    def text(self, name: str, default: str = "") -> str:
        """Return a variable without blanks around it; an empty one counts as absent."""
        self.asked.add(name)
        return self._values.get(name, "").strip() or default

    def names(self, prefix: str) -> list[str]:
        """Return the variables that begin so and say something, in order."""
        return sorted(name for name, value in self._values.items() if name.startswith(prefix) and value.strip())

    def secret(self, name: str) -> str:
        """Return a secret: the variable itself, or what the file holds that `<name>_FILE` names; empty without both."""
        own, file = self.text(name), f"{name}_FILE"
        if own and self.text(file):
            raise refusal(file, f"{name} is set too", "keep one of the two")
        return own or self.secret_file(file)

    def boolean(self, name: str, *, default: bool) -> bool:
        """Return true or false."""
        value = self.text(name, "true" if default else "false").lower()
        if value not in _TRUE | _FALSE:
            raise refusal(name, f"{value!r} is neither true nor false", "set true or false")
        return value in _TRUE

    def integer(self, name: str, default: int, *, lowest: int, highest: int) -> int:
        """Return a whole number from `lowest` to `highest`."""
        value = self.text(name, str(default))
        if not re.fullmatch(r"[0-9]{1,9}", value) or not lowest <= int(value) <= highest:
            raise refusal(name, f"{value!r} is no whole number from {lowest} to {highest}", "set one, or leave it out")
        return int(value)

    def days(self, name: str, default: int, *, lowest: int) -> int:
        """Return a period in days: 0 (for ever), or a whole number from `lowest` on."""
        value = self.text(name, str(default))
        if not re.fullmatch(r"[0-9]{1,5}", value) or 0 < int(value) < lowest:
            problem = f"{value!r} is neither 0 (for ever) nor a whole number of days from {lowest} to 99999"
            raise refusal(name, problem, f"set 0, or {lowest} and more")
        return int(value)

    def choice(self, name: str, default: str, choices: Collection[str]) -> str:
        """Return one of `choices`, in upper case."""
        value = self.text(name, default).upper()
        if value not in choices:
            raise refusal(name, f"{value!r} is unknown", f"set one of {', '.join(choices)}")
        return value

    def words(self, name: str, default: str = "") -> list[str]:
        """Return the parts of a list separated by commas."""
        return [part.strip() for part in self.text(name, default).split(",") if part.strip()]

    def hosts(self, name: str) -> list[str]:
        """Return host names as Django's ALLOWED_HOSTS takes them; `*` allows all."""
        hosts = self.words(name)
        for host in hosts:
            if "/" in host or " " in host or re.search(r"[^\]:]:\d+$", host):
                raise refusal(name, f"{host!r} is no bare host name", "leave out the scheme, the port and the path")
        return hosts

    def origins(self, name: str) -> list[str]:
        """Return origins, each with its scheme, as in https://ladder.example.com."""
        origins = self.words(name)
        for origin in origins:
            if not re.fullmatch(r"https?://[^/\s]+", origin):
                raise refusal(
                    name, f"{origin!r} is no origin", "write scheme and host, as in https://ladder.example.com"
                )
        return origins

    def zone(self, name: str, default: str = "UTC") -> str:
        """Return the name of a time zone of the IANA list."""
        value = self.text(name, default)
        try:
            ZoneInfo(value)
        except (ValueError, OSError, LookupError):
            raise refusal(name, f"{value!r} is no known time zone", "use an IANA name, as in Europe/Berlin") from None
        return value

    def folder(self, name: str, default: Path) -> Path:
        """Return a folder's absolute path; it is made when it is first needed."""
        return Path(self.text(name, str(default))).expanduser().absolute()

    def secret_file(self, name: str) -> str:
        """Return the secret that a file holds, as container engines hand them over; empty where none is named."""
        file = self.text(name)
        if not file:
            return ""
        try:
            secret = Path(file).expanduser().read_text(encoding="utf-8").strip()
        except (OSError, ValueError):
            problem = f"the file {file} cannot be read"
            raise refusal(name, problem, "name a file that the user who runs this may read") from None
        if not secret:
            raise refusal(name, f"the file {file} is empty", "write the secret into it, or leave the variable out")
        return secret

    def database(self, name: str, default: str, *, password: str = "") -> dict[str, Any]:
        """Return Django's entry for the database that an address names; `password` where the address has none."""
        url = self.text(name, default)
        scheme = url.partition(":")[0]
        if scheme not in DATABASE_SCHEMES:
            raise refusal(name, "its scheme is unknown", "begin with sqlite:/// or postgres://")
        if scheme == "sqlite" and not url.removeprefix("sqlite:").strip("/"):
            # The library reads this as "in memory": nothing would be kept, and no two processes would see the same.
            raise refusal(name, "it names no file", "write sqlite:////path/to/file, or leave it out")
        try:
            entry = database_from_url(url)
        except (ValueError, LookupError):
            raise refusal(name, "it cannot be read", "write postgres://user:password@host:5432/name") from None
        if not entry["NAME"]:
            raise refusal(name, "it names no database", "end with the name of a database or the path of a file")
        if scheme == "sqlite" and entry["NAME"] != ":memory:":
            _sqlite_file(Path(entry["NAME"]).absolute(), name)
        if password and (scheme == "sqlite" or entry["PASSWORD"]):
            raise refusal(f"{name.removesuffix('_URL')}_PASSWORD_FILE", f"{name} needs none", "leave one of them out")
        return entry | ({"PASSWORD": password} if password else {})

    def broker(self, name: str) -> str:
        """Return the address of the message broker; the default is the embedded one in files."""
        url = self.text(name, "filesystem://")
        if "://" not in url or url.partition("://")[0] not in BROKER_SCHEMES:
            known = ", ".join(f"{scheme}://" for scheme in sorted(BROKER_SCHEMES))
            raise refusal(name, "its scheme is unknown", f"begin with one of {known}")
        return url

    def secret_key(self, name: str, kept_in: Path) -> str:
        """Return the signing key; where none is given, one is made once and kept in a file only its owner reads."""
        key = self.secret(name) or _kept_secret(kept_in / "secret_key")
        if len(key) < SECRET_KEY_LENGTH:
            remedy = "give a longer random text, or none: then one is made and kept in VAR_DIR"
            raise refusal(name, f"it has fewer than {SECRET_KEY_LENGTH} characters", remedy)
        return key


def _sqlite_file(file: Path, name: str) -> None:
    """Prove that a database can be kept there: nothing yet, or what begins as every SQLite file does."""
    usable_folder(file.parent, name)
    try:
        with file.open("rb") as opened:
            head = opened.read(len(_SQLITE_HEAD))
    except FileNotFoundError:
        return
    except OSError as error:
        problem = f"{file} cannot be read ({error.strerror})"
        raise refusal(name, problem, "name a file that the user who runs this may read and write") from None
    if head not in {b"", _SQLITE_HEAD}:
        raise refusal(name, f"{file} is no SQLite database", "name another file, or move this one away")


def database_from_url(url: str) -> dict[str, Any]:
    """Return Django's entry for a database address: a lasting connection, and what SQLite needs for several writers.

    Raises:
        ValueError: the address cannot be read.
    """
    entry: dict[str, Any] = dict(dj_database_url.parse(url, conn_max_age=None, conn_health_checks=True))
    if entry["ENGINE"].endswith("sqlite3"):
        entry["OPTIONS"] = dict(_SQLITE_OPTIONS)
    else:
        entry["OPTIONS"] = {**_POSTGRES_OPTIONS, **entry.get("OPTIONS", {})}
    return entry


def usable_folder(folder: Path, name: str) -> Path:
    """Make a folder where it is missing, and prove that this user may write in it.

    Raises:
        ImproperlyConfigured: naming the variable, the folder and what is wrong with it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        problem = f"the folder {folder} cannot be written ({error.strerror})"
        raise refusal(name, problem, "name a folder that the user who runs this may write") from None
    return folder


def _kept_secret(file: Path) -> str:
    usable_folder(file.parent, "VAR_DIR")
    if not file.exists():
        _keep(file, secrets.token_urlsafe(SECRET_KEY_LENGTH))
    try:
        if file.stat().st_mode & 0o077:
            raise refusal("VAR_DIR", f"others may read {file}", f"run: chmod 600 {file}")
        kept = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        raise refusal("VAR_DIR", f"{file} cannot be read", "give it to the user who runs this, or remove it") from None
    if len(kept) < SECRET_KEY_LENGTH:
        problem = f"{file} holds {'nothing' if not kept else f'fewer than {SECRET_KEY_LENGTH} characters'}"
        raise refusal("VAR_DIR", problem, "remove that file, and a new key is made; everybody signs in again")
    return kept


def _keep(file: Path, secret: str) -> None:
    # Written aside and linked: of several processes that start at once the first one wins, and none reads a part.
    with tempfile.NamedTemporaryFile("w", dir=file.parent, prefix=".secret-") as aside:
        aside.write(secret)
        aside.flush()
        try:
            file.hardlink_to(aside.name)
        except FileExistsError:
            return
        except OSError as error:
            problem = f"no random key can be kept in {file.parent} ({error.strerror})"
            raise refusal(
                "SECRET_KEY", problem, f"set a random text of at least {SECRET_KEY_LENGTH} characters"
            ) from None


class UnusableSettingError(ImproperlyConfigured):
    """A variable that stops the start, in one sentence; `says` is what is wrong, `mend` the remedy, each by itself."""

    def __init__(self, name: str, problem: str, remedy: str) -> None:
        super().__init__(f"{name}: {problem}; {remedy}.")
        self.says = f"{name}: {problem}."
        self.mend = f"{remedy[0].upper()}{remedy[1:]}."


def refusal(name: str, problem: str, remedy: str) -> UnusableSettingError:
    """Return what stops the start: the variable, what is wrong with it, and what mends it."""
    return UnusableSettingError(name, problem, remedy)
