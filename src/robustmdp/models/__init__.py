"""The world as data. Knows no worst case."""

from robustmdp.models.mdp import MDP as MDP
