"""Files in and out."""

from robustmdp.io.logs import read_log as read_log
