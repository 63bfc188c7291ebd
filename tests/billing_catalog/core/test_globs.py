"""The glob of T and Q6: `*` over the whole name, any case."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing_catalog.core.globs import glob_matches
from tests.ladder.core.oracle import glob
from tests.ladder.core.strategies import PROPERTY


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("opus-4", "OPUS-4", True),
        ("OPUS-*", "opus-4", True),
        ("opus-*", "opus-", True),
        ("*", "", True),
        ("", "", True),
        ("", "x", False),
        ("opus", "opus-4", False),
        ("4", "opus-4", False),
        ("*flash*", "x-FLASH-1", True),
        ("*a*a", "aa", True),
        ("*a*a", "a", False),
        ("a*a", "a", False),
        ("a**b", "ab", True),
        ("m.small", "mXsmall", False),
        ("m-(large)", "m-(large)", True),
        ("m?", "mx", False),
        ("[a-z]", "b", False),
        ("org/*", "org/m\nlarge", True),
        ("opus\n", "opus", False),
        ("opus", "opus\n", False),
        ("*small", "small\n", False),
    ],
)
def test_only_the_star_stands_for_something_else(pattern, name, matches):
    assert glob_matches(pattern=pattern, name=name) is matches


@PROPERTY
@given(st.text("aB*.", max_size=7), st.text("abB.", max_size=7))
def test_a_glob_matches_what_trying_every_place_of_every_star_matches(pattern, name):
    assert glob_matches(pattern=pattern, name=name) == glob(pattern, name)


def test_a_pattern_of_many_stars_is_answered_at_once():
    assert not glob_matches(pattern="*a" * 60 + "*b", name="a" * 128)
