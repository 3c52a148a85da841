"""Files in the dialects of craam, PRISM and Storm open here, and ours open there."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import robustmdp as rm
from robustmdp.io import read

WANTED = rm.MDP.from_rows(
    state=[0, 0, 0, 1, 2],
    action=[0, 0, 1, 0, 0],
    next_state=[1, 2, 0, 0, 2],
    probability=[0.5, 0.5, 1, 1, 1],
    reward=[3, 3, 1.5, 2, 0],
    discount=0.9,
)


def put(folder: Path, **files: str) -> Path:
    """Write `model.x` for each x, and return the first."""
    for extension, text in files.items():
        (folder / f"model.{extension}").write_text(text)
    return folder / f"model.{next(iter(files))}"


CRAAM = """\
idstatefrom,idaction,idoutcome,idstateto,probability,reward
0,0,0,1,0.5,3.0
0,0,0,2,0.5,3.0
0,1,0,0,1.0,1.5
1,0,0,0,1.0,2.0
2,0,0,2,1.0,0.0
"""


def test_craam(tmp_path: Path) -> None:
    assert read(put(tmp_path, csv=CRAAM), 0.9) == WANTED
    assert read(put(tmp_path, csv=CRAAM.replace("\n", "\r\n")), 0.9) == WANTED
    terminal = "\n".join(line for line in CRAAM.splitlines() if not line.startswith("2"))
    with pytest.warns(
        UserWarning, match=r"^model.csv has 1 state that is reached but never left: given one action that"
    ):
        assert read(put(tmp_path, csv=terminal), 0.9) == WANTED


PRISM_47 = {
    "tra": "3 4 5\n0 0 1 0.5\n0 0 2 0.5\n0 1 0 1\n1 0 0 1\n2 0 2 1\n",
    "lab": '0="init" 1="deadlock" 2="goal"\n0: 0\n2: 1 2\n',
    "srew": "3 2\n0 1\n1 2\n",
    "trew": "3 4 3\n0 0 1 2\n0 0 2 2\n0 1 0 0.5\n",
}
PRISM_48 = {
    "tra": "3 4 5\n0 0 1 0.5 go\n0 0 2 0.5 go\n0 1 0 1 wait\n1 0 0 1 go\n2 0 2 1\n",
    "sta": "(x,done)\n0:(0,false)\n1:(1,false)\n2:(1,true)\n",
    "lab": PRISM_47["lab"],
    "srew": '# Reward structure "cost"\n# State rewards\n' + PRISM_47["srew"],
    "trew": '# Reward structure "cost"\n# Transition rewards\n3 4 99\n0 0 1 2\n0 0 2 2\n0 1 0 0.5\n',
}


LABELLED = WANTED.with_initial(0).with_labels({"deadlock": [False, False, True], "goal": [False, False, True]})


def test_prism_47(tmp_path: Path) -> None:
    assert read(put(tmp_path, **PRISM_47), 0.9) == LABELLED


def test_prism_48(tmp_path: Path) -> None:
    world = read(put(tmp_path, **PRISM_48), 0.9)
    assert world.state_names == ("x=0,done=false", "x=1,done=false", "x=1,done=true")
    assert world.action_names == ("go", "wait", "choice 0")
    assert world.actions.tolist() == [0, 1, 0, 2]  # the same label is the same action
    for name in ("indptr", "indices", "probabilities", "rewards"):
        assert np.array_equal(getattr(world, name), getattr(WANTED, name))


def test_prism_comments_fractions_and_several_reward_structures(tmp_path: Path) -> None:
    files = {**PRISM_47, "tra": "# Transitions (MDP)\n" + PRISM_47["tra"].replace("0.5", "1/2")}
    path = put(tmp_path, **files)
    for kind in (".srew", ".trew"):
        path.with_suffix(kind).rename(path.with_name(f"model1{kind}"))
    assert read(path, 0.9) == LABELLED


@pytest.mark.parametrize("label", ["go", "a b"])
def test_labels_that_do_not_tell_choices_apart_are_left_out(tmp_path: Path, label: str) -> None:
    tra = "3 4 5\n" + "".join(f"{line} go\n" for line in PRISM_47["tra"].splitlines()[1:])
    if label == "go":
        assert read(put(tmp_path, **{**PRISM_47, "tra": tra}), 0.9) == LABELLED
    else:
        with pytest.raises(ValueError, match=r"^a line must have 4 fields: got 6 at line 2 of model.tra$"):
            read(put(tmp_path, tra=tra.replace("go", label)), 0.9)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"tra": "3 5\n0 1 1\n"},
            "model.tra must start with the numbers of states, choices and transitions, as those of",
        ),
        ({"tra": "dtmc\n0 1 1\n"}, "model.tra must hold an MDP: it says 'dtmc'"),
        (
            {"tra": "3 4 6\n" + PRISM_47["tra"][6:]},
            "model.tra must hold the 6 transitions that its first line tells of: it",
        ),
        (
            {"tra": "3 5 5\n" + PRISM_47["tra"][6:]},
            "model.tra must hold the 5 choices that its first line tells of: it has 4",
        ),
        (
            {"tra": "2 4 5\n" + PRISM_47["tra"][6:]},
            "the states of model.tra must lie in 0..1, as it says itself: got 2 at",
        ),
        (
            {"tra": "2000000000 4 5\n" + PRISM_47["tra"][6:]},
            "every state must have an action or be reached: model.tra has",
        ),
        (
            {"tra": "1000000000000 4 5\n" + PRISM_47["tra"][6:]},
            "the number of states must be a whole number in 0..21474",
        ),
        (
            {"tra": "3 4 5\n0 0 x 1\n"},
            "next state (field 3) must be a whole number in 0..2147483646: got 'x' at line 2 of",
        ),
        ({"tra": "3 4 5\n0 0 1 p\n"}, "probability (field 4) must be a number: got 'p' at line 2 of model.tra"),
        (
            {"tra": "3 4 5\n0 0 1 [0.4,0.9]\n"},
            "model.tra must hold numbers: it has intervals, as at line 2 of model.tra; use rm.read_interval",
        ),
        ({"tra": "3 4 5\n0 0 1 1/0\n"}, "probability (field 4) must be a number: got '1/0' at line 2 of model.tra"),
        (
            {"tra": PRISM_47["tra"].replace("0.5", "0.7")},
            "the probabilities of state 0 and action 0 must sum to 1: got 1.4",
        ),
        ({"trew": "0 0 1 2\n"}, "model.trew must start with 3 counts: got 4 at line 1 of model.trew"),
        ({"trew": "3 4 1\n0 1 1 2\n"}, "a reward must belong to what there is: that at line 2 of model.trew does not"),
        ({"trew": "3 4 1\n0 1 0 2\n0 1 0 2\n"}, "a reward must be given once: that at line 3 of model.trew does not"),
        ({"srew": "3 2\n0 1\n0 2\n"}, "a reward must be given once: that at line 3 of model.srew does not"),
        ({"srew": "3 1\n7 1\n"}, "a reward must belong to what there is: that at line 2 of model.srew does not"),
        ({"srew": "3 1\n1 nan\n"}, "reward must be finite: got nan at line 5 of model.tra"),
        ({"sta": "(x)\n0:(0)\n"}, "model.sta must hold 3 states: it has 1"),
        ({"sta": "(x)\n0:(0,1)\n"}, "a state must have 1 values: got 2 at line 2 of model.sta"),
        ({"sta": "(x)\n1:(0)\n"}, "state 0 must come next: got '1:(0)' at line 2 of model.sta"),
        ({"sta": "x\n"}, "values must stand in brackets: got 'x' at line 1 of model.sta"),
        ({"sta": "(x)\n0:(5)\n1:(5)\n2:(6)\n"}, "state_names must all differ: 'x=5' came twice"),
    ],
)
def test_refusals_of_prism_files(tmp_path: Path, change: dict[str, str], sentence: str) -> None:
    path = put(tmp_path, **{**PRISM_47, **change})
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        read(path, 0.9)


DRN = """\
// Exported by storm
// Original model type: MDP
@type: MDP
@value_type: double
@parameters

