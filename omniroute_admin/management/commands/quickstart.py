"""`manage.py quickstart`: prepare everything and serve it, in one command."""

import errno
import logging
import os
import secrets
import socket
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connections

from ladder.selectors.demo import read_demo_state
from omniroute_admin.alone import alone
from omniroute_admin.common.clock import now
from omniroute_admin.common.history import Actor
from omniroute_admin.common.logs import JSON
from omniroute_admin.common.models import ApiKey
from omniroute_admin.common.services.keys import create_key
from omniroute_admin.environment import usable_folder
from omniroute_admin.programs import child_environment, programs_to_run
from omniroute_admin.supervisor import Supervisor

ROUTER_SCOPES = ["pools:read", "telemetry:write"]
OPERATOR = "operator"
MOST_WORKERS = 64
_log = logging.getLogger("omniroute_admin.supervisor")


class Command(BaseCommand):
    """Prepare the database, the facts, an operator and a router key, then serve until Ctrl-C."""

    help = (
        "Prepare everything (database, facts, prices, an operator, a router key), then serve the pages and the API "
        "beside a worker and a scheduler until Ctrl-C. Run again it keeps what is there and serves."
    )
    # The checks ask for a database with every table; this command makes them.
    requires_migrations_checks = False

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options."""
        parser.add_argument("--host", default="127.0.0.1", help="address to serve on (default: this machine only)")
        parser.add_argument("--port", type=int, default=8000, help="port to serve on (default 8000)")
        cores = min(os.cpu_count() or 1, MOST_WORKERS)
        parser.add_argument("--workers", type=int, default=cores, help=f"web processes, 1 to {MOST_WORKERS} (cores)")
        parser.add_argument("--demo", action="store_true", help="add a small simulated fleet whose readings move")
        parser.add_argument("--no-serve", action="store_true", help="prepare only")

    def handle(self, *args: Any, **options: Any) -> None:
        """Prepare, say where everything is, serve.

        Raises:
            CommandError: the port is no port or is taken, the number of workers is none, the database cannot be
                reached or is none, or the folder of the static files cannot be written.
        """
        serves = not options["no_serve"]
        if not 1 <= options["workers"] <= MOST_WORKERS:
            raise CommandError(f"--workers {options['workers']}: give a number from 1 to {MOST_WORKERS}.")
        if serves:
            refuse_unusable_port(host=options["host"], port=options["port"])
        try:
            # Two that are started at once make one operator and one key.
            with alone("prepare", say=self._say):
                key = self._prepare(demo=options["demo"])
        except DatabaseError as error:
            raise CommandError(f"The database cannot be used: {error}".strip()) from None
        self._greet(host=options["host"], port=options["port"], key=key, serves=serves)
        if serves:
            connections.close_all()
            programs = programs_to_run(host=options["host"], port=options["port"], workers=options["workers"])
            Supervisor(programs=programs, environment=child_environment(), say=self._say).run()
            self._say("everything has ended")

    def _prepare(self, *, demo: bool) -> str | None:
        """Do what is not done yet; return the new router key, if one was made."""
        usable_folder(Path(settings.STATIC_ROOT), "STATIC_ROOT")
        call_command("migrate", interactive=False, verbosity=0, stdout=self.stdout)
        call_command("collectstatic", interactive=False, verbosity=0, stdout=self.stdout)
        # The account is made last, so that a first run that was cut short is a first run again.
        if not get_user_model().objects.exists():
            call_command("load_facts", stdout=self.stdout)
            call_command("sync_prices", stdout=self.stdout)
        if demo:
            call_command("demo", "--start", stdout=self.stdout)
        key = self._make_router_key()
        self._make_operator()
        return key

    def _make_operator(self) -> None:
        users = get_user_model().objects
        if users.exists():
            return
        password = secrets.token_urlsafe(15)
        users.create_superuser(username=OPERATOR, password=password)
        self.stdout.write(f"Operator: {OPERATOR}   password (shown once): {password}")

    def _make_router_key(self) -> str | None:
        if ApiKey.objects.exists():
            return None
        _, secret = create_key(
            name="router",
            scopes=ROUTER_SCOPES,
            expires_at=None,
            actor=Actor(name="quickstart"),
            reason="made by the first quickstart",
            now=now(),
        )
        self.stdout.write(f"Router key (shown once): {secret}")
        return secret

    def _greet(self, *, host: str, port: int, key: str | None, serves: bool) -> None:
        if key is None:
            self.stdout.write("There is a key already; manage.py create_key makes another.")
        if serves:
            address = base_url(host=host, port=port)
            self.stdout.write(f"Ladder:  {address}/   API: {address}/api/docs/")
            self.stdout.write(
                f'Try:     curl -H "Authorization: Bearer {key or "$KEY"}" {address}/api/v1/pools/auto/thrifty'
            )
        if read_demo_state().connections:
            self.stdout.write(
                "Demo:    the connections labelled demo: are simulated; python manage.py demo --stop removes them"
            )
        last = "Ctrl-C ends everything." if serves else "Prepared. Without --no-serve this command serves it."
        self.stdout.write(last)
        self.stdout.flush()

    def _say(self, line: str) -> None:
        if settings.LOG_FORMAT == JSON:
            _log.info(line)
            return
        self.stdout.write(f"quickstart: {line}")
        self.stdout.flush()


def base_url(*, host: str, port: int) -> str:
    """Return the address a person opens; a server on every address is reached by this machine's own name too."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{shown}:{port}"


def refuse_unusable_port(*, host: str, port: int) -> None:
    """Bind the address once, before anything is changed.

    Raises:
        CommandError: it is no port, it is taken, or the address is not this machine's.
    """
    if not 0 < port < 65536:  # noqa: PLR2004
        raise CommandError(f"--port {port}: a port is a number from 1 to 65535.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # As the server will: the remains of closed connections do not count as taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise CommandError(_bind_problem(host=host, port=port, error=error)) from None


def _bind_problem(*, host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} on {host} is in use: end what listens there, or choose another with --port."
    return f"Cannot serve on {host}, port {port}: {error.strerror}. Choose others with --host and --port."
