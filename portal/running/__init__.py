"""In charge of: starting, watching and ending the processes that make up a portal on one machine.

Not in charge of: what they do. Nothing here imports Django or any other room of the portal.
"""
