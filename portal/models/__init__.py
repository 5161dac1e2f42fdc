"""MEMORY: what the portal remembers, one module per kind of thing. Only services write."""

from portal.models import embedded  # its tables are known to Django; nothing else here uses them
from portal.models.documents import ActiveDocument, Document, Price
from portal.models.identities import Identity
from portal.models.journal import AuditEvent, FeedEntity, FeedHead, OutboxRow
from portal.models.ledger import Budget, Commitment, Quota, Reservation
from portal.models.people import ApiToken, Membership, Team
from portal.models.places import CompositionRevision, Environment, Pause, PhaseDuration
from portal.models.requests import OPEN_STATES, UNDELIVERED_STATES, DecisionRecord, Instance, Request, Stage, Vote
from portal.models.signing import SigningKey

__all__ = [
    "OPEN_STATES",
    "UNDELIVERED_STATES",
    "ActiveDocument",
    "ApiToken",
    "AuditEvent",
    "Budget",
    "Commitment",
    "CompositionRevision",
    "DecisionRecord",
    "Document",
    "Environment",
    "FeedEntity",
    "FeedHead",
    "Identity",
    "Instance",
    "Membership",
    "OutboxRow",
    "Pause",
    "PhaseDuration",
    "Price",
    "Quota",
    "Request",
    "Reservation",
    "SigningKey",
    "Stage",
    "Team",
    "Vote",
    "embedded",
]
