"""What the nodes of a cluster offer, and which versions they run."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import metadata
from typing import Any, NamedTuple

_ANSWERS = 20.0  # seconds in which a node must start a process and say its versions
_PACKAGES = ("robustmdp", "numpy", "ray")


class Node(NamedTuple):
    """A node: its address, cores and bytes, and its versions by name, or None where it did not answer.

    `memory` is what Ray gives to processes; the object store comes on top of it.
    """

    address: str
    cores: int
    memory: int
    object_store: int
    versions: Mapping[str, str] | None

    def differences(self, here: Mapping[str, str]) -> list[str]:
        """The versions that are not those of this process, as text."""
        if self.versions is None:
            return ["no answer"]
        return [f"{name} {found}" for name, found in self.versions.items() if found != here[name]]


def own_versions() -> dict[str, str]:
    """Those of this process."""
    return _reader()(_PACKAGES)  # type: ignore[no-any-return]


def find_nodes(ray: Any) -> list[Node]:
    """Those that are alive, in the order of their addresses; `ray` is the module, connected."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    read = ray.remote(num_cpus=0, max_retries=0)(_reader())
    alive = sorted((node for node in ray.nodes() if node["Alive"]), key=lambda node: str(node["NodeManagerAddress"]))
    asked = []
    for node in alive:
        where = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
        asked.append(read.options(scheduling_strategy=where).remote(_PACKAGES))
    ray.wait(asked, num_returns=len(asked), timeout=_ANSWERS)
    return [_node(node, _answer(ray, each)) for node, each in zip(alive, asked, strict=True)]


def _node(node: Mapping[str, Any], versions: Mapping[str, str] | None) -> Node:
    resources = node["Resources"]
    cores, memory, store = (int(resources.get(name, 0)) for name in ("CPU", "memory", "object_store_memory"))
    return Node(node["NodeManagerAddress"], cores, memory, store, versions)


def _answer(ray: Any, reference: Any) -> Mapping[str, str] | None:
    try:
        found: Mapping[str, str] = ray.get(reference, timeout=0)
    except ray.exceptions.RayError:
        return None
    return found


def _reader() -> Any:
    """A function that is sent as code, since a node may lack this package."""

    def read(packages: tuple[str, ...]) -> dict[str, str]:
        found = {"python": platform.python_version()}
        for name in packages:
            try:
                found[name] = metadata.version(name)
            except metadata.PackageNotFoundError:
                found[name] = "missing"
        return found

    return read
