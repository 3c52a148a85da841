"""Files in and out."""

from robustmdp.io.distances import read_distance as read_distance
from robustmdp.io.files import read as read
from robustmdp.io.files import read_outcomes as read_outcomes
from robustmdp.io.files import write as write
from robustmdp.io.formats import formats as formats
from robustmdp.io.intervals import read_interval as read_interval
from robustmdp.io.intervals import write_interval as write_interval
from robustmdp.io.logs import read_log as read_log
from robustmdp.io.policies import read_policy as read_policy
