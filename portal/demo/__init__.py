"""The demo: sample teams, and a scenario that acts on the portal over HTTP alone, as different people.

In charge of: what a newcomer sees first. Not in charge of: anything the portal needs to run without it.
"""
