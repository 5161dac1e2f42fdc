"""Endpoints of what governs: teams, quotas, budgets, prices, environments. Read only: they change by requests.

In charge of: showing rows. Not in charge of: changing one (submit a request of kind Quota), or who sees which (access).
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request as HttpRequest
from rest_framework.response import Response

from portal.api import filters, pagination
from portal.api.decision_shapes import money
from portal.api.door import Door
from portal.api.instances import label_of
from portal.api.schemas import governed as described
from portal.models import ActiveDocument, Document, Environment, Membership, Price
from portal.services import access

TEAM = filters.slug("team", "team__slug", "Only lines of this team")
_KEY = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
_ALLOWED = "letters, digits, '.', '_' and '-', at most 100"
QUOTA_FILTERS = (TEAM, filters.pattern("dimension", "dimension", _KEY, _ALLOWED, "Only this dimension"))
PRICE_FILTERS = (
    filters.pattern("sku", "sku", _KEY, _ALLOWED, "Only prices of this sku"),
    filters.pattern(
        "region", "region", rf"\*|{_KEY}", f"{_ALLOWED}; or *", "Only prices of this region; * is everywhere"
    ),
)
Row = dict[str, Any]


class TeamList(Door):
    """The teams that one sees, with one's own role in each."""

    @extend_schema(**described.TEAMS, parameters=filters.described((), paged=True))
    def get(self, request: HttpRequest) -> Response:
        pagination.read_filters(request, ())
        rows = access.visible_teams(self.actor).select_related(None)
        page = pagination.page(request, rows.values("id", "slug", "title", "parent__slug"), pagination.BY_SLUG)
        mine = Membership.objects.filter(user=self.actor.user, team__in=[row["id"] for row in page.rows])
        roles = dict(mine.values_list("team_id", "role"))
        return Response(page.of([_team(row, roles) for row in page.rows]))


class QuotaList(Door):
    """Quotas of the teams that one sees; counters include every team below."""

    @extend_schema(**described.QUOTAS, parameters=filters.described(QUOTA_FILTERS, paged=True))
    def get(self, request: HttpRequest) -> Response:
        found = pagination.read_filters(request, QUOTA_FILTERS)
        rows = access.visible_quotas(self.actor).select_related(None).filter(**found)
        values = rows.values("id", "team__slug", "dimension", "limit", "reserved", "used")
        page = pagination.page(request, values, pagination.BY_NUMBER)
        return Response(page.of([_quota(row) for row in page.rows]))


class BudgetList(Door):
    """Budgets per month of the teams that one sees; `committed` includes every team below."""

    @extend_schema(**described.BUDGETS, parameters=filters.described((TEAM,), paged=True))
    def get(self, request: HttpRequest) -> Response:
        found = pagination.read_filters(request, (TEAM,))
        rows = access.visible_budgets(self.actor).select_related(None).filter(**found)
        values = rows.values("id", "team__slug", "currency", "soft", "hard", "committed")
        page = pagination.page(request, values, pagination.BY_NUMBER)
        return Response(page.of([_budget(row) for row in page.rows]))


class PriceList(Door):
    """The price list in force. A price that can't be relied on is null, and `problem` says why: it is never free."""

    @extend_schema(**described.PRICES, parameters=filters.described(PRICE_FILTERS, paged=True))
    def get(self, request: HttpRequest) -> Response:
        found = pagination.read_filters(request, PRICE_FILTERS)
        active = ActiveDocument.objects.filter(kind=Document.Kind.PRICES).values("document")
        values = Price.objects.filter(document__in=active, **found).values(*PRICE_FIELDS)
        page = pagination.page(request, values, pagination.BY_NUMBER)
        return Response(page.of([_price(row) for row in page.rows]))


class EnvironmentList(Door):
    """Where things can run."""

    @extend_schema(**described.ENVIRONMENTS, parameters=filters.described((), paged=True))
    def get(self, request: HttpRequest) -> Response:
        pagination.read_filters(request, ())
        values = Environment.objects.values("slug", "title", "labels", "control_plane")
        page = pagination.page(request, values, pagination.BY_SLUG)
        return Response(page.of([_environment(row) for row in page.rows]))


PRICE_FIELDS = ("id", "sku", "unit", "price", "currency", "region", "effective_from", "source", "as_of", "problem")


def _team(row: Row, roles: dict[int, str]) -> dict[str, Any]:
    return {
        "slug": row["slug"],
        "title": row["title"],
        "parent": row["parent__slug"],
        "role": roles.get(row["id"]),
    }


def _quota(row: Row) -> dict[str, Any]:
    return {
        "team": row["team__slug"],
        "dimension": row["dimension"],
        "limit": row["limit"],
        "reserved": row["reserved"],
        "used": row["used"],
    }


def _budget(row: Row) -> dict[str, Any]:
    return {
        "team": row["team__slug"],
        "currency": row["currency"],
        "soft": money(row["soft"]),
        "hard": money(row["hard"]),
        "committed": money(row["committed"]),
    }


def _price(row: Row) -> dict[str, Any]:
    return {
        "sku": row["sku"],
        "unit": row["unit"],
        "price": money(row["price"]),
        "currency": row["currency"],
        "region": row["region"],
        "effectiveFrom": row["effective_from"].isoformat(),
        "source": row["source"],
        "asOf": row["as_of"].isoformat(),
        "problem": row["problem"],
    }


def _environment(row: Row) -> dict[str, Any]:
    return {
        "slug": row["slug"],
        "title": row["title"],
        "labels": row["labels"],
        "controlPlane": label_of(row["control_plane"]),
    }
