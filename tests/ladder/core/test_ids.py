"""I: the ids there are, spelt exactly."""

import pytest

from ladder.core.ids import POOL_IDS, find_pool_id
from ladder.core.values import Grouping

CATEGORIES = ("coding", "reasoning", "vision", "chat", "multimodal")
NEEDS = {"vision": "vision", "multimodal": "vision", "reasoning": "reasoning", "coding": None, "chat": None}


def test_there_are_three_flat_ids_and_ten_pairs():
    pairs = [f"auto/{category}:{kind}" for category in CATEGORIES for kind in ("subscription", "thrifty")]
    assert sorted(POOL_IDS) == sorted(["auto/subscription", "auto/thrifty", "auto/best-free", *pairs])


@pytest.mark.parametrize("category", CATEGORIES)
@pytest.mark.parametrize("kind", ["subscription", "thrifty"])
def test_a_pair_means_its_category_and_its_grouping(category, kind):
    found = find_pool_id(f"auto/{category}:{kind}")
    assert (found.category, found.grouping, found.capability) == (category, Grouping(kind), NEEDS[category])


@pytest.mark.parametrize(
    ("text", "grouping"),
    [
        ("auto/subscription", Grouping.SUBSCRIPTION),
        ("auto/thrifty", Grouping.THRIFTY),
        ("auto/best-free", Grouping.FREE),
    ],
)
def test_a_flat_id_has_no_category_and_filters_nothing(text, grouping):
    found = find_pool_id(text)
    assert (found.id, found.grouping, found.category, found.capability) == (text, grouping, None, None)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "auto",
        "auto/",
        "auto/Thrifty",
        "AUTO/thrifty",
        "auto/thrifty ",
        " auto/thrifty",
        "auto/thrifty\n",
        "auto/coding",
        "auto/coding:",
        "auto/:thrifty",
        "auto/coding:free",
        "auto/coding:best-free",
        "auto/best-free:thrifty",
        "auto/coding:thrifty:",
        "auto/coding:thrifty:subscription",
        "auto/Coding:thrifty",
        "auto/coding:Subscription",
        "auto/unknown:thrifty",
        "auto/free",
        "thrifty",
        "auto//thrifty",
        "auto\\thrifty",
    ],
)
def test_any_other_spelling_is_unknown(text):
    assert find_pool_id(text) is None