@reward_models
cost other\x20
@nr_states
3
@nr_choices
4
@model
state 0 [1, 7] init "two words"
//[x=0	& done=false]
	action 0 [2, 7]
		1 : 0.5
		2 : 0.5
	action 1 [0.5, 7]
		0 : 1
state 1 [2, 7]
	action 0 [0, 7]
		0 : 1
state 2 [0, 0] done
	action 0 [0, 0]
		2 : 1
"""


def test_storm(tmp_path: Path) -> None:
    wanted = WANTED.with_initial(0).with_labels({"two words": [True, False, False], "done": [False, False, True]})
    assert read(put(tmp_path, drn=DRN), 0.9) == wanted
    older = DRN.replace("@value_type: double\n", "").replace("0.5\n", "1/2\n").replace(" [0, 0] done", " done")
    assert read(put(tmp_path, drn=older), 0.9) == wanted
    held = DRN.replace("@reward_models", "@placeholders\n$0 : 1/2\n$1 : 3\n@reward_models").replace(": 0.5", ": $0")
    assert read(put(tmp_path, drn=held), 0.9) == wanted
    bare = re.sub(r" \[[^\]]*\]", "", DRN)
    assert not read(put(tmp_path, drn=bare), 0.9).rewards.any()


def test_the_labels_of_storm_name_actions(tmp_path: Path) -> None:
    text = (
        DRN.replace("action 0 [2", "action go [2").replace("action 1", "action wait").replace("action 0", "action go")
    )
    world = read(put(tmp_path, drn=text.replace("go [0, 0]", "__NOLABEL__ [0, 0]")), 0.9)
    assert world.action_names == ("go", "wait", "choice 0")
    assert world.actions.tolist() == [0, 1, 0, 2]


def test_prism_writes_empty_brackets(tmp_path: Path) -> None:
    text = re.sub(r"( \[[^\]]*\])", lambda match: " []" if "," in match[1] else match[1], DRN)
    assert not read(put(tmp_path, drn=text), 0.9).rewards.any()


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("@type: MDP", "@type: POMDP", "model.drn must hold an MDP: it says 'POMDP' at line 3 of model.drn"),
        ("double", "parametric", "model.drn must hold numbers: its values are 'parametric' at line 4 of model.drn"),
        ("double", "double-interval", "model.drn must hold numbers: it has intervals, as at line 4 of model.drn; use"),
        ("@parameters", "@placeholders\n$0 : [0, 1]", "model.drn must hold numbers: it has intervals, as at line 6 of"),
        ("@parameters", "@placeholders\n1 : 0.5", "a placeholder must be named as in $0: got '1' at line 6 of"),
        ("@parameters\n", "@parameters\np q", "model.drn must have no parameters: got 'p q' at line 6 of model.drn"),
        (
            "@nr_states\n3",
            "@nr_states\n1000000000",
            "model.drn must hold the 1000000000 states that it tells of: it has 3",
        ),
        ("@nr_choices\n4", "@nr_choices\n5", "model.drn must hold the 5 choices that it tells of: it has 4"),
        ("@nr_states\n3\n", "", "model.drn must tell the number of states: it has no @nr_states"),
        (
            "@model",
            "@modle",
            "'@modle' must be a section of a DRN file, such as @model: got it at line 13 of model.drn",
        ),
        (
            "@model\n",
            "",
            "a line @model must come first: got 'state 0 [1, 7] init \"two words\"' at line 13 of model.drn",
        ),
        ("@type: MDP\n", "", "model.drn must start with @type: MDP: got '@value_type: double' at line 3 of model.drn"),
        ("1 : 0.5", "1 : [0.4, 0.9]", "model.drn must hold numbers: it has intervals, as at line 17 of model.drn; use"),
        ("1 : 0.5", "1 : p", "probability must be a number: got 'p' at line 17 of model.drn"),
        ("1 : 0.5", "1 : $7", "probability must be a number: got '$7' at line 17 of model.drn"),
        ("1 : 0.5", "1 = 0.5", "a transition must be written as 1 : 0.5: got '1 = 0.5' at line 17 of model.drn"),
        ("1 : 0.5", "-1 : 0.5", "next state must be a whole number in 0..2147483646: got '-1' at line 17 of model.drn"),
        ("1 : 0.5", "9 : 0.5", "the states of model.drn must lie in 0..2, as it says itself: got 9 at line 17 of"),
        (
            "1 : 0.5",
            "1 : 0.6",
            "the probabilities of state 0 and action 0 must sum to 1: got 1.1 at line 17 of model.drn",
        ),
        ("state 1", "state 2", "state 1 must come next: got 2 at line 21 of model.drn"),
        ("state 0 [1, 7]", "state 0 [x, 7]", "reward must be a number: got 'x' at line 14 of model.drn"),
        (
            "state 0 [1, 7]",
            "state 0 [1, 7",
            "rewards must stand in brackets: got '[1, 7 init \"two words\"' at line 14 of",
        ),
        ("\taction 0 [2, 7]\n", "", "a state and an action must come first: got '1 : 0.5' at line 16 of model.drn"),
    ],
)
def test_refusals_of_storm_files(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    assert old in DRN
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
        read(put(tmp_path, drn=DRN.replace(old, new, 1)), 0.9)


def test_a_model_that_ends_early(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^model.drn must have a line @model: it ended before$"):
        read(put(tmp_path, drn=DRN[: DRN.index("@model")]), 0.9)
