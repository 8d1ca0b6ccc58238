"""What a verb answers as text and as JSON."""

import json

import pytest
from whywait.commands.answers import Answer, Column, Screen, table, tell

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


def plain(lines):
    return ["".join(text for text, _ in line) for line in lines]


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
