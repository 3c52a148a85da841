"""From words to sets: what --set means, and the options beside it."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from robustmdp import _checks, _plugins
from robustmdp.app.commands.options import SETS, was_typed
from robustmdp.app.commands.words import parse_state

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from robustmdp import Interval
    from robustmdp.ambiguity import Ambiguity
    from robustmdp.divergences import FDivergence
    from robustmdp.models import MDP

_LEVELS = ("weight", "radius", "level", "share", "aversion")  # options that hold numbers
_CURVE_LEVELS = 50
_SHARED = ("penalty", "ball", "l1", "l2")  # sets whose level the actions of a state can share


@dataclasses.dataclass(frozen=True)
class _Kind:
    """A set's options: that of its level, an example of it, others that it takes; `span` is for curves."""

    level: str
    example: str
    takes: tuple[str, ...] = ()
    span: tuple[float, float] | None = None


_KINDS = dict(
    zip(
        SETS,
        (
            _Kind("weight", "--weight 1", ("divergence",)),
            _Kind("radius", "--radius 0.1", ("divergence",)),
            _Kind("radius", "--radius 0.1", ("support",), (1e-3, 2.0)),
            _Kind("radius", "--radius 0.1", ("support",), (1e-3, 1.5)),
            _Kind("radius", "--radius 0.1", ("support",), (1e-3, 1.0)),
            _Kind("share", "--share 0.1", ("support",), (1e-3, 1.0)),
            _Kind("level", "--level 0.2", ("share",), (1.0, 1e-2)),
            _Kind("level", "--level 0.2", ("share",), (1.0, 1e-2)),
            _Kind("aversion", "--aversion 1", ("share",)),
            _Kind("level", "--level 1", (), (1e-2, 1.0)),
            _Kind("radius", "--radius 0.1 --distance FILE", ("support", "distance")),
        ),
        strict=True,
    )
)

_OF_PACKAGES = _Kind("level", "--level 0.1")

_CLASSES = {
    "l1": "L1",
    "l2": "L2",
    "linf": "LInf",
    "contamination": "Contamination",
    "cvar": "CVaR",
    "evar": "EVaR",
    "entropic": "EntropicRisk",
    "wasserstein": "Wasserstein",
}


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
    levels: tuple[float, ...]
    divergence: FDivergence
    share: float | None = None
    support: str | None = None
    optimistic: bool = False
    distance: str | None = None
    is_shared: bool = False
    divergence_word: str = ""

    def at(self, level: float, mdp: MDP, bounds: Interval | None = None) -> Ambiguity:
        """The set of that level; `bounds` are the intervals of the model's file, if it has any."""
        from robustmdp import MeanRisk, Optimistic, SRectangular

        found = self._plain(level, mdp, bounds)
        if self.share is not None:
            found = MeanRisk(self.share, found)
        if self.is_shared:
            found = SRectangular(found)
        return Optimistic(found) if self.optimistic else found

    def _plain(self, level: float, mdp: MDP, bounds: Interval | None) -> Ambiguity:
        import robustmdp as rm
        from robustmdp.ambiguity import check_ambiguity, is_set

        if self.name == "interval":
            return _scaled(bounds, mdp, level)
        assert self.name is not None
        if (point := _added(self.name)) is not None:
            return check_ambiguity(_plugins.build("set", point, "return a set", is_set, level))
        if self.name in ("penalty", "ball"):
            return (rm.Penalized if self.name == "penalty" else rm.Constrained)(self.divergence, level)
        kind = getattr(rm, _CLASSES[self.name])
        settings: dict[str, Any] = {} if self.support is None else {"support": _parse_support(self.support, mdp)}
        if self.distance is not None:
            settings["distance"] = rm.read_distance(self.distance)
        return kind(**settings, **{kind.level_name: level})  # type: ignore[no-any-return]

    def arguments(self, mdp: MDP, bounds: Interval | None, threads: int | None) -> dict[str, Any]:
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
        if self.has_divergence:
            form = "Penalized" if self.name == "penalty" else "Constrained"
            found = f"rm.{form}({'divergence' if own else f'rm.{self.divergence!r}'}, level)"
        else:
            found = f"rm.{_CLASSES[self.name]}({distance}level{support})"  # type: ignore[index]
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

    def within(self, bounds: Interval | None) -> SetChoice:
        """The intervals of a file where nothing else was asked for."""
        if self.name is not None or bounds is None:
            return self
        return dataclasses.replace(self, name="interval", levels=self.levels)

    def __str__(self) -> str:
        support = "" if self.support is None else f", support {self.support}"
        share = "" if self.share is None else f", a share of {self.share:g} beside the mean"
        return f"{'s-rectangular ' if self.is_shared else ''}{self.name}{support}{share}"

    def curve_levels(self, mdp: MDP, threads: int | None) -> list[float]:
        """Those that were typed, or some from hardly robust to nearly the minimum over the successors."""
        import numpy as np

        from robustmdp import KL, Constrained, Penalized
        from robustmdp.tuning import levels_for

        assert self.name is not None
        if self.levels:
            return list(self.levels)
        if self.has_divergence:
            form: Any = Penalized if self.name == "penalty" else Constrained
            found = levels_for(mdp, self.divergence, count=_CURVE_LEVELS, form=form, threads=threads)
            return found.tolist()  # type: ignore[no-any-return]
        _checks.must(self.name in _KINDS, f"--set {self.name} must come with --levels, from a package that has none")
        span = _KINDS[self.name].span
        if self.distance is not None:
            largest = self.at(1.0, mdp).largest_distance  # type: ignore[attr-defined]
            return (largest * np.geomspace(1e-3, 1.0, _CURVE_LEVELS)).tolist()  # type: ignore[no-any-return]
        if span is None:  # an aversion is the inverse of a weight, in the unit of the rewards
            weights: list[float] = (1.0 / levels_for(mdp, KL(), count=_CURVE_LEVELS, threads=threads)).tolist()
            return weights
        return np.geomspace(*span, _CURVE_LEVELS).tolist()  # type: ignore[no-any-return]


