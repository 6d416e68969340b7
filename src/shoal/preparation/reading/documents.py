"""Documents as plain paragraphs: text, Markdown and PDF.

What cannot be read, such as pages of a PDF that are pictures, is noted and left out.
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import msgspec

from shoal.errors import ScenarioInvalid
from shoal.formats import decode_text
from shoal.runs.reports import detect_language
from shoal.scenario import read_content
from shoal.text import format_count, hide_controls, join_words

MAX_DOCUMENT_CHARS = 20_000_000
ENGLISH = "English"
#: How much of a document is read to detect its language.
_LANGUAGE_CHARS = 20_000
_MARKDOWN = (".md", ".markdown", ".mdown")
_PDF_START = b"%PDF-"
_FENCES = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.MULTILINE | re.DOTALL)
_MARKUP = (
    (re.compile(r"<!--.*?-->", re.DOTALL), ""),
    (re.compile(r"</?[A-Za-z][^<>\n]{0,300}>"), ""),
    (re.compile(r"!\[[^\]\n]*\]\([^)\n]*\)"), ""),
    (re.compile(r"\[([^\]\n]+)\]\([^)\n]*\)"), r"\1"),
    (re.compile(r"^[ \t]{0,3}#{1,6}[ \t]+(.*?)\s*#*$", re.MULTILINE), r"\n\1\n"),
    (re.compile(r"^[ \t]*(?:[-*_][ \t]*){3,}$", re.MULTILINE), "\n"),
    (re.compile(r"^[ \t]*>+ ?", re.MULTILINE), ""),
    (re.compile(r"(\*\*|__)(?=\S)(.+?)(?<=\S)\1", re.DOTALL), r"\2"),
    (re.compile(r"(?<![\w*])[*_](?=\S)([^*_\n]+?)(?<=\S)[*_](?![\w*])"), r"\1"),
    (re.compile(r"`([^`\n]+)`"), r"\1"),
)
_BULLET = re.compile(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+", re.MULTILINE)
_HYPHENATED = re.compile(r"(\w)-\n(?=[a-zß-ÿ])")
_BLANK = re.compile(r"\n[ \t]*\n")
_SPACE = re.compile(r"\s+")


class Paragraph(msgspec.Struct, frozen=True):
    """A paragraph of a document, and where it stands."""

    text: str
    document: str
    #: Such as `page 3` or `paragraph 12`.
    place: str


class SourceDocument(msgspec.Struct, frozen=True):
    """A document as it was read."""

    name: str
    paragraphs: tuple[Paragraph, ...]
    #: None where the text is too short to tell.
    language: str | None = None
    notes: tuple[str, ...] = ()

    @classmethod
    def of_pages(cls, name: str, pages: Sequence[str], notes: Iterable[str] = (), unit: str = "page") -> SourceDocument:
        """Make a document of the texts of its pages."""
        paragraphs = [
            Paragraph(text, name, f"{unit} {number}")
            for number, page in enumerate(pages, 1)
            for text in _split_paragraphs(page)
        ]
        if unit != "page":
            paragraphs = [
                Paragraph(each.text, name, f"paragraph {number}") for number, each in enumerate(paragraphs, 1)
            ]
        notes = [*notes] if paragraphs else [*notes, f"{name}: nothing in it that can be read"]
        start = " ".join(each.text for each in paragraphs[:200])[:_LANGUAGE_CHARS]
        return cls(name, tuple(paragraphs), detect_language(start), tuple(notes))

    @property
    def is_english(self) -> bool:
        return self.language == ENGLISH or (
            self.language is None and all(each.text.isascii() for each in self.paragraphs)
        )

    @property
    def characters(self) -> int:
        return sum(len(each.text) for each in self.paragraphs)

    @property
    def digest(self) -> str:
        return hashlib.sha256("\0".join([self.name, *(each.text for each in self.paragraphs)]).encode()).hexdigest()


def read_documents(paths: Iterable[Path]) -> list[SourceDocument]:
    """Read documents from files; ScenarioInvalid where a file is no document. Names are made different."""
    return name_apart(parse_document(path.name, read_content(path)) for path in paths)


def name_apart(documents: Iterable[SourceDocument]) -> list[SourceDocument]:
    """Rename documents of the same name, which evidence could not tell apart."""
    found: list[SourceDocument] = []
    for document in documents:
        taken = {each.name for each in found}
        name, number = document.name, 2
        while name in taken:
            name, number = f"{document.name} ({number})", number + 1
        paragraphs = tuple(msgspec.structs.replace(each, document=name) for each in document.paragraphs)
        found.append(msgspec.structs.replace(document, name=name, paragraphs=paragraphs))
    return found


def parse_document(name: str, content: bytes) -> SourceDocument:
    """Read a document from its bytes; an empty one is noted."""
    if content.startswith(_PDF_START):
        return _parse_pdf(name, content)
    if not content.strip(b" \t\r\n\0\xef\xbb\xbf"):
        return SourceDocument(name, (), notes=(f"{name}: nothing in it",))
    text = decode_text(content, name)
    if len(text) > MAX_DOCUMENT_CHARS:
        raise ScenarioInvalid([f"{name}: {len(text):,} characters; at most {MAX_DOCUMENT_CHARS:,} are read"])
    is_markdown = name.lower().endswith(_MARKDOWN)
    return SourceDocument.of_pages(name, [strip_markup(text) if is_markdown else text], unit="paragraph")


def strip_markup(text: str) -> str:
    """Return what Markdown says, without its marks, its code and its pictures."""
    text = _FENCES.sub("\n\n", text.replace("\r\n", "\n"))
    for pattern, by in _MARKUP:
        text = pattern.sub(by, text)
    rows = (
        line.strip().strip("|").replace("|", ", ") if line.strip().startswith("|") else line
        for line in text.split("\n")
    )
    return "\n".join(line for line in rows if not re.fullmatch(r"[\s,:-]*-[\s,:-]*", line))


def _parse_pdf(name: str, content: bytes) -> SourceDocument:
    if find_spec("pypdf") is None:
        raise ScenarioInvalid([f"{name}: reading PDF needs pypdf: pip install 'shoal[documents]'"])
    pypdf = import_module("pypdf")
    try:
        reader = pypdf.PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise ScenarioInvalid([f"{name}: this PDF has a password; save it without one"])
        pages = [str(page.extract_text()) for page in reader.pages]
    except (pypdf.errors.PyPdfError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ScenarioInvalid([f"{name}: cannot be read as PDF: {error}"]) from error
    empty = [str(number) for number, page in enumerate(pages, 1) if not page.strip()]
    noted = f"{format_count(len(empty), 'page')} without text, perhaps pictures: {join_words(empty, 5)}"
    return SourceDocument.of_pages(name, pages, [f"{name}: {noted}"] if empty else [])


def _split_paragraphs(text: str) -> Iterator[str]:
    """Split at blank lines, and at lines that begin an item of a list; where there is no blank line, at every line."""
    text = _HYPHENATED.sub(r"\1", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = _BULLET.sub("\n\n", text)
    blocks = _BLANK.split(text)
    if len(blocks) == 1:
        lines = [line.strip() for line in text.split("\n") if line.strip()]
        broken = sum(not line.endswith((".", "!", "?", '"', "”", "。", ":")) for line in lines[:-1])
        # Otherwise lines are parts of a paragraph that was broken to fit.
        if broken * 4 < len(lines) or max(map(len, lines), default=0) > 200:
            blocks = lines
    for block in blocks:
        clean = hide_controls(_SPACE.sub(" ", block)).strip()
        if clean:
            yield clean


class Passage(msgspec.Struct, frozen=True):
    """A part of a document that is read at once."""

    document: str
    number: int
    paragraphs: tuple[Paragraph, ...]

    @property
    def text(self) -> str:
        return "\n\n".join(each.text for each in self.paragraphs)


def split_passages(document: SourceDocument, most_chars: int) -> Iterator[Passage]:
    """Split a document into passages of whole paragraphs. A paragraph that is longer is cut at its sentences."""
    pieces = [piece for each in document.paragraphs for piece in _divide_paragraph(each, most_chars)]
    starts, size = [0], 0
    for place, piece in enumerate(pieces):
        if size and size + len(piece.text) > most_chars:
            starts.append(place)
            size = 0
        size += len(piece.text)
    for number, (first, last) in enumerate(pairwise([*starts, len(pieces)])):
        if last > first:
            yield Passage(document.name, number, tuple(pieces[first:last]))


def _divide_paragraph(paragraph: Paragraph, most_chars: int) -> Iterator[Paragraph]:
    text = paragraph.text
    while len(text) > most_chars:
        ends = [found.end() for found in re.finditer(r"[.!?。！？]\s*", text[:most_chars])]
        end = ends[-1] if ends and ends[-1] > most_chars // 2 else most_chars
        yield msgspec.structs.replace(paragraph, text=text[:end].strip())
        text = text[end:]
    if text.strip():
        yield msgspec.structs.replace(paragraph, text=text.strip())
