"""A task is a script of its own, which its test runs in a folder of its own."""

collect_ignore = ["own_environment.py"]
