"""How the tests run: settings of their own, and every database test on SQLite and on a real PostgreSQL.

A test that uses the database runs once on each; `--database=sqlite` or `--database=postgres` picks one. A test marked
`sqlite` or `postgres` runs on that one only.
"""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.utils.module_loading import import_string

from tests.postgres import NoPostgresError, postgres_url

if "DJANGO_SETTINGS_MODULE" in os.environ:
    raise pytest.UsageError("unset DJANGO_SETTINGS_MODULE: the tests make their own settings before Django reads them")

VAR_DIR = Path(tempfile.mkdtemp(prefix="omniroute-tests-"))
atexit.register(shutil.rmtree, VAR_DIR, ignore_errors=True)

SQLITE_URL = f"sqlite:///{VAR_DIR / 'omniroute_admin.sqlite3'}"
ENVIRONMENT = {
    "DJANGO_SETTINGS_MODULE": "omniroute_admin.settings",
    # Playwright's synchronous calls run in an event loop of their own, which Django takes for an asynchronous view.
    "DJANGO_ALLOW_ASYNC_UNSAFE": "true",
    "VAR_DIR": str(VAR_DIR),
    "DATABASE_URL": SQLITE_URL,
    "SECRET_KEY": "the-tests-sign-with-this-and-nothing-else-ever-does-so-0123456789",
    "DEBUG": "false",
    "ALLOWED_HOSTS": "localhost,127.0.0.1,[::1],testserver",
    "LOG_LEVEL": "WARNING",
}
# What the person's own shell says about an installation must not reach the tests.
FOREIGN = [
    *(name for name in os.environ if name.startswith("ALERT_")),
    "CELERY_BROKER_URL",
    "CSRF_TRUSTED_ORIGINS",
    "DATABASE_PASSWORD_FILE",
    "HEARTBEAT_SECONDS",
    "HSTS_SECONDS",
    "LOGIN_FAILURES",
    "LOGIN_LOCK_MINUTES",
    "OIDC_CLIENT_ID",
    "OIDC_CLIENT_SECRET",
    "OIDC_CLIENT_SECRET_FILE",
    "OIDC_ISSUER",
    "OIDC_NAME",
    "OIDC_NEW_ACCOUNTS",
    "OIDC_ROLES",
    "OIDC_ROLES_CLAIM",
    "OIDC_SCOPES",
    "REQUIRE_TOTP",
    "KEEP_AUDIT_DAYS",
    "KEEP_HISTORY_DAYS",
    "KEEP_LEDGER_DAYS",
    "KEEP_READINGS_DAYS",
    "PUBLIC_URL",
    "SECRET_KEY_FILE",
    "SECURE_SSL",
    "SESSION_IDLE_MINUTES",
    "STATIC_ROOT",
    "TIME_ZONE_DISPLAY",
    "TOTP_KEY",
    "TOTP_KEY_FILE",
    "TRUST_PROXY",
]

CLEAR_BEFORE_EACH_TEST = [
    "ladder.selectors.state.forget_snapshot",
    "omniroute_admin.common.selectors.keys.forget_keys",
    "omniroute_admin.common.services.key_use.forget_uses",
    "omniroute_admin.common.services.key_rate.forget_calls",
    "omniroute_admin.common.denials.forget_denials",
]
"""Functions called before every test: what a process remembers between requests must not reach the next test, whose
database counts its revisions and ids from the same number."""

_DATABASE_FIXTURES = {"db", "transactional_db", "live_server", "django_db_setup", "database"}

for _name in FOREIGN:
    os.environ.pop(_name, None)
os.environ.update(ENVIRONMENT)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("omniroute_admin")
    group.addoption(
        "--database", choices=["sqlite", "postgres", "both"], default="both", help="where database tests run"
    )
    group.addoption("--no-skips", action="store_true", help="a skipped test fails (also where CI=true)")


