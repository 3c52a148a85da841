"""The world as data, as code or as a log; knows no worst case."""

from robustmdp.models.mdp import MDP as MDP
from robustmdp.models.simulator import Simulator as Simulator
from robustmdp.models.trajectory import Trajectory as Trajectory
