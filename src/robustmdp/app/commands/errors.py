"""From the library's errors to sentences for the command line: arguments become options, and advice is what to type."""

from __future__ import annotations

from collections.abc import Collection

# What to do about an error, by its argument, where the library's advice speaks to programs.
_ADVICE = {
    "columns": ": terminated=done if it marks true endings only, terminated= to leave it out",
    "criterion": "; give a lower --discount, or solve with --horizon STEPS, --total or --average",
    "discount": "; give one as in --discount 0.95",
    "environment": "; `robustmdp learn --algorithm markovian` learns without them",
    "header": "; is it --column {name}={own}?",
    "intervals": "; see robustmdp solve --help",
    "learner": ": use --algorithm markovian",
    "rewards": ": give --reward-range, as in 0..1",
}
_SINGULAR = {"columns": "column"}  # options that may be repeated


def sentence(problem: BaseException, options: Collection[str] = ()) -> str:
    """An error, with the option of the command instead of the argument, and advice for the command line.

    >>> from robustmdp import read
    >>> try:
    ...     read("gym:FrozenLake-v1")
    ... except ValueError as problem:
    ...     sentence(problem, ["discount"])
    '--discount must be given: an environment has none; give one as in --discount 0.95'
    """
    if isinstance(problem, OSError) and problem.strerror and problem.filename is not None:
        return f"{problem.filename}: {problem.strerror.lower()}"
    text = str(problem)
    if isinstance(problem, MemoryError):
        return f"there is not enough memory for this{': ' if text else ''}{text}"
    argument, advice = getattr(problem, "argument", ""), getattr(problem, "advice", "")
    if advice and argument in _ADVICE:
        text = text.removesuffix(advice) + _ADVICE[argument].format(**vars(problem)["values"])
    option = _SINGULAR.get(argument, argument)
    if option in options:
        text = text.replace(argument, f"--{option.replace('_', '-')}", 1)
    return text
