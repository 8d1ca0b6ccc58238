"""What a verb answers as text and as JSON."""

import json

import pytest
from whywait.commands.answers import Answer, Column, Screen, table, tell
from whywait.report.terminal import fitted

ROWS = [
    {"name": "solve", "time": 0.25, "count": 1200, "share": 0.5},
    {"name": "io", "time": None, "count": 3, "share": 0},
]
COLUMNS = (
    Column("Call", -8, "name"),
    Column("time", 8, "time", "sec"),
    Column("twice", 7, lambda row: 2 * row["count"], "count"),
    Column("share", 8, "share", "share"),
    Column("", 0, lambda row: row["name"] if row["time"] else ""),
)


LONG = [("│  for rank 1.1, whose implicit barrier @a_file_with_a_long_name.c:1234567 began at 1.712329 s;", "dim")]


def plain(lines):
    return ["".join(text for text, _ in line) for line in lines]


def test_a_narrow_terminal_has_no_line_that_is_too_long(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    for line in (*plain(table(ROWS, (*COLUMNS, Column("what", 40, "name")))), *plain(fitted([LONG], 40))):
        assert len(line) <= 40
    assert plain(fitted([LONG], 40)) == [
        "│  for rank 1.1, whose implicit barrier",
        "│     @a_file_with_a_long_name.c:1234567",
        "│     began at 1.712329 s;",
    ]
    assert list(fitted([LONG], 80)) == [LONG]
    change = [("   12 ms  every call as fast as the fastest 5%  --scale 'a long path=0.5' --network ideal", "")]
    assert plain(fitted([change], 40)) == [
        "   12 ms  every call as fast as the",
        "      fastest 5%",
        "      --scale 'a long path=0.5' --network ideal",
    ]
    bold = [("a first part that is bold, ", "bold"), ("and a second one that is not", "")]
    assert list(fitted([bold], 40)) == [
        [("a first part that is bold, ", "bold"), ("and a second", "")], [("   ", ""), ("one that is not", "")]
    ]  # fmt: skip


def test_columns_are_aligned_and_have_units():
    assert plain(table(ROWS, COLUMNS)) == [
        "Call        time  twice   share",
        "solve     250 ms  2,400   50.0%  solve",
        "io             -      6    0.0%",
    ]


def test_rows_have_a_style_and_more_text():
    head, *rows = table(
        ROWS, COLUMNS[:1], style=lambda row: "red" if row["time"] else "", rest=lambda _: [("##", "green")]
    )
    assert head == [("Call    ", "bold")]
    assert rows == [[("solve   ", "red"), ("##", "green")], [("io      ", ""), ("##", "green")]]


@pytest.mark.parametrize("as_json", [False, True])
def test_an_answer_is_told_in_either_form(capsys, as_json):
    asked = []

    def lines(screen):
        asked.append(screen)
        return table(ROWS, COLUMNS[:2])

    assert tell(Answer({"rows": ROWS}, lines, 1), as_json=as_json) == 1
    printed = capsys.readouterr().out
    if as_json:
        assert json.loads(printed) == {"rows": ROWS}
        assert not asked
    else:
        assert printed.splitlines() == ["Call        time", "solve     250 ms", "io             -"]
        assert isinstance(asked[0], Screen)
