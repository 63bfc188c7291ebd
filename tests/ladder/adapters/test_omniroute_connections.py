"""Rows of provider_connections: ids, providers, sign-in types, labels."""

import pytest

from tests.ladder.adapters.omniroute_file import SCHEMA, OmnirouteFile


def only_connection(file: OmnirouteFile):
    (connection,) = file.read().connections
    return connection


@pytest.mark.parametrize(
    ("stored", "expected", "problems"),
    [
        ("oauth", "oauth", []),
        ("apikey", "apikey", []),
        ("api_key", "apikey", []),
        ("API-Key", "apikey", []),
        (" cookie ", "cookie", []),
        ("no_auth", "none", []),
        (None, None, []),
        ("", None, []),
        ("Device-Code", "device-code", ["unknown_auth_type"]),
        ("sk-live-0123456789", None, ["odd_auth_type"]),
        (b"\x00\xff", None, ["odd_auth_type"]),
        ("two\nlines", None, ["odd_auth_type"]),
    ],
)
def test_every_way_of_writing_the_auth_type_is_read(omniroute, stored, expected, problems):
    omniroute.add_connection(auth_type=stored)
    assert only_connection(omniroute).auth_type == expected
    assert omniroute.problem_codes() == problems


@pytest.mark.parametrize("bad", ["", " c1", "_c1", "a b", "c1\n", "x" * 129, "ümlaut", None, b"\xff\xfe"])
def test_an_id_against_the_rule_of_spec_1_is_reported_and_skipped(omniroute, bad):
    omniroute.add_connection(bad)
    assert omniroute.read().connections == ()
    (found,) = omniroute.read().problems
    assert (found.table, found.key, found.code) == ("provider_connections", "row 1", "bad_id")


@pytest.mark.parametrize("good", ["7", "x" * 128, "a.b_c:d@e+f-g"])
def test_an_id_as_spec_1_wants_it_is_kept_letter_by_letter(omniroute, good):
    omniroute.add_connection(good)
    assert only_connection(omniroute).connection_id == good


def test_an_account_never_comes_in_under_the_keyless_id_of_spec_b1(omniroute):
    omniroute.add_connection("noauth", provider="openai", auth_type="apikey")
    assert omniroute.read().connections == ()
    assert omniroute.problem_codes() == ["reserved_id"]


def test_a_second_row_with_the_same_id_is_reported(tmp_path):
    file = OmnirouteFile(
        tmp_path / "storage.sqlite", schema=SCHEMA.replace("id TEXT PRIMARY KEY, provider", "id TEXT, provider")
    )
    file.add_connection("c1", provider="claude")
    file.add_connection("c1", provider="codex")
    assert only_connection(file).provider == "claude"
    assert file.problem_codes() == ["duplicate_id"]


def test_provider_names_become_lower_case_without_blanks(omniroute):
    omniroute.add_connection(provider="  Gemini-CLI ")
    assert only_connection(omniroute).provider == "gemini-cli"


@pytest.mark.parametrize("bad", ["", "two words", "open\x00ai", b"\x80"])
def test_a_provider_that_is_no_id_is_reported_and_skipped(omniroute, bad):
    omniroute.add_connection(provider=bad)
    assert omniroute.read().connections == ()
    assert omniroute.problem_codes() == ["bad_provider"]


@pytest.mark.parametrize(
    ("stored", "is_enabled", "problems"),
    [
        (1, True, []),
        (0, False, []),
        (None, False, ["odd_is_active"]),
        ("yes", False, ["odd_is_active"]),
        (2, False, ["odd_is_active"]),
    ],
)
def test_only_a_one_is_enabled(omniroute, stored, is_enabled, problems):
    omniroute.add_connection(is_active=stored)
    assert only_connection(omniroute).is_enabled is is_enabled
    assert omniroute.problem_codes() == problems


def test_a_label_shows_both_ends_of_the_id_and_never_the_name(omniroute):
    omniroute.add_connection(
        "11111111-0000-4000-8000-000000000004", provider="openai", name="Ann <ann@example.invalid>"
    )
    assert only_connection(omniroute).label == "openai 11111111…0004"


def test_a_label_of_a_custom_node_leaves_the_nodes_uuid_out(omniroute):
    node = "openai-compatible-chat-37d58280-b23a-41b0-a256-7c544c025a53"
    omniroute.add_connection("c1", provider=node)
    assert only_connection(omniroute).label == "openai-compatible-chat c1"
    assert only_connection(omniroute).provider == node


def test_a_bad_row_costs_no_good_one(omniroute):
    omniroute.add_connection("bad id")
    omniroute.add_connection("good-id")
    assert only_connection(omniroute).connection_id == "good-id"
