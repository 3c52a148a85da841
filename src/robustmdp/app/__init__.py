"""What people see: commands, the study of a problem, and its page."""
