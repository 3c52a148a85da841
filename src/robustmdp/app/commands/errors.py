"""From the library's errors to sentences for the command line."""

from __future__ import annotations

import re

# What the sentences say to programs, as one types it.
_OPTIONS = (
    (r"columns=\{'(\w+)': '([^']*)'\}", r"--column \1=\2"),
    (r"^columns must say", "--column must say"),
    (r"^a key of columns", "the NAME of --column"),
    (r"\{'(\w+)': '([^']*)'\}", r"\1=\2"),
    (r"\{'(\w+)': None\}", r"\1="),
    (r"as in read\(.*, discount=([\d.]+)\)", r"as in --discount \1"),
    (r"but Trajectory only goes its way", "but a log only goes its way"),
    # A published table is used without being asked for, so that it is no way out here.
    (r"use MarkovianQLearning, or MDP\.from_gymnasium .*$", "use --algorithm markovian"),
    (r"MarkovianQLearning learns without them", "`robustmdp learn --algorithm markovian` learns without them"),
    (r"must know the rewards: give reward_range=.*$", "must know the rewards: give --reward-range, as in 0..1"),
    (
        r"^reward_range must be \(smallest, largest\): got \(([^,]+), ([^,]+)\)$",
        r"--reward-range must rise: got \1..\2",
    ),
    (
        r"^reward_range must hold the MDP's rewards, (.*) to (.*): got .*$",
        r"--reward-range must hold the rewards, \1..\2",
    ),
    (r"^reward must lie in reward_range \[([^,]+), ([^,]+)\]", r"rewards must lie in --reward-range \1..\2"),
    (r"^share must lie between", "--certify-share must lie between"),
    (
        r"; lower it, or give a criterion: .*$",
        "; give a lower --discount, or solve with --horizon STEPS, --total or --average",
    ),
    (r"FiniteHorizon is solved backwards, without a solver: got .*$", "--horizon must come without --solver"),
    (
        r"^the solver must be ValueIteration\(\) or PolicyIteration\(\): got .*$",
        "--total and --average must come with --solver auto, value-iteration or policy-iteration",
    ),
    (r"; use rm\.read_interval$", "; see robustmdp solve --help"),
    (r"^confidence must lie", "--confidence must lie"),
    (r"^a certificate needs a learner with .*$", "--confidence must come with --algorithm generative or markovian"),
    (r"^multilevel Q-learning is for (.*): got .*$", r"--algorithm mlmc is for \1: give --divergence kl and --radius"),
)


def sentence(problem: BaseException) -> str:
    """An error, with the options that mend it instead of arguments.

    >>> sentence(ValueError("discount must be given: a.csv holds none, as in read('a.csv', discount=0.95)"))
    'discount must be given: a.csv holds none, as in --discount 0.95'
    """
    if isinstance(problem, OSError) and problem.strerror and problem.filename is not None:
        return f"{problem.filename}: {problem.strerror.lower()}"
    said = str(problem)
    if isinstance(problem, MemoryError):
        return f"there is not enough memory for this{': ' if said else ''}{said}"
    for pattern, words in _OPTIONS:
        said = re.sub(pattern, words, said)
    return said