def pytest_configure(config: pytest.Config) -> None:
    from django.conf import settings

    from omniroute_admin.common import clock

    if str(settings.VAR_DIR) != ENVIRONMENT["VAR_DIR"]:
        raise pytest.UsageError("Django read its settings before the tests made them")
    # The first minute of a process is lenient with a missing worker; here it is over before the first test.
    clock.STARTED_AT = datetime(2020, 1, 1, tzinfo=UTC)
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.STORAGES = {
        "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }
    settings.WHITENOISE_USE_FINDERS = True
    settings.CELERY_TASK_ALWAYS_EAGER = True
    settings.CELERY_TASK_EAGER_PROPAGATES = True


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes() -> None:
    """Let each process of a parallel run make its own settings: Django would read inherited ones before this file."""
    del os.environ["DJANGO_SETTINGS_MODULE"]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Share the tests out so that a process changes its database once."""
    from tests.in_parallel import FilesOfOneDatabase

    return FilesOfOneDatabase(config, log)


def _uses_database(metafunc: pytest.Metafunc) -> bool:
    marked = metafunc.definition.get_closest_marker("django_db") is not None
    return marked or not _DATABASE_FIXTURES.isdisjoint(metafunc.fixturenames)


def _databases_of(metafunc: pytest.Metafunc) -> list[str]:
    both = ["sqlite", "postgres"]
    return [name for name in both if metafunc.definition.get_closest_marker(name)] or both


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a database test run once on each database."""
    if not _uses_database(metafunc):
        return
    if "database" not in metafunc.fixturenames:
        metafunc.fixturenames.append("database")
    metafunc.parametrize("database", _databases_of(metafunc), indirect=True, scope="session")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the database that was not chosen; that is a choice and no skip."""
    chosen = config.getoption("--database")
    if chosen == "both":
        return
    left_out = [item for item in items if _database_of(item) not in {None, chosen}]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def _database_of(item: pytest.Item) -> str | None:
    spec = getattr(item, "callspec", None)
    return spec.params.get("database") if spec else None


def _skips_fail(config: pytest.Config) -> bool:
    return bool(config.getoption("--no-skips")) or os.environ.get("CI", "").lower() == "true"


def _fail_if_skipped(report: Any, config: pytest.Config) -> Any:
    if report.skipped and not hasattr(report, "wasxfail") and _skips_fail(config):
        report.outcome = "failed"
        report.longrepr = f"skipped, and nothing may be skipped here: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    return _fail_if_skipped((yield), item.config)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    return _fail_if_skipped((yield), collector.config)


def _connect_to(url: str) -> None:
    """Point Django's default connection of this process at another database server."""
    from django.contrib.contenttypes.models import ContentType
    from django.db import connections

    from omniroute_admin.environment import database_from_url

    connections["default"].close()
    del connections["default"]
    entry = database_from_url(url) | {"CONN_MAX_AGE": 0}
    suffix = f"{os.environ.get('PYTEST_XDIST_WORKER', 'main')}_{os.getpid()}"
    entry["TEST"] = {"NAME": str(VAR_DIR / f"test_{suffix}.sqlite3") if "sqlite" in url else f"test_omniroute_{suffix}"}
    connections.settings["default"] = connections.configure_settings({"default": entry})["default"]
    ContentType.objects.clear_cache()


@pytest.fixture(scope="session")
def _postgres_url() -> Iterator[str]:
    try:
        with ExitStack() as stack:
            yield stack.enter_context(postgres_url())
    except NoPostgresError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def database(request: pytest.FixtureRequest) -> str:
    """Return which database this test runs on: `sqlite` or `postgres`; Django's connection is there already."""
    name: str = getattr(request, "param", "sqlite")
    _connect_to(SQLITE_URL if name == "sqlite" else request.getfixturevalue("_postgres_url"))
    return name


@pytest.fixture(scope="session")
def django_db_setup(database: str, django_test_environment: None, django_db_blocker: Any) -> Iterator[None]:
    """Make the test database by the migrations, and drop it when the last test on it is done."""
    from django.db import connections
    from django.test.utils import setup_databases, teardown_databases

    with django_db_blocker.unblock():
        made = setup_databases(verbosity=0, interactive=False)
    yield
    with django_db_blocker.unblock():
        connections.close_all()
        _end_other_sessions(database)
        teardown_databases(made, verbosity=0)


def _end_other_sessions(database: str) -> None:
    """End what a live server or a child process left connected, and let none in again: PostgreSQL drops no database
    that is in use.
    """
    from django.db import connection

    if database == "postgres":
        name = connection.settings_dict["NAME"]
        with connection._nodb_cursor() as cursor:
            cursor.execute(f"ALTER DATABASE {connection.ops.quote_name(name)} ALLOW_CONNECTIONS false")
            cursor.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])


@pytest.fixture
def database_url(transactional_db: None, database: str) -> str:
    """Return the address of the database this test runs on, for a process that the test starts."""
    from django.db import connection

    settings = connection.settings_dict
    if database == "sqlite":
        return f"sqlite:///{settings['NAME']}"
    host = quote(settings["HOST"], safe="")
    secret = f":{quote(settings['PASSWORD'], safe='')}" if settings["PASSWORD"] else ""
    port = f":{settings['PORT']}" if settings["PORT"] else ""
    return f"postgres://{settings['USER']}{secret}@{host}{port}/{settings['NAME']}"


@pytest.fixture(autouse=True)
def _forget_what_the_process_remembers() -> None:
    for path in CLEAR_BEFORE_EACH_TEST:
        import_string(path)()