def check_known(options: Mapping[str, Any], command: str, known: Sequence[str], why: str) -> None:
    """Refuse a set with which a command can do nothing."""
    word = options["set_name"]
    if word is not None and word.lower() in SETS:
        listed = _listed([f"--set {name}" for name in known], "and")
        _checks.must(word.lower() in known, f"{command} knows {listed}, {why}: got --set {word}")


def parse_ambiguity(options: Mapping[str, Any], mdp: MDP | None = None, bounds: Interval | None = None) -> Ambiguity:
    """The one set that was asked for; without any, the intervals of the model's file, or the model itself."""
    return build_set(parse_set(options), mdp, bounds)


def build_set(choice: SetChoice, mdp: MDP | None, bounds: Interval | None = None) -> Ambiguity:
    """The same in two parts, so that what is typed wrongly is refused before a model is read."""
    from robustmdp import Nominal

    choice = choice.within(bounds)
    if choice.name is None:
        example = "as in --set l1 --radius 0.1 --optimistic"
        _checks.must(not choice.optimistic, f"--optimistic must come with a set, {example}")
        return Nominal()
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
    typed = {name: _as_tuple(options.get(name)) for name in _LEVELS}
    given = [name for name in _LEVELS if typed[name]]
    given += [option for option in ("support", "distance") if options.get(option) is not None]
    name = _name_of(options.get("set_name"), given, spelled)
    is_shared = _is_shared(options.get("rectangular"), name)
    if name is None:
        is_optimistic = bool(options.get("optimistic"))
        return SetChoice(None, (), divergence, optimistic=is_optimistic, divergence_word=options["divergence"])
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
    return SetChoice(
        name,
        levels,
        divergence,
        share[0] if share else None,
        options.get("support"),
        bool(options.get("optimistic")),
        options.get("distance"),
        is_shared,
        options["divergence"],
    )


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


def _as_tuple(given: Any) -> tuple[float, ...]:
    if given is None:
        return ()
    return tuple(given) if isinstance(given, (tuple, list)) else (given,)


def _name_of(word: str | None, given: list[str], spelled: Mapping[str, str]) -> str | None:
    """The set by its name, or the one that a weight or a radius alone implies; None where nothing was asked for."""
    if word is not None:
        if word.lower() not in SETS and _added(word) is None:
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


def _parse_support(word: str, mdp: MDP) -> str | list[int]:
    """The words as they are, states by name or number as numbers."""
    if word in ("all", "model"):
        return word
    return [parse_state(mdp, part.strip(), "--support", ("all", "model")) for part in word.split(",")]


def _scaled(bounds: Interval | None, mdp: MDP, share: float) -> Interval:
    """The intervals, shrunk towards the model to a share of their width."""
    from robustmdp import Interval

    if bounds is None:
        _checks.fail("--set interval must come with a .drn or .tra file that has intervals: this problem has none")
    _checks.must(0.0 <= share <= 1.0, f"level must lie in [0, 1], a share of the intervals' width: got {share:g}")
    if share == 1.0:
        return bounds
    p = mdp.probabilities
    return Interval(
        bounds.lower + (1.0 - share) * (p - bounds.lower), bounds.upper + (1.0 - share) * (p - bounds.upper)
    )
