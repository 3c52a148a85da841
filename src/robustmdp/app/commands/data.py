"""The commands `estimate`, `convert` and `problems`."""

from __future__ import annotations

import math
from typing import Any

import click

import robustmdp as rm
from robustmdp import _plugins
from robustmdp.app.commands import options as given
from robustmdp.app.commands import show

_MOST_UNSEEN = 5


@click.command(short_help="A model, and how far the truth may be, from a log.")
@click.argument("log", type=click.Path())
@click.option("--out", type=click.Path(), help="Write the model: any format of `robustmdp problems`.")
@given.discount_option
@click.option("--smoothing", default="half", show_default=True, help="none, half or laplace.")
@click.option("--known", type=click.Path(), help="A model whose transitions are listed as possible.")
@given.column_option
@given.divergence_option()
@given.confidence_option
@given.method_option
@given.output_options
def estimate(log: str, as_json: bool, quiet: bool, **options: Any) -> None:
    """Count the transitions of LOG, make a model of them, and say how far the truth may be.

    LOG is a .csv or .parquet file with columns state, action, reward, next_state (and terminated), or minari:ID; states
    and actions are numbers or names. Pairs that were never seen are named. Smoothing: n_i/n, (n_i + 1/2)/(n + k/2) or
    (n_i + 1)/(n + k). The radii are for each pair by itself, around "half"; "asymptotic" undercovers badly for small
    counts.

    \b
    Example:
      robustmdp estimate visits.csv --discount 0.95 --out model.parquet
    """
    from robustmdp.app.commands import words
    from robustmdp.divergences import divergence_named

    del quiet
    words.check_model_out(options["out"])
    divergence, confidence = divergence_named(options["divergence"]), options["confidence"]
    discount = words.USUAL_DISCOUNT if options["discount"] is None else options["discount"]
    known = None if options["known"] is None else rm.read(options["known"], discount)
    if not options["column"]:  # who names the columns of a log says that it is one
        words.check_log(log)
    read = rm.read_log(log, columns=words.parse_columns(options["column"]))
    model, counts, unseen = rm.estimate(read, discount, smoothing=options["smoothing"], known=known)
    radii = rm.radius_from_counts(counts, divergence, confidence, method=options["method"])
    written = None if options["out"] is None else rm.write(model, options["out"])
    if as_json:
        show.print_json(
            {
                "log": log,
                "transitions": int(counts.count.sum()),
                "states": counts.n_states,
                "actions": counts.n_actions,
                "state_names": counts.state_names,
                "action_names": counts.action_names,
                "visits": counts.visits,
                "never_seen": unseen,
                "radii": radii,
                "divergence": divergence.name,
                "confidence": confidence,
                "model": None if written is None else str(written),
            }
        )
        return
    _say_counts(counts, unseen)
    _say_radii(radii, divergence.name, confidence)
    if written is not None:
        show.say(f"model    {written}, discount {discount:g}", soft_wrap=True)


def _say_counts(counts: rm.Counts, unseen: Any) -> None:
    import numpy as np

    show.say(
        f"{counts.count.sum():,.0f} transitions, {len(counts.count):,} different, from {len(counts.state):,} of "
        f"{counts.n_states:,} x {counts.n_actions:,} pairs of state and action"
    )
    if len(unseen):
        states, actions = counts.state_names or range(counts.n_states), counts.action_names or range(counts.n_actions)
        first = ", ".join(f"({states[state]}, {actions[action]})" for state, action in unseen[:_MOST_UNSEEN].tolist())
        more = f" and {len(unseen) - _MOST_UNSEEN:,} more" if len(unseen) > _MOST_UNSEEN else ""
        show.say(f"never seen: {first}{more}")
    certain = int((np.diff(counts.indptr) == 1).sum())
    if certain:
        show.say(f"{certain:,} pairs were seen with one outcome alone: radius 0, nothing else is thought possible")


