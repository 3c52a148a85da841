"""One model on many machines: the operator is what is distributed, planning stays as it is."""

from robustmdp.cluster.exchange import Exchange as Exchange
from robustmdp.cluster.exchange import InProcess as InProcess
from robustmdp.cluster.exchange import Lost as Lost
from robustmdp.cluster.reporting import ShardedStep as ShardedStep
from robustmdp.cluster.solving import solve_in_shards as solve_in_shards

__all__ = ["Exchange", "InProcess", "Lost", "ShardedStep", "solve_in_shards"]
