"""The commands `doctor` and `completion`: about this installation."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from typing import Any

import click

import robustmdp as rm
from robustmdp import __version__
from robustmdp.app.commands import options as given
from robustmdp.app.commands import show

_CORE = ("numpy", "scipy", "click", "rich", "msgspec", "safetensors")
_OPTIONAL = {
    "gymnasium": "worlds by gym:ID",
    "pyarrow": "Parquet files and compressed models",
    "minari": "logs by minari:ID",
    "matplotlib": "pictures from Python, and the paper's figures",
    "plotly": "reports",
    "jinja2": "reports",
    "joblib": "experiments in processes",
    "ray": "models and experiments on a cluster",
    "pandas": "to_frame()",
    "numba": "own functions at compiled speed",
}
_BYTES_PER_TRANSITION = 16  # 12 of the rows, and room to work
_EXTRAS = {"pyarrow": "parquet", "matplotlib": "plot", "plotly": "report", "jinja2": "report", "joblib": "processes"}


@click.command(short_help="Versions, threads, compiled core, optional parts.")
@click.option("--address", help="What the Ray cluster there offers, instead.")
@given.output_options
def doctor(address: str | None, as_json: bool, quiet: bool) -> None:
    """Show versions, threads, how the compiled core was built, and which optional parts are there.

    With --address: the nodes of a Ray cluster, their cores and memory, and where their versions differ from those
    here.

    \b
    Examples:
      robustmdp doctor
      robustmdp doctor --address 10.0.0.1:6379
    """
    from robustmdp import _core
    from robustmdp.operators.threads import thread_count

    del quiet
    if address is not None:
        _show_cluster(address, as_json)
        return
    facts: dict[str, Any] = {
        "robustmdp": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
    }
    facts |= {"cores": os.cpu_count(), "threads": thread_count(None)}
    info = _core.build_info()
    others = [name for name in _core.available() if name != _core.variant]
    build = {**info, "standard": f"C++{info['standard'] // 100 % 100}", "also_available": others}
    core, optional = ({name: _version(name) for name in names} for names in (_CORE, _OPTIONAL))
    if as_json:
        show.print_json({**facts, "build": build, "core": core, "optional": optional})
        return
    also = f" ({', '.join(others)} is available by ROBUSTMDP_CORE)" if others else ""
    described = {
        "instruction set": f"{build['instruction_set']}{also}",
        "core compiled by": f"{build['compiler']}, {build['standard']}",
    }
    rows = [(name, str(value)) for name, value in {**facts, **described, **core}.items()]
    show.print_rows("This installation", ("part", "found"), rows)
    parts = [(name, optional[name] or f"pip install {_package(name)}", use) for name, use in _OPTIONAL.items()]
    show.print_rows("Optional parts", ("part", "found", "for"), parts)


def _show_cluster(address: str, as_json: bool) -> None:
    """The nodes, their sum, and how large a model their memory holds."""
    from robustmdp.cluster.nodes import own_versions

    engine = rm.engine.Ray(address)
    engine.check()
    nodes, here = engine.nodes(), own_versions()
    if as_json:
        found = [{**node._asdict(), "differences": node.differences(here)} for node in nodes]
        show.print_json({"address": address, "versions": here, "nodes": found})
        return
    rows = []
    for node in nodes:
        sizes = (f"{size / 1e9:.1f} GB" for size in (node.memory, node.object_store))
        rows.append((node.address, node.cores, *sizes, ", ".join(node.differences(here)) or "none"))
    header = ("node", "cores", "memory", "object store", "versions that differ")
    show.print_rows(f"The cluster at {address}", header, rows, numbers=(False, True, True, True, False))
    able = [node for node in nodes if node.cores]
    transitions = sum(node.memory for node in able) / _BYTES_PER_TRANSITION
    versions = ", ".join(f"{name} {version}" for name, version in here.items())
    show.say(
        f"Nodes with cores: {len(able)}; cores: {sum(node.cores for node in able)}; memory for about {transitions:.2g} "
        f"transitions. Versions here: {versions}."
    )


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _package(name: str) -> str:
    return name if name == "pandas" else f"'robustmdp[{_EXTRAS.get(name, name)}]'"


@click.command(short_help="A script for the shell's completion.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, /, shell: str) -> None:
    """Print the script that lets SHELL complete commands, options and problems.

    \b
    Example:
      robustmdp completion bash >> ~/.bashrc
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(context.find_root().command, {}, "robustmdp", "_ROBUSTMDP_COMPLETE").source())
