"""Both policies: as maps where states are places, otherwise as a table."""

from __future__ import annotations

from typing import Any

from robustmdp.app.study import maps
from robustmdp.app.study.names import Names
from robustmdp.app.study.numbers import alike
from robustmdp.app.study.study import Study
from robustmdp.operators.policy import probability_of_likeliest
from robustmdp.planning.continuation import Stage
from robustmdp.result import Solution

_MOST_STATES = 24  # of a table
_LARGEST_MAP = 2_500  # cells


def policies(study: Study, names: Names) -> dict[str, Any]:
    """Both policies: as maps, where states are places; one is enough where they are the same."""
    changed = set(study.changed.tolist())
    if names.layout is None or names.layout.n_states > _LARGEST_MAP:
        return {
            "table": policy_table(
                study, names, study.robust, changed, "Both policies, and the worst case of the robust one"
            )
        }
    value = study.nominal.value
    found = [maps.policy_map(names, study.nominal.policy, value, set(), "Nominal policy, and its value")]
    if changed:
        title = f"Robust policy, and its value{random_text(study.robust)}"
        kept = [state for state in range(len(value)) if state not in names.layout.closed]
        span = (float(min(value[kept].min(), study.under_model[kept].min())), float(value[kept].max()))
        found.append(maps.policy_map(names, study.robust.policy, study.under_model, changed, title, span=span))
    return {"maps": found}


def policy_table(study: Study, names: Names, robust: Solution | Stage, changed: set[int], title: str) -> dict[str, Any]:
    """Changed states first, where there is not room for all."""
    order = [*sorted(changed), *(s for s in range(study.mdp.n_states) if s not in changed)][:_MOST_STATES]
    shown = sorted(order)
    columns = ([names.choice(policy, s) for s in shown] for policy in (study.nominal.policy, robust.policy))
    more = "" if len(shown) == study.mdp.n_states else f" ({len(shown)} of {study.mdp.n_states:,} states)"
    return {
        "header": ("state", "nominal", "robust", "worst case"),
        "rows": list(zip(map(names.state, shown), *columns, alike(robust.value[shown]), strict=True)),
        "caption": f"{title}{more}{random_text(robust)}",
        "marked": [place for place, s in enumerate(shown) if s in changed],
        "mark": "another action, certainly better",
    }


def random_text(robust: Solution | Stage) -> str:
    """What a title says of a policy that is random."""
    if probability_of_likeliest(robust.policy).min() == 1.0:
        return ""
    return "; the policy is random: a number beside the likeliest action is its probability"