def _say_radii(radii: Any, divergence: str, confidence: float) -> None:
    import numpy as np

    seen = np.asarray(radii)[np.isfinite(radii)]
    low, middle, high = np.quantile(seen, (0.0, 0.5, 1.0)) if seen.size else (math.nan,) * 3
    show.say(
        f"radii in {divergence} divergence at confidence {confidence:g}: {low:.3g} to {high:.3g}, median {middle:.3g}"
    )


@click.command(short_help="A model in another format.")
@given.problem_argument("source")
@click.argument("target", type=click.Path())
@click.option("--from", "source_format", metavar="FORMAT", help="Of SOURCE, instead of its extension's.")
@click.option("--format", "target_format", metavar="FORMAT", help="Of TARGET, instead of its extension's.")
@given.discount_option
@click.option("--meta/--no-meta", default=True, show_default=True, help="Keep what the format cannot hold in notes.")
@given.output_options
def convert(source: str, target: str, as_json: bool, quiet: bool, meta: bool, **options: Any) -> None:
    """Convert the model SOURCE to TARGET.

    SOURCE is a file, a Gymnasium id (as for `solve`) or a ready-made world; formats go by extension, `robustmdp
    problems` lists them. Names, labels, discount and endings that a format cannot hold go to TARGET.meta.json. A file
    with intervals of PRISM or Storm becomes another such file, with discount 1 unless another is given or noted.

    \b
    Examples:
      robustmdp convert model.csv model.drn --discount 0.95
      robustmdp convert gym:Taxi-v4 taxi.safetensors --discount 0.99
    """
    from robustmdp import io
    from robustmdp.app.commands import words
    from robustmdp.io.choices import IntervalsError

    del quiet
    source_format, target_format, discount = (options[name] for name in ("source_format", "target_format", "discount"))
    words.check_model_out(target, target_format, "TARGET")
    try:
        if source_format is None:
            mdp = words.parse_problem(source, discount)
        else:
            mdp = io.read(source, discount, format=source_format)
        written = io.write(mdp, target, format=target_format, meta=meta)
    except IntervalsError:
        mdp, intervals = words.read_bounded(source, discount, source_format)
        written = io.write_interval(mdp, intervals, target, format=target_format, meta=meta)
    sizes = {"states": mdp.n_states, "pairs": mdp.n_pairs, "transitions": mdp.nnz}
    if as_json:
        show.print_json({"source": source, "target": str(written), **sizes, "discount": mdp.discount})
    else:
        text = ", ".join(f"{value:,} {name}" for name, value in sizes.items())
        show.say(f"{written}: {text}, discount {mdp.discount:g}", soft_wrap=True)


@click.command(short_help="Ready-made worlds and formats of files.")
@given.output_options
def problems(as_json: bool, quiet: bool) -> None:
    """List the ready-made worlds, and the formats of files that can stand in their place.

    \b
    Example:
      robustmdp problems --json
    """
    from robustmdp.io.formats import FORMATS, formats

    del quiet
    worlds = {
        "chain": "the paper's ten states",
        "river-swim": "swim up for a rare reward, or drift",
        "machine-replacement": "keep, repair or replace",
        "inventory": "order before the demand is known",
        "pump": "run, service or replace; failures are rare and dear",
        "garnet:SxAxK": "random: states x actions x successors, as in garnet:1000x5x10",
        "grid:N": "a slowly mixing N x N room, as in grid:50",
        "gym:ID": "a Gymnasium world that publishes its transitions, as in gym:FrozenLake-v1",
        "gym:ID?NAME=VALUE": "with parameters, as in 'gym:FrozenLake-v1?is_slippery=false&map_name=8x8'",
    }
    worlds |= dict.fromkeys(_plugins.names("problem"), "of a package")
    if as_json:
        show.print_json({"problems": worlds, "formats": {name: list(endings) for name, endings in formats().items()}})
        return
    show.print_rows("Ready-made worlds", ("problem", "what it is"), list(worlds.items()))
    about = {name: kind.about for name, kind in FORMATS.items()}
    rows = [(name, ", ".join(endings), about.get(name, "of a package")) for name, endings in formats().items()]
    show.print_rows("Files", ("format", "extension", "what it is"), rows)
