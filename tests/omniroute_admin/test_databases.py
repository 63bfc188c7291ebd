"""The tests' own two databases."""

import threading

import pytest
from django.contrib.auth import get_user_model
from django.db import connection


@pytest.mark.django_db
def test_a_database_test_runs_on_the_database_that_its_name_says(database: str) -> None:
    assert connection.vendor == {"sqlite": "sqlite", "postgres": "postgresql"}[database]


@pytest.mark.django_db(transaction=True)
def test_another_thread_reads_what_this_one_committed() -> None:
    get_user_model().objects.create_user("reader")
    seen: list[bool] = []

    def read() -> None:
        seen.append(get_user_model().objects.filter(username="reader").exists())
        connection.close()

    thread = threading.Thread(target=read)
    thread.start()
    thread.join()
    assert seen == [True]


@pytest.mark.sqlite
@pytest.mark.django_db(transaction=True)
def test_sqlite_serves_several_writers_by_its_write_ahead_log() -> None:
    with connection.cursor() as cursor:
        journal = cursor.execute("PRAGMA journal_mode").fetchone()[0]
        synchronous = cursor.execute("PRAGMA synchronous").fetchone()[0]
    assert (journal, synchronous) == ("wal", 1)
    assert connection.transaction_mode == "IMMEDIATE"


@pytest.mark.postgres
@pytest.mark.django_db
def test_a_postgres_test_is_given_a_real_server() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version_num")
        assert int(cursor.fetchone()[0]) >= 140000
