"""Rooms see each other's public names alone: a room is a folder, or a module beside the folders."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import robustmdp

_ROOT = Path(robustmdp.__file__).parent
_OF_TUPLES = {"_asdict", "_fields", "_replace"}  # public in spite of their names
_MODULES = sorted(path.relative_to(_ROOT) for path in _ROOT.rglob("*.py"))


def _imported(tree: ast.Module) -> Iterator[tuple[str, list[str]]]:
    """Each import from the package: the name that it binds, and the full name of what that is."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name, alias.name.split(".")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: imports are absolute"
            for alias in node.names:
                yield alias.asname or alias.name, [*(node.module or "").split("."), alias.name]


def _private(source: str, room: str) -> list[str]:
    """The names of other rooms with an underscore, imported or reached through an imported name."""
    tree = ast.parse(source)
    imports = {bound: parts for bound, parts in _imported(tree) if parts[0] == "robustmdp"}
    used = list(imports.values())
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr not in _OF_TUPLES:
            used.append([*imports.get(ast.unparse(node.value), ()), node.attr])
    # Modules such as robustmdp._checks are private to the package, not to a room: index 1 may have an underscore.
    return sorted(
        ".".join(parts)
        for parts in used
        if parts[1:2] != [room] and any(part.startswith("_") and not part.endswith("__") for part in parts[2:])
    )


@pytest.mark.parametrize("module", _MODULES, ids=str)
def test_no_room_uses_a_private_name_of_another(module: Path) -> None:
    assert _private((_ROOT / module).read_text(encoding="utf-8"), module.parts[0].removesuffix(".py")) == []


@pytest.mark.parametrize(
    "line",
    [
        "from robustmdp.planning.solving import _solve",
        "from robustmdp.planning import _solving",
        "from robustmdp.planning._solving import solve",
        "import robustmdp.planning._solving",
        "from robustmdp.planning import solving; solving._solve()",
        "from robustmdp._files import _replace",
        "def late():\n    from robustmdp.planning.solving import _solve",
    ],
)
def test_private_names_are_found(line: str) -> None:
    assert _private(line, "tuning")
    assert not _private(line.replace("_", ""), "tuning")


def _needed(tree: ast.AST) -> Iterator[str]:
    """What a module imports when it runs, also in functions; not what it imports for type checkers alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from (".".join(parts) for _, parts in _imported(ast.Module([node], [])))
        yield from _needed(node)


def _name_of(module: Path) -> str:
    return ".".join(["robustmdp", *module.with_suffix("").parts]).removesuffix(".__init__")


def _graph(sources: dict[str, str]) -> dict[str, set[str]]:
    """Which modules each module imports; a name that is no module belongs to the module that it comes from."""
    graph = {}
    for name, source in sources.items():
        found = set(_needed(ast.parse(source)))
        graph[name] = {full if full in sources else full.rpartition(".")[0] for full in found} & sources.keys()
    return graph


def test_no_modules_import_each_other_in_a_cycle() -> None:
    graph = _graph({_name_of(module): (_ROOT / module).read_text(encoding="utf-8") for module in _MODULES})
    TopologicalSorter(graph).prepare()


@pytest.mark.parametrize(
    "line", ["from robustmdp.one import thing", "from robustmdp import one", "def late():\n    import robustmdp.one"]
)
def test_cycles_are_found(line: str) -> None:
    with pytest.raises(CycleError):
        TopologicalSorter(_graph({"robustmdp.one": "import robustmdp.two", "robustmdp.two": line})).prepare()
    unneeded = f"if TYPE_CHECKING:\n    {line}" if "def" not in line else "import robustmdp"
    TopologicalSorter(_graph({"robustmdp.one": "import robustmdp.two", "robustmdp.two": unneeded})).prepare()
