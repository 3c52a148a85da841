"""What all tests share."""

from __future__ import annotations

import signal

# Programs that tests start shall hear Ctrl-C, even where the tests themselves run in the background and would not.
signal.signal(signal.SIGINT, signal.default_int_handler)
