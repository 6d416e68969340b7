"""Documents: what is read of text, Markdown and PDF, and what cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.errors import ScenarioInvalid
from shoal.preparation.reading.documents import (
    SourceDocument,
    name_apart,
    parse_document,
    read_documents,
    split_passages,
    strip_markup,
)
from shoal.preparation.reading.sentences import list_sentences
from tests.preparation.texts import CHINESE, TOWN, make_pdf


def read(text: str, name: str = "story.txt") -> SourceDocument:
    return parse_document(name, text.encode())


def list_texts(document: SourceDocument) -> list[str]:
    return [paragraph.text for paragraph in document.paragraphs]


def test_paragraphs_are_joined_lines_between_blank_ones() -> None:
    document = read("One line\nand its end.\n\nAnother exam-\nple of it.\n\n- an item\n- another item\n")
    assert list_texts(document) == ["One line and its end.", "Another example of it.", "an item", "another item"]
    assert [paragraph.place for paragraph in document.paragraphs][:2] == ["paragraph 1", "paragraph 2"]


def test_lines_that_are_whole_are_paragraphs_of_their_own() -> None:
    assert list_texts(read("The first is whole.\nThe second too.\nAnd the third.")) == [
        "The first is whole.",
        "The second too.",
        "And the third.",
    ]


def test_markdown_is_read_without_its_marks() -> None:
    text = "# A *big* title\n\nSee **the [plan](http://x.org/a_b)** of `board`.\n\n```\nno = it\n```\n\n> a_b is.\n"
    assert list_texts(read(text, "a.md")) == ["A big title", "See the plan of board.", "a_b is."]
    assert strip_markup("| name | role |\n|---|---|\n| Ada | cook |\n") == " name ,  role \n Ada ,  cook \n"


def test_a_pdf_is_read_page_by_page() -> None:
    document = parse_document("a.pdf", make_pdf([["Ada Berg spoke (long)."], [], ["Bo Lund, a cook, did", "not."]]))
    assert list_texts(document) == ["Ada Berg spoke (long).", "Bo Lund, a cook, did not."]
    assert [paragraph.place for paragraph in document.paragraphs] == ["page 1", "page 3"]
    assert document.notes == ("a.pdf: 1 page without text, perhaps pictures: 2",)


@pytest.mark.parametrize("content", [b"%PDF-1.4 and nothing of it", b"%PDF-1.7\n%%EOF", make_pdf([["x"]])[:300]])
def test_a_broken_pdf_is_answered_with_a_sentence(content: bytes) -> None:
    with pytest.raises(ScenarioInvalid, match=r"a\.pdf: cannot be read as PDF"):
        parse_document("a.pdf", content)


@pytest.mark.parametrize("content", [b"", b" \n\t ", b"\xef\xbb\xbf\n"])
def test_an_empty_document_is_noted_and_no_error(content: bytes) -> None:
    document = parse_document("notes.txt", content)
    assert document.paragraphs == ()
    assert document.notes == ("notes.txt: nothing in it",)


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.docx").write_bytes(b"PK\x03\x04\x00\x00\x00")
    with pytest.raises(ScenarioInvalid, match="not a text file"):
        read_documents([tmp_path / "a.docx"])
    with pytest.raises(ScenarioInvalid, match="no such file"):
        read_documents([tmp_path / "b.txt"])


def test_documents_of_one_name_are_told_apart() -> None:
    one, other = name_apart([read("One."), read("Two.")])
    assert (one.name, other.name) == ("story.txt", "story.txt (2)")
    assert other.paragraphs[0].document == "story.txt (2)"


def test_the_language_of_a_document_is_known() -> None:
    assert read(TOWN).is_english
    assert not read(CHINESE).is_english
    assert not read(
        "Der Rat hat am Dienstag beschlossen, die alte Brücke zu schließen, und das ist nicht alles."
    ).is_english


def test_passages_hold_whole_paragraphs_and_all_of_them() -> None:
    document = read("\n\n".join(f"Paragraph {n} says something. " * 12 for n in range(60)))
    passages = list(split_passages(document, 2_000))
    assert all(len(passage.text) <= 2_300 for passage in passages)
    assert [piece.text for passage in passages for piece in passage.paragraphs] == list_texts(document)
    long = list(split_passages(read("字" * 9_000), 4_000))
    assert "".join(passage.text for passage in long) == "字" * 9_000


def test_sentences_end_where_they_do_and_quotations_stay_whole() -> None:
    text = 'Dr. A. Berg met Mr. Lund at 5 p.m. in Eastport. "No. Never!" he said. It cost 4.2 million. 他说好。他走了。'
    found = [sentence.text for sentence in list_sentences([read(text)])]
    assert found == [
        "Dr. A. Berg met Mr. Lund at 5 p.m. in Eastport.",
        '"No. Never!" he said.',
        "It cost 4.2 million.",
        "他说好。",
        "他走了。",
    ]
