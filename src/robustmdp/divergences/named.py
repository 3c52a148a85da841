"""Divergences by their short names."""

from __future__ import annotations

from robustmdp import _checks, _plugins
from robustmdp.divergences.base import FDivergence
from robustmdp.divergences.cressie_read import KL, Burg, ChiSquare, CressieRead, Hellinger
from robustmdp.divergences.jensen_shannon import JensenShannon
from robustmdp.divergences.total_variation import TotalVariation

_NAMES: dict[str, type[FDivergence]] = {
    "chi2": ChiSquare,
    "kl": KL,
    "tv": TotalVariation,
    "burg": Burg,
    "hellinger": Hellinger,
    "js": JensenShannon,
}


def divergence_named(word: str) -> FDivergence:
    """A divergence by its short name: chi2, kl, tv, burg, hellinger, js, cr:K for Cressie-Read, or that of a package.

    >>> divergence_named("kl")
    KL()
    """
    name, _, parameter = word.lower().partition(":")
    if name == "cr":
        try:
            return CressieRead(float(parameter))
        except ValueError:
            _checks.fail(f"the k of cr:K must be a number: got {parameter!r}")
    if name in _NAMES:
        return _NAMES[name]()
    point = _plugins.find("divergence", word)
    if point is None:
        _checks.nearest("divergence", word, [*_NAMES, "cr:K", *_plugins.names("divergence")])
    found: FDivergence = _plugins.load("divergence", point, "be a divergence, rm.Divergence(...)", _is_divergence)
    return found


def _is_divergence(thing: object) -> bool:
    return isinstance(thing, FDivergence)
