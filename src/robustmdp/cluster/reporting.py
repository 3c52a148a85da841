"""What a callback sees of a solve in shards."""

from __future__ import annotations

from typing import NamedTuple

from robustmdp.cluster.exchange import Traffic
from robustmdp.cluster.machine import Machine
from robustmdp.planning.run import Callback, Step


class ShardedStep(NamedTuple):
    """A `Step`, and what the shards did for it.

    `sweeps` are the exchanges of values so far, one for each sweep of the operator or of a policy's chain; `traffic`
    has the bytes of one of them, and the slowest shard since the last step with its seconds of work.
    """

    step: int
    residual: float
    error_bound: float
    rows: int
    sweeps: int
    traffic: Traffic


def reporting(callback: Callback | None, machine: Machine) -> Callback | None:
    """A callback of plain steps that passes them on with what the shards did."""
    if callback is None:
        return None

    def report(step: Step) -> bool | None:
        found: bool | None = callback(ShardedStep(*step, machine.sweeps, machine.exchange.traffic()))
        return found

    return report
