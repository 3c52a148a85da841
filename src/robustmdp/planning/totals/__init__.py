"""Sums without a discount: total rewards, probabilities of reaching a goal. Bounds are proved, never assumed."""
