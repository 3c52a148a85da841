"""From words to sets: what --set means, and the options beside it."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import robustmdp as rm
from robustmdp import _checks, _plugins
from robustmdp.app.commands.options import DIVERGENCES, SETS, was_typed
from robustmdp.app.commands.words import parse_states

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from robustmdp.ambiguity import Ambiguity
    from robustmdp.divergences import FDivergence

_LEVELS = ("weight", "radius", "level", "share", "aversion")  # options that hold numbers
_CURVE_LEVELS = 50
_SHARED = ("penalty", "ball", "l1", "l2")  # sets whose level the actions of a state can share


@dataclasses.dataclass(frozen=True)
class _Kind:
    """A set's class and options: that of its level, an example of it, others that it takes; `span` is for curves."""

    form: str
    level: str
    example: str
    takes: tuple[str, ...] = ()
    span: tuple[float, float] | None = None


_KINDS = {
    "penalty": _Kind("Penalized", "weight", "--weight 1", ("divergence",)),
    "ball": _Kind("Constrained", "radius", "--radius 0.1", ("divergence",)),
    "l1": _Kind("L1", "radius", "--radius 0.1", ("support",), (1e-3, 2.0)),
    "l2": _Kind("L2", "radius", "--radius 0.1", ("support",), (1e-3, 1.5)),
    "linf": _Kind("LInf", "radius", "--radius 0.1", ("support",), (1e-3, 1.0)),
    "contamination": _Kind("Contamination", "share", "--share 0.1", ("support",), (1e-3, 1.0)),
    "cvar": _Kind("CVaR", "level", "--level 0.2", ("share",), (1.0, 1e-2)),
    "evar": _Kind("EVaR", "level", "--level 0.2", ("share",), (1.0, 1e-2)),
    "entropic": _Kind("EntropicRisk", "aversion", "--aversion 1", ("share",)),
    "interval": _Kind("Interval", "level", "--level 1", (), (1e-2, 1.0)),
    "wasserstein": _Kind("Wasserstein", "radius", "--radius 0.1 --distance FILE", ("support", "distance")),
}
_OF_PACKAGES = _Kind("", "level", "--level 0.1")


