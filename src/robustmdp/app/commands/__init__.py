"""Words: parse, call, print. No mathematics."""

from robustmdp.app.commands.main import main as main
