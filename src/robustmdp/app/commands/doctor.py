"""The commands `doctor` and `completion`: about this installation."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from typing import Any

import click

from robustmdp import __version__
from robustmdp.app.commands import options as given

_CORE = ("numpy", "scipy", "click", "rich", "msgspec", "safetensors")
_OPTIONAL = {
    "gymnasium": "worlds by gym:ID",
    "pyarrow": "Parquet files and compressed models",
    "minari": "logs by minari:ID",
    "matplotlib": "static figures",
    "plotly": "reports",
    "jinja2": "reports",
    "joblib": "experiments in processes",
    "ray": "experiments on a cluster",
    "pandas": "to_frame()",
    "numba": "own functions at compiled speed",
}
_EXTRAS = {"pyarrow": "parquet", "matplotlib": "report", "plotly": "report", "jinja2": "report", "joblib": "processes"}


@click.command(short_help="Versions, threads, compiled core, optional parts.")
@given.output_options
def doctor(as_json: bool, quiet: bool) -> None:
    """Show versions, threads, how the compiled core was built, and which optional parts are there.

    \b
    Example:
      robustmdp doctor
    """
    from robustmdp.app.commands import show

    del quiet
    facts = {"robustmdp": __version__, "python": platform.python_version(), "system": platform.platform(), **_machine()}
    build = _build()
    core = {name: _version(name) for name in _CORE}
    optional = {name: _version(name) for name in _OPTIONAL}
    if as_json:
        show.print_json({**facts, "build": build, "core": core, "optional": optional})
        return
    rows = [(name, str(value)) for name, value in {**facts, **_describe(build), **core}.items()]
    show.print_rows("This installation", ("part", "found"), rows)
    parts = [(name, optional[name] or f"pip install {_package(name)}", use) for name, use in _OPTIONAL.items()]
    show.print_rows("Optional parts", ("part", "found", "for"), parts)


def _machine() -> dict[str, Any]:
    from robustmdp.operators.threads import thread_count

    return {"cores": os.cpu_count(), "threads": thread_count(None)}


def _build() -> dict[str, Any]:
    """How the compiled core was built, and the instruction sets that this processor can use."""
    from robustmdp import _core

    info = _core.build_info()
    others = [name for name in _core.available() if name != _core.variant]
    standard = f"C++{info['standard'] // 100 % 100}"
    return {**info, "standard": standard, "also_available": others}


def _describe(build: dict[str, Any]) -> dict[str, str]:
    others = ", ".join(build["also_available"])
    also = f" ({others} is available by ROBUSTMDP_CORE)" if others else ""
    return {
        "instruction set": f"{build['instruction_set']}{also}",
        "core compiled by": f"{build['compiler']}, {build['standard']}",
    }


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