@dataclasses.dataclass(frozen=True)
class SetChoice:
    """What was typed, checked as far as that is possible without the model.

    Attributes
    ----------
    name : one of SETS, or the name that a package adds; None where no set was asked for
    levels : as they were typed, perhaps none
    share : of a risk measure, where a mixture with the mean was asked for
    support : "all", "model" or states with commas between them
    distance : the file of a Wasserstein ball's distances
    is_shared : whether the actions of a state share the level
    divergence_word : the divergence as it was typed
    """

    name: str | None
    divergence: FDivergence
    divergence_word: str
    levels: tuple[float, ...] = ()
    share: float | None = None
    support: str | None = None
    is_optimistic: bool = False
    distance: str | None = None
    is_shared: bool = False

    def at(self, level: float, mdp: rm.MDP, bounds: rm.Interval | None = None) -> Ambiguity:
        """The set of that level; `bounds` are the intervals of the model's file, if it has any."""
        found = self._plain(level, mdp, bounds)
        if self.share is not None:
            found = rm.MeanRisk(self.share, found)
        if self.is_shared:
            found = rm.SRectangular(found)
        return rm.Optimistic(found) if self.is_optimistic else found

    def _plain(self, level: float, mdp: rm.MDP, bounds: rm.Interval | None) -> Ambiguity:
        from robustmdp.ambiguity import check_ambiguity, is_set

        if self.name == "interval":
            return _scaled(bounds, mdp, level)
        assert self.name is not None
        if (point := _added(self.name)) is not None:
            return check_ambiguity(_plugins.build("set", point, "return a set", is_set, level))
        form = getattr(rm, _KINDS[self.name].form)
        if self.has_divergence:
            return form(self.divergence, level)  # type: ignore[no-any-return]
        settings: dict[str, Any] = {}
        if self.support is not None:
            settings["support"] = parse_states(mdp, self.support, "--support", ("all", "model"))
        if self.distance is not None:
            settings["distance"] = rm.read_distance(self.distance)
        return form(**settings, **{form.level_name: level})  # type: ignore[no-any-return]

    def arguments(self, mdp: rm.MDP, bounds: rm.Interval | None, threads: int | None) -> dict[str, Any]:
        """For `suggest` and `analyse`: a divergence, or a function and its levels."""
        if self.is_divergence:
            return {"divergence": self.divergence}
        levels = self.curve_levels(mdp, threads)
        return {"divergence": lambda level: self.at(level, mdp, bounds), "levels": levels}

    @property
    def code(self) -> list[str]:
        """Python that says the same, but for intervals, which a file has."""
        point = None if self.name is None else _added(self.name)
        if point is not None:
            return _plugins.code(point, "set_at")
        point = None if self.divergence.is_built_in else _plugins.find("divergence", self.divergence_word)
        own = [] if point is None else _plugins.code(point, "divergence")
        if self.is_divergence or self.name == "interval":
            return own
        support = "" if self.support is None else f", support={self._support_code()}"
        distance = "" if self.distance is None else f"rm.read_distance({self.distance!r}), "
        first = distance
        if self.has_divergence:
            first = "divergence, " if own else f"rm.{self.divergence!r}, "
        assert self.name is not None
        found = f"rm.{_KINDS[self.name].form}({first}level{support})"
        found = found if self.share is None else f"rm.MeanRisk({self.share!r}, {found})"
        found = f"rm.SRectangular({found})" if self.is_shared else found
        return [*own, f"set_at = lambda level: {found}"]

    def _support_code(self) -> str:
        assert self.support is not None
        parts = [part.strip() for part in self.support.split(",")]
        return f"[{', '.join(parts)}]" if all(part.isdigit() for part in parts) else repr(self.support)

    def words(self, level: float) -> str:
        """The options that ask for one set of this kind."""
        typed = f"--set {self.name} --{self.level_name} {level:.6g}"
        share = "" if self.share is None else f" --share {self.share:g}"
        divergence = f" --divergence {self.divergence_word}" if self.has_divergence else ""
        distance = "" if self.distance is None else f" --distance {shlex.quote(self.distance)}"
        support = "" if self.support is None else f" --support {self.support}"
        return f"{typed}{divergence}{share}{distance}{support}" + (" --rectangular s" if self.is_shared else "")

    @property
    def level_name(self) -> str:
        """What its level is: weight, radius, level, share or aversion."""
        return "weight" if self.name is None else _KINDS.get(self.name, _OF_PACKAGES).level

    @property
    def is_divergence(self) -> bool:
        """Whether it is one of the paper's sets, pair by pair, or none at all."""
        return self.name is None or (self.has_divergence and not self.is_shared)

    @property
    def has_divergence(self) -> bool:
        """Whether its level is measured in --divergence."""
        return self.name in ("penalty", "ball")

    def within(self, bounds: rm.Interval | None) -> SetChoice:
        """The intervals of a file where nothing else was asked for."""
        if self.name is not None or bounds is None:
            return self
        return dataclasses.replace(self, name="interval")

    def __str__(self) -> str:
        support = "" if self.support is None else f", support {self.support}"
        share = "" if self.share is None else f", a share of {self.share:g} beside the mean"
        return f"{'s-rectangular ' if self.is_shared else ''}{self.name}{support}{share}"

    def curve_levels(self, mdp: rm.MDP, threads: int | None) -> list[float]:
        """Those that were typed, or some from hardly robust to nearly the minimum over the successors."""
        import numpy as np

        assert self.name is not None
        if self.levels:
            return list(self.levels)
        if self.has_divergence:
            form: Any = getattr(rm, _KINDS[self.name].form)
            found = rm.levels_for(mdp, self.divergence, count=_CURVE_LEVELS, form=form, threads=threads)
            return found.tolist()  # type: ignore[no-any-return]
        _checks.must(self.name in _KINDS, f"--set {self.name} must come with --levels, from a package that has none")
        span = _KINDS[self.name].span
        if self.distance is not None:
            largest = self.at(1.0, mdp).largest_distance  # type: ignore[attr-defined]
            return (largest * np.geomspace(1e-3, 1.0, _CURVE_LEVELS)).tolist()  # type: ignore[no-any-return]
        if span is None:  # an aversion is the inverse of a weight, in the unit of the rewards
            weights: list[float] = (1.0 / rm.levels_for(mdp, rm.KL(), count=_CURVE_LEVELS, threads=threads)).tolist()
            return weights
        return np.geomspace(*span, _CURVE_LEVELS).tolist()  # type: ignore[no-any-return]


def check_known(options: Mapping[str, Any], command: str, known: Sequence[str], why: str) -> None:
    """Refuse a set with which a command can do nothing."""
    word = options["set_name"]
    if word is not None and word.lower() in SETS:
        listed = _listed([f"--set {name}" for name in known], "and")
        _checks.must(word.lower() in known, f"{command} knows {listed}, {why}: got --set {word}")


def parse_ambiguity(options: Mapping[str, Any]) -> Ambiguity:
    """The set that was asked for, of those that need no model to be built."""
    return build_set(parse_set(options), None)


def build_set(choice: SetChoice, mdp: rm.MDP | None, bounds: rm.Interval | None = None) -> Ambiguity:
    """The set that was asked for; without any, the intervals of the model's file, or the model itself."""
    choice = choice.within(bounds)
    if choice.name is None:
        example = "as in --set l1 --radius 0.1 --optimistic"
        _checks.must(not choice.is_optimistic, f"--optimistic must come with a set, {example}")
        return rm.Nominal()
    return choice.at(choice.levels[0] if choice.levels else 1.0, mdp, bounds)  # type: ignore[arg-type]


