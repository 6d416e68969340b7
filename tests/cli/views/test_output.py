"""Tables and sentences fit a terminal, whatever it can show."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from shoal.cli.errors import wrap_words
from shoal.cli.views.output import is_plain_locale, make_table
from tests.cli.terminal import call, shoal
from tests.cli.views.test_progress import run_in_terminal


def draw(width: int, *rows: tuple[str, ...], titles: tuple[str, ...]) -> list[str]:
    table = make_table(*titles)
    for row in rows:
        table.add_row(*row)
    console = Console(file=io.StringIO(), width=width)
    with console.capture() as capture:
        console.print(table)
    return [line.rstrip() for line in capture.get().splitlines()]


def test_a_table_with_room_is_one_line_for_each_row() -> None:
    rows = [("ada", "some words"), ("benjamin", "more")]
    assert draw(40, *rows, titles=("who", "what")) == [
        "who       what",
        "ada       some words",
        "benjamin  more",
    ]


def test_a_table_with_little_room_is_folded_between_words() -> None:
    drawn = draw(24, ("benjamin", "some long words of his"), titles=("who", "what"))
    assert drawn == ["who       what", "benjamin  some long", "          words of his"]


def test_a_table_whose_words_do_not_fit_is_a_block_for_each_row() -> None:
    rows = [("benjamin", "incomprehensible"), ("ada", "yes")]
    assert draw(22, *rows, titles=("who", "what")) == [
        "who   benjamin",
        "what  incomprehensible",
        "",
        "who   ada",
        "what  yes",
    ]


@pytest.mark.parametrize(
    ("environ", "plain"),
    [
        ({}, False),
        ({"LANG": "C"}, True),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, True),
        ({"LANG": "en_US.UTF-8"}, False),
        ({"LANG": "en_US.UTF-8", "LC_ALL": "POSIX"}, True),
        ({"LANG": "C", "LC_CTYPE": "de_DE.UTF-8"}, False),
    ],
)
def test_a_terminal_is_plain_if_the_user_says_so(environ: dict[str, str], plain: bool) -> None:
    assert is_plain_locale(environ) is plain


def test_bars_are_drawn_in_ascii_where_the_locale_has_nothing_else(folder: Path) -> None:
    call("run", "small.yaml", "--out", "run")
    whole = call("show", "run").stdout
    assert not whole.isascii()
    plain = shoal("show", "run", cwd=folder, LANG="C", LC_ALL="C")
    assert plain.stdout.isascii()
    assert len(plain.stdout) == len(whole)


def test_long_sentences_are_wrapped_between_words_and_commands_stay_whole() -> None:
    text = "a sentence that is too long\n  and one that is indented\ngo on with: shoal resume runs/a --max-cost 2"
    assert wrap_words(text, 20) == (
        "a sentence that is\ntoo long\n  and one that is\n  indented\ngo on with: shoal resume runs/a --max-cost 2"
    )


def test_colours_of_our_own_reach_the_terminal(folder: Path) -> None:
    shown = run_in_terminal("doctor", cwd=folder)
    assert "\x1b[2m" in shown
    assert "\ufffd" not in shown


def test_lines_below_an_error_keep_their_indentation() -> None:
    script = "import sys; sys.stderr.isatty = lambda: True; from shoal.cli.errors import complain; complain('  a b')"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stderr == "  a b\n"
