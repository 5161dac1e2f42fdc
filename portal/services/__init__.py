"""VERBS: the only writers. Each change of state is one transaction with its audit event and outbox row.

Not in charge of: rules (domain), wires (adapters), or who is at the door (api, web).
"""