def parse_set(
    options: Mapping[str, Any],
    *,
    plural: Mapping[str, str] | None = None,
    needs_level: bool = True,
    typed_divergence: bool = True,
) -> SetChoice:
    """From the options of a command; `plural` says how it calls options of several levels.

    `typed_divergence` is False where --divergence says something of worlds as well, and goes with any set.
    """
    from robustmdp.divergences import divergence_named

    divergence = divergence_named(options["divergence"])
    spelled = {name: f"--{name}" for name in (*_LEVELS, "support", "distance", "divergence")} | dict(plural or {})
    typed = {}
    for level in _LEVELS:
        found = () if options.get(level) is None else options[level]
        typed[level] = tuple(found) if isinstance(found, (tuple, list)) else (found,)
    given = [name for name in _LEVELS if typed[name]]
    given += [option for option in ("support", "distance") if options.get(option) is not None]
    levels_of_divergence = [spelled[level] for level in ("weight", "radius") if level in options]
    name = _name_of(options.get("set_name"), given, spelled, levels_of_divergence)
    is_shared = _is_shared(options.get("rectangular"), name)
    choice = SetChoice(
        name,
        divergence,
        options["divergence"],
        support=options.get("support"),
        is_optimistic=bool(options.get("optimistic")),
        distance=options.get("distance"),
        is_shared=is_shared,
    )
    if name is None:
        return choice
    kind = _KINDS.get(name, _OF_PACKAGES)
    given += ["divergence"] if typed_divergence and was_typed("divergence") else []
    _check_options(name, kind, given, spelled)
    levels = typed[kind.level] or typed["level"]
    _checks.must(
        bool(levels) or not needs_level or name == "interval",  # whose width is known
        f"--set {name} must come with {spelled[kind.level]}, as in {kind.example}",
    )
    _checks.must("distance" not in kind.takes or "distance" in given, f"--set {name} must come with --distance, a file")
    share = typed["share"] if "share" in kind.takes else ()
    _checks.must(len(share) <= 1, f"--share must be one number for --set {name}: got {len(share)}")
    return dataclasses.replace(choice, levels=levels, share=share[0] if share else None)


def _is_shared(word: str | None, name: str | None) -> bool:
    """Whether --rectangular asks for one level for all actions of a state, which not every set can have."""
    if word is None or word.lower() == "sa":
        return False
    if word.lower() != "s":
        _checks.nearest("--rectangular", word, ("sa", "s"))
    fitting = _listed([f"--set {each}" for each in _SHARED], "or")
    came = "no set" if name is None else f"--set {name}"
    _checks.must(name in _SHARED, f"--rectangular s must come with {fitting}: got {came}")
    return True


def _name_of(word: str | None, given: list[str], spelled: Mapping[str, str], levels: Sequence[str]) -> str | None:
    """The set by its name, or the one that a weight or a radius alone implies; None where nothing was asked for.

    `levels` are the options that a divergence's level has in this command.
    """
    if word is not None:
        if word.lower() not in SETS and _added(word) is None:
            if word.lower().partition(":")[0] in (*DIVERGENCES, "cr") or _plugins.find("divergence", word) is not None:
                how = f"--divergence {word}" + (f" with {_listed(levels, 'or')}" if levels else "")
                _checks.fail(f"--set must name a set, and {word} is a divergence: give {how} instead")
            _checks.nearest("--set", word, [*SETS, *_plugins.names("set")])
        return word.lower()
    first = next((name for name in given if name not in ("weight", "radius")), None)
    if first is not None:
        fitting = [name for name, kind in _KINDS.items() if first == kind.level or first in kind.takes]
        _checks.fail(f"{spelled[first]} must come with --set {_listed(fitting, 'or')}")
    _checks.must(len(given) < 2, f"give {spelled['weight']} or {spelled['radius']}, not both")
    return {"weight": "penalty", "radius": "ball"}[given[0]] if given else None


def _added(name: str) -> EntryPoint | None:
    """Where a package has the set, if it is none of ours."""
    return None if name.lower() in SETS else _plugins.find("set", name)


def _check_options(name: str, kind: _Kind, given: list[str], spelled: Mapping[str, str]) -> None:
    """Refuse options that say nothing of this set, and a level that was given twice."""
    known = (kind.level, *kind.takes)
    for option in given:
        takes = _listed([spelled[each] for each in known], "and")
        _checks.must(option in known or option == "level", f"--set {name} takes {takes}: got {spelled[option]}")
    twice = kind.level != "level" and {"level", kind.level} <= set(given)
    _checks.must(not twice, f"give {spelled[kind.level]} or {spelled['level']}, not both: they are the same")


def _listed(words: Sequence[str], last: str) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} {last} {words[-1]}"


def _scaled(bounds: rm.Interval | None, mdp: rm.MDP, share: float) -> rm.Interval:
    """The intervals, shrunk towards the model to a share of their width."""
    if bounds is None:
        _checks.fail("--set interval must come with a .drn or .tra file that has intervals: this problem has none")
    _checks.must(0.0 <= share <= 1.0, f"level must lie in [0, 1], a share of the intervals' width: got {share:g}")
    if share == 1.0:
        return bounds
    p = mdp.probabilities
    lower, upper = (bound + (1.0 - share) * (p - bound) for bound in (bounds.lower, bounds.upper))
    return rm.Interval(lower, upper)
