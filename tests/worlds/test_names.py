"""Finding people by name or number."""

import pytest

from shoal.errors import QueryFailed
from shoal.worlds.names import NameIndex

NAMES = NameIndex(["Ada Lund", "Bo Lee", "ada lund", "Kim Far", "Bo Lee", "7"])


def test_a_person_is_found_by_exact_name_then_by_other_letters_then_by_number() -> None:
    assert [NAMES.find(who) for who in ("Ada Lund", "ada lund", " KIM FAR ", 4, 6, -1, "Nobody")] == [
        0, 2, 3, 4, None, None, None
    ]  # fmt: skip
    assert NAMES["Bo Lee"] == 1
    with pytest.raises(KeyError):
        NAMES["Nobody"]


def test_all_people_of_a_name_and_all_with_some_words_in_their_name_are_found() -> None:
    assert list(NAMES.namesakes("ADA LUND")) == [0, 2]
    assert NAMES.search("lee bo") == [1, 4]
    assert NAMES.search("lund lee") == NAMES.search(" ") == []


def test_a_text_of_a_user_means_one_person_or_is_refused_with_a_reason() -> None:
    assert [NAMES.resolve(text) for text in ("Ada Lund", "kim far", "3", "7")] == [0, 3, 3, 5]
    with pytest.raises(QueryFailed, match="several people are called 'bo lee'; name one by number: 1, 4"):
        NAMES.resolve("bo lee")
    with pytest.raises(QueryFailed, match="there is no agent 'Kim'; did you mean 'Kim Far'"):
        NAMES.resolve("Kim")
    with pytest.raises(QueryFailed, match="there is no agent '12'; people have numbers 0 to 5"):
        NAMES.resolve("12")


def test_a_name_that_several_people_share_in_part_is_refused_with_all_of_them() -> None:
    index = NameIndex(["Ann Lee", "Ben", "Ann Ray"])
    with pytest.raises(QueryFailed, match="there is no agent 'ann'; it could be 'Ann Lee' or 'Ann Ray'"):
        index.resolve("ann")
    many = NameIndex([f"Ann {number}" for number in range(20)])
    with pytest.raises(QueryFailed, match=r"'Ann 0', 'Ann 1', .* and 12 more"):
        many.resolve("Ann")
