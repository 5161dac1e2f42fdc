"""An offering's title for people, where a row holds its name."""

from __future__ import annotations

from django import template

from portal.models import Instance, Request
from portal.services import loading

register = template.Library()


@register.filter
def offering_title(row: Instance | Request) -> str:
    """The title in the files that this row was made with; parsed once per digest, so lists cost no query per row."""
    return loading.offering_by_digest(row.document_id).title if row.document_id else row.offering
