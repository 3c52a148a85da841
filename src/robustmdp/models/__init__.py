"""The world as data, as code or as a log; knows no worst case."""

from robustmdp.models.counts import Counts as Counts
from robustmdp.models.counts import Estimate as Estimate
from robustmdp.models.counts import estimate as estimate
from robustmdp.models.gymnasium import to_gymnasium as to_gymnasium
from robustmdp.models.mdp import MDP as MDP
from robustmdp.models.noise import Noise as Noise
from robustmdp.models.row_source import Rows as Rows
from robustmdp.models.row_source import RowSource as RowSource
from robustmdp.models.simulator import Simulator as Simulator
from robustmdp.models.trajectory import Trajectory as Trajectory
