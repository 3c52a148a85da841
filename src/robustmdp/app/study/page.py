"""The page: what a person wants to know, in the order of asking."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robustmdp import __version__
from robustmdp.app.page import Code, DataTable, Distribution, Listing, Paragraph, Section
from robustmdp.app.page.blocks import Block
from robustmdp.app.study.advice import lead, recommendation
from robustmdp.app.study.explorer import explorers
from robustmdp.app.study.names import Names
from robustmdp.app.study.nature import rows_of
from robustmdp.app.study.numbers import interval, short
from robustmdp.app.study.policies import policy_grid, policy_table
from robustmdp.app.study.study import Study, trusts
from robustmdp.app.study.trials import stress_test

_MOST_ROWS = 20
_PICTURED = 4
_SMALL = 1e-3  # below, values come near the tolerance of the solves
_YARDSTICK = (
    "This is a yardstick rather than a forecast: nature hits all states at once. How the policy does in other "
    "worlds is shown by the stress test below."
)


def sections_of(study: Study, names: Names, told: Sequence[tuple[str, str]], code: str) -> tuple[str, list[Section]]:
    """The lead and the sections; `told` is what the user said of the problem."""
    sections = [
        Section("The problem", (*_problem(study, names, told), *_policies(study, names))),
        Section("The recommendation", recommendation(study)),
        Section("What robustness costs and buys", explorers(study, names)),
        Section("When the world is not the model", stress_test(study)),
        Section("Where robustness changes the decision", _decisions(study, names)),
        Section("What is certain, and what is not", (_certain(study),)),
        Section("The same from Python", (Paragraph("This program repeats the main steps."), Code(code))),
    ]
    return lead(study), sections


def _problem(study: Study, names: Names, told: Sequence[tuple[str, str]]) -> tuple[Block, ...]:
    mdp = study.mdp
    later = f"each step later counting {mdp.discount:g} times as much" if mdp.discount else "of the first step alone"
    facts = [
        *told,
        ("states", f"{mdp.n_states:,}"),
        ("actions", f"{mdp.n_actions:,} ({mdp.n_pairs:,} pairs of a state and an action)"),
        ("transitions", f"{mdp.nnz:,}" + (", some end the episode" if mdp.can_end else "")),
        ("rewards", " to ".join(f"{reward + 0.0:g}" for reward in mdp.reward_range)),
        ("discount", f"{mdp.discount:g}"),
        ("start", names.start(study.start)),
        _measure(study),
        ("robustmdp", __version__),
    ]
    value = f"The value of a state is what a policy earns from there on: the sum of rewards, {later}."
    return Listing(tuple(facts)), Paragraph(value), *_cautions(study)


def _measure(study: Study) -> tuple[str, str]:
    if study.function is None:
        return "errors measured in", f"{study.divergence.name} divergence, D(truth || model)"
    first, last = (study.sweep.points[place].ambiguity.label for place in (0, -1))
    return "sets that were tried", f"{first} to {last}"


def _cautions(study: Study) -> list[Paragraph]:
    """What makes the numbers below say less than they seem to."""
    small = float(np.abs(study.trusting.value).max())
    found = []
    if 0.0 < small < _SMALL:
        found.append(
            f"Values are at most {short(small)}, and errors are certified to 1e-06: smaller differences do not show. "
            "Multiply the rewards, by 1,000 say, to see them."
        )
    if study.mdp.discount == 0.0:
        found.append(
            "At discount 0 a penalty costs nature nothing: every λ means the same, the least of what can come."
        )
    return [Paragraph(text) for text in found]


def _policies(study: Study, names: Names) -> tuple[Block, ...]:
    """Both policies: as grids, where states are places; one is enough where they are the same."""
    changed = set(study.changed.tolist())
    if names.layout is None:
        return (policy_table(study, names, study.robust, changed, f"The {_which(study)} and its worst case"),)
    alone = "The policy that trusts the model and its value if that is right"
    trusting = policy_grid(names, study.trusting, set(), alone)
    if not changed:
        return (trusting, Paragraph("The robust policy is the same."))
    guarding = f"The {_which(study)} and its value in the worst case"
    return (trusting, policy_grid(names, study.robust, changed, guarding, caption=_YARDSTICK))


def _which(study: Study) -> str:
    if not trusts(study.suggestion.ambiguity):
        return "recommended policy"
    knee = ", the knee of the curve" if study.sweep.curve.notes["knee"] >= 0 else ""
    return f"robust policy ({study.sweep.said(study.sweep.knee)}{knee})"


def _decisions(study: Study, names: Names) -> tuple[Block, ...]:
    """The states whose action changes, by what the trusting action would lose there, and the pull behind it."""
    robust, states, which = study.robust, study.changed, _which(study)
    if not len(states):
        return (Paragraph(f"Nowhere: the {which} decides as the trusting one does, but where actions are as good."),)
    lost = study.lost(study.trusting.policy)[states]
    place = np.argsort(-lost, kind="stable")[:_MOST_ROWS]
    order, gains = states[place], lost[place].tolist()
    kept, given_up = (
        rows_of(study.mdp, study.doubt, robust.value, order, policy)
        for policy in (robust.policy, study.trusting.policy)
    )
    body = tuple(
        (names.state(new.state), names.action(old.action), names.choice(robust.policy, new.state),
         gain, names.pull(old), names.pull(new))
        for old, new, gain in zip(given_up, kept, gains, strict=True)
    )  # fmt: skip
    header = ("state", "trusting", "robust", "gain in the worst case", "nature moves, if trusting", "… if robust")
    count = f"{len(states):,} of {study.mdp.n_states:,} states" if len(states) > 1 else "1 state"
    more = "" if len(order) == len(states) else f", the {len(order)} with most to gain"
    why = Paragraph(
        f"Where the {which} does something certainly better than the one that trusts the model. A decision changes "
        "where nature can hurt the trusting action more than another. “25 % from A to B” means that nature moves a "
        "chance of 25 %, most of it away from A, most of it to B."
    )
    bars = Paragraph("The trusting actions that nature bends most: the model's chances, and nature's.")
    pictures = sorted(given_up, key=lambda row: -row.moved)[:_PICTURED]
    return (
        why,
        DataTable(header, body, f"A better action in {count}{more}"),
        bars,
        *(Distribution(names.pair(row), names.outcomes(row)) for row in pictures),
    )


def _certain(study: Study) -> Listing:
    solution, trusted = study.suggestion.solution, trusts(study.suggestion.ambiguity)
    worst, best = (float(study.start @ bound) for bound in (solution.lower, solution.upper))
    when = "if the model is right" if trusted else "in the worst case at this level"
    error = max(float(sweep.curve["error_bound"].max()) for sweep in study.sweeps)
    possible = float(study.start @ study.trusting.value)
    tried = study.suggestion.comparison is not None
    unknown = "which worlds are likely" if tried else "how far the truth is from the model"
    return Listing(
        (
            ("proved", f"{when}, the recommended policy earns between {interval(worst, best)} from the start"),
            ("proved", f"the best possible, if the model is right, is {short(possible)}, within "
             f"{study.trusting.error_bound:.1g}"),
            ("proved", f"every worst case on a curve is known to within {error:.1g}"),
            ("computed", "each value in the stress test is exact to 1e-10 of the largest value in its world"),
            ("not proved", f"the worlds of the stress test are samples; {unknown}, no calculation can say"),
            ("how the solve ended", str(solution.status)),
        )
    )  # fmt: skip
