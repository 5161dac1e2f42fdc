"""Desired state: what a claim and a catalog entity look like for given facts. Plain functions without I/O."""
