"""Side by side with peers: ratios within one run, never absolute times."""
