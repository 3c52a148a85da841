"""Ready-made worlds."""

from robustmdp.problems.chains import chain as chain
from robustmdp.problems.chains import machine_replacement as machine_replacement
from robustmdp.problems.chains import river_swim as river_swim
from robustmdp.problems.chains import two_state as two_state
from robustmdp.problems.chains import two_state_value as two_state_value
from robustmdp.problems.garnet import garnet as garnet
from robustmdp.problems.grid_world import grid_world as grid_world
from robustmdp.problems.inventory import inventory as inventory
from robustmdp.problems.pump import pump as pump
