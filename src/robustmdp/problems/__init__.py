"""Ready-made worlds."""

from robustmdp.problems.chains import chain as chain
from robustmdp.problems.chains import river_swim as river_swim
from robustmdp.problems.chains import two_state as two_state
from robustmdp.problems.chains import two_state_value as two_state_value
from robustmdp.problems.operations import inventory as inventory
from robustmdp.problems.operations import machine_replacement as machine_replacement
from robustmdp.problems.operations import pump as pump
from robustmdp.problems.sized import garnet as garnet
from robustmdp.problems.sized import grid_world as grid_world
