"""The questions of docs/pytorch.md have answers, by the commands that it names."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from whywait.cli import main

from tests.results import SHARED, UNRECORDED

CASES = SHARED / "kineto"
if not CASES.is_dir():
    pytest.skip(UNRECORDED, allow_module_level=True)

# Of each command, a run and what of its truth the answer says.
TRUTHS = {
    "whywait analyze training/": ("late_loader", "would be 75.0 ms (45%) shorter"),
    "whywait findings training/": ("gloo_window", "compute takes longer on another rank each time"),
    "whywait explain training/ --rank 3 --step 12": ("late_loader", "rank 2 spent 30.0 ms here, rank 3 5.00 ms"),
    "whywait delay training/": ("gloo_fsdp", "SlowBackward"),
    "whywait messages training/": ("chain", "tp1 (2-3)                        6    45.0 ms        0 s    6.00 ms"),
    "whywait gpu training/": ("overlap", "60.0 ms     30.0 ms       50.0%"),
    "whywait iterations training/": ("chain", "54.0%   rank 3"),
    "whywait whatif training/ --ideal workers": ("straggler_stage", "Repairing the last stage (ranks 6, 7) recovers"),
    "whywait whatif training/ --scale 'aten::stack@2=0.5'": ("late_loader", "45.0 ms saved"),
    "whywait advise training/": ("late_loader", "75.0 ms"),
    "whywait diff before/ after/": ("overlap", "Went: Rank 2 makes the other 3 GPUs wait 25.0 ms"),
    "whywait info training/": ("missing_rank", "3 of 4; no trace of 2"),
    "whywait clocks training/": ("clocks", "corrected by lines: none is left"),
    "whywait export perfetto training/ -o run.pftrace": ("late_loader", "wait states"),
    "whywait analyze training/ --comm-kernels 'my_reduce=all_reduce'": ("late_loader", "Rank 2 makes"),
}
PAGE = (Path(__file__).parents[1] / "docs" / "pytorch.md").read_text(encoding="utf-8")
COMMANDS = list(dict.fromkeys(re.findall(r"^\| .*? \| `(whywait [^`]*)` \|", PAGE, re.MULTILINE)))


def test_each_question_has_a_command():
    assert [command for command in COMMANDS if "hang" not in command] == list(TRUTHS)


@pytest.mark.parametrize("command", TRUTHS)
def test_the_command_has_the_answer(command, tmp_path, monkeypatch, capsys):
    case, words = TRUTHS[command]
    monkeypatch.chdir(tmp_path)
    paths = {"training/": case, "before/": "late_loader", "after/": case}
    _, *arguments = [str(CASES / paths[word] / "traces") if word in paths else word for word in shlex.split(command)]
    assert main(arguments) == 0
    assert words in " ".join(capsys.readouterr().out.split("\n")), arguments
