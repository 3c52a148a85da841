"""Words: parse, call, print. No mathematics."""

from robustmdp.cli.main import main as main
