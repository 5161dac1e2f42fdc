"""What governs, and the audit log, in the OpenAPI document."""

from __future__ import annotations

from portal.api.schemas import examples
from portal.api.schemas.common import (
    AnyObject,
    Labels,
    amount,
    day,
    number,
    operation,
    page_example,
    page_of,
    shape,
    slug,
    text,
    time,
    uuid,
)

TAG = "governed values"

Team = shape(
    "Team",
    slug=slug(),
    title=text(),
    parent=slug(null=True),
    role=text(null=True, help_text="Your own role in this very team: member, owner, or null"),
)
Quota = shape("Quota", team=slug(), dimension=text(), limit=number(), reserved=number(), used=number())
Budget = shape("Budget", team=slug(), currency=text(), soft=amount(), hard=amount(), committed=amount())
Price = shape(
    "Price",
    sku=text(),
    unit=text(),
    price=amount(null=True, help_text="null: needs review, see problem; never free"),
    currency=text(),
    region=text(),
    effectiveFrom=day(),
    source=text(),
    asOf=day(),
    problem=text(null=True),
)
Environment = shape("Environment", slug=slug(), title=text(), labels=Labels(), controlPlane=text())
AuditEvent = shape(
    "AuditEvent",
    id=number(),
    at=time(),
    verb=text(),
    actor=text(null=True, help_text="Who took the step; null: the portal itself, see system"),
    system=text(),
    team=slug(null=True),
    request=uuid(null=True),
    instance=uuid(null=True),
    data=AnyObject(),
)
AuditEventPage = page_of(AuditEvent)

TEAMS = operation("listTeams", "List teams", TAG, page_of(Team), [page_example("teams", examples.TEAM, "teams")])
QUOTAS = operation(
    "listQuotas", "List quotas", TAG, page_of(Quota), [page_example("quotas", examples.QUOTA_LINE, "quotas")]
)
BUDGETS = operation(
    "listBudgets", "List budgets", TAG, page_of(Budget), [page_example("budgets", examples.BUDGET, "budgets")]
)
PRICES = operation("listPrices", "List prices", TAG, page_of(Price), [page_example("prices", examples.PRICE, "prices")])
ENVIRONMENTS = operation(
    "listEnvironments",
    "List environments",
    TAG,
    page_of(Environment),
    [page_example("environments", examples.ENVIRONMENT, "environments")],
)
AUDIT = operation(
    "listAuditEvents",
    "Read the audit log",
    "audit",
    AuditEventPage,
    [page_example("audit", examples.EVENT, "audit")],
)
