"""The commands `estimate`, `convert` and `problems`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import click

from robustmdp import _plugins
from robustmdp.app.commands import options as given

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
    from robustmdp import estimate as estimated
    from robustmdp import io, radius_from_counts, read_log
    from robustmdp.app.commands import show
    from robustmdp.app.commands.words import USUAL_DISCOUNT, check_log, check_model_out, parse_columns
    from robustmdp.divergences import divergence_named

    del quiet
    check_model_out(options["out"])
    divergence = divergence_named(options["divergence"])
    discount = USUAL_DISCOUNT if options["discount"] is None else options["discount"]
    known = None if options["known"] is None else io.read(options["known"], discount)
    if not options["column"]:  # who names the columns of a log says that it is one
        check_log(log)
    read = read_log(log, columns=parse_columns(options["column"]))
    model, counts, unseen = estimated(read, discount, smoothing=options["smoothing"], known=known)
    radii = radius_from_counts(counts, divergence, options["confidence"], method=options["method"])
    written = None if options["out"] is None else io.write(model, options["out"])
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
                "confidence": options["confidence"],
                "model": None if written is None else str(written),
            }
        )
        return
    _say_counts(counts, unseen, radii, divergence.name, options["confidence"])
    if written is not None:
        show.say(f"model    {written}, discount {discount:g}", soft_wrap=True)


def _name(names: Sequence[str] | None, number: int) -> str:
    return str(number) if names is None else names[number]


def _say_counts(counts: Any, unseen: Any, radii: Any, divergence: str, confidence: float) -> None:
    import numpy as np

    from robustmdp.app.commands import show

    show.say(
        f"{counts.count.sum():,.0f} transitions, {len(counts.count):,} different, from {len(counts.state):,} of "
        f"{counts.n_states:,} x {counts.n_actions:,} pairs of state and action"
    )
    if len(unseen):
        first = ", ".join(
            f"({_name(counts.state_names, state)}, {_name(counts.action_names, action)})"
            for state, action in unseen[:_MOST_UNSEEN].tolist()
        )
        more = f" and {len(unseen) - _MOST_UNSEEN:,} more" if len(unseen) > _MOST_UNSEEN else ""
        show.say(f"never seen: {first}{more}")
    certain = int((np.diff(counts.indptr) == 1).sum())
    if certain:
        show.say(f"{certain:,} pairs were seen with one outcome alone: radius 0, nothing else is thought possible")
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
    from robustmdp.app.commands import show
    from robustmdp.app.commands.words import check_model_out, parse_problem, read_bounded
    from robustmdp.io.choices import IntervalsError

    del quiet
    check_model_out(target, options["target_format"], "TARGET")
    try:
        if options["source_format"] is None:
            mdp = parse_problem(source, options["discount"])
        else:
            mdp = io.read(source, options["discount"], format=options["source_format"])
        written = io.write(mdp, target, format=options["target_format"], meta=meta)
    except IntervalsError:
        mdp, intervals = read_bounded(source, options["discount"], options["source_format"])
        written = io.write_interval(mdp, intervals, target, format=options["target_format"], meta=meta)
    facts = {"states": mdp.n_states, "pairs": mdp.n_pairs, "transitions": mdp.nnz, "discount": mdp.discount}
    if as_json:
        show.print_json({"source": source, "target": str(written), **facts})
    else:
        sizes = ", ".join(f"{value:,} {name}" for name, value in list(facts.items())[:3])
        show.say(f"{written}: {sizes}, discount {mdp.discount:g}", soft_wrap=True)


@click.command(short_help="Ready-made worlds and formats of files.")
@given.output_options
def problems(as_json: bool, quiet: bool) -> None:
    """List the ready-made worlds, and the formats of files that can stand in their place.

    \b
    Example:
      robustmdp problems --json
    """
    from robustmdp.app.commands import show
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
