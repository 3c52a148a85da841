"""One model on many machines: the operator is what is distributed, planning stays as it is."""

from robustmdp.cluster.exchange import Exchange as Exchange
from robustmdp.cluster.exchange import InProcessExchange as InProcessExchange
from robustmdp.cluster.exchange import ShardLost as ShardLost
from robustmdp.cluster.exchange import Traffic as Traffic
from robustmdp.cluster.solving import ShardedSolution as ShardedSolution
from robustmdp.cluster.solving import ShardedStep as ShardedStep
from robustmdp.cluster.solving import solve_in_shards as solve_in_shards

__all__ = ["Exchange", "InProcessExchange", "ShardLost", "ShardedSolution", "ShardedStep", "Traffic", "solve_in_shards"]
