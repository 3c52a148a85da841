"""Slow and obvious referees: mpmath for the dual, cvxpy for the primal, naive loops for whole MDPs."""
