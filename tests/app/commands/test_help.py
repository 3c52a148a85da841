"""Help that fits on a screen, examples that can be typed, completion in three shells."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from typing import Any

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from robustmdp.app.commands import main
from robustmdp.app.commands.options import DIVERGENCES, PROBLEMS

COMMANDS = list(main.commands)


def help_of(*words: str) -> str:
    outcome = CliRunner().invoke(main, [*words, "--help"], terminal_width=80)
    assert outcome.exit_code == 0
    return outcome.output


def examples(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if re.match(r"\s+robustmdp \w", line)]


@pytest.mark.parametrize("words", [(), *((command,) for command in COMMANDS)], ids=" ".join)
def test_it_fits_on_a_screen_and_has_an_example(words: tuple[str, ...]) -> None:
    text = help_of(*words)
    assert len(text.splitlines()) <= 40
    assert "\\b" not in text
    found = examples(text)
    assert found
    wrapped = [line for line in text.splitlines() if line.strip() not in found]
    assert max(map(len, wrapped)) <= 80


def test_commands_stand_in_the_order_of_use() -> None:
    text = help_of()
    places = [text.index(f"\n  {command} ") for command in COMMANDS]
    assert places == sorted(places)
    assert COMMANDS[0] == "analyse"
    for code in ("0 done", "1 bad input", "2 wrong usage", "3 not converged", "130"):
        assert code in " ".join(text.split())


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_are_understood(command: str) -> None:
    """Every option and every word of every example; what it runs is tested elsewhere."""
    for example in examples(help_of(command)):
        _, name, *rest = shlex.split(example.split(" >> ")[0])
        assert name == command
        main.commands[name].make_context(name, rest)


@pytest.mark.parametrize("command", [command for command in COMMANDS if command != "completion"])
def test_every_command_speaks_json_and_can_be_quiet(command: str) -> None:
    assert {"as_json", "quiet"} <= {parameter.name for parameter in main.commands[command].params}


# Completion.


def completed(begun: str, *before: str) -> list[Any]:
    items = ShellComplete(main, {}, "robustmdp", "_ROBUSTMDP_COMPLETE").get_completions(list(before), begun)
    return [item.value for item in items]


def test_commands_and_options_are_completed() -> None:
    assert completed("su") == ["suggest"]
    assert completed("") == COMMANDS
    assert completed("--div", "curve", "chain") == ["--divergence"]
    assert completed("ba", "completion") == ["bash"]


@pytest.mark.parametrize("command", ["analyse", "solve", "suggest", "curve", "stress", "match", "learn", "convert"])
def test_problems_are_completed(command: str) -> None:
    assert completed("", command) == list(PROBLEMS)
    assert completed("ri", command) == ["river-swim"]
    assert completed("g", command) == ["garnet:SxAxK", "grid:N", "gym:ID"]


def test_what_is_no_problem_may_be_a_file() -> None:
    (item,) = ShellComplete(main, {}, "robustmdp", "X").get_completions(["solve"], "./mod")
    assert (item.type, item.value) == ("file", "./mod")


def test_divergences_are_completed() -> None:
    assert completed("", "suggest", "chain", "--divergence") == list(DIVERGENCES)
    assert completed("K", "suggest", "chain", "--divergence") == ["kl"]
    assert completed("c", "solve", "chain", "--divergence") == ["chi2", "cr:K"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_for_shells(shell: str) -> None:
    script = CliRunner().invoke(main, ["completion", shell])
    assert script.exit_code == 0
    assert f"_ROBUSTMDP_COMPLETE={shell}_complete" in script.output
    assert "robustmdp" in script.output
    if shell == "bash":
        subprocess.run(["bash", "-n"], input=script.output, text=True, check=True, timeout=60)


def test_a_shell_is_answered_without_the_heavy_parts() -> None:
    """A completion that takes seconds is none."""
    code = (
        "import sys; sys.argv[0] = 'robustmdp'; from robustmdp.app.commands import main\n"
        "try: main()\n"
        "except SystemExit: print(sorted({'numpy', 'numba', 'scipy'} & set(sys.modules)))"
    )
    words = {"_ROBUSTMDP_COMPLETE": "bash_complete", "COMP_WORDS": "robustmdp solve mach", "COMP_CWORD": "2"}
    outcome = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **words}, capture_output=True, text=True, timeout=60
    )
    assert outcome.stdout.splitlines() == ["plain,machine-replacement", "[]"]


@pytest.mark.parametrize("words", [["--help"], ["analyse", "--help"], ["--version"]], ids=" ".join)
def test_help_imports_neither_numpy_nor_numba(words: list[str]) -> None:
    code = (
        f"import sys; from robustmdp.app.commands import main; main({words!r}, standalone_mode=False)\n"
        "print(sorted({'numpy', 'numba', 'scipy', 'rich', 'plotly', 'gymnasium'} & set(sys.modules)))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60).stdout
    assert said.splitlines()[-1] == "[]"
