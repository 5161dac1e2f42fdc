"""The catalog feed in the OpenAPI document."""

from __future__ import annotations

from rest_framework import serializers

from portal.api.schemas import examples
from portal.api.schemas.common import AnyObject, example, operation, problem_example, shape, text, url, uuid

TAG = "catalog feed"
_FEED = "Whose entities these are. Another one than before: another database, which may know less than there is"
CatalogEntities = shape(
    "CatalogEntities",
    entities=serializers.ListField(
        child=AnyObject(),
        help_text="Backstage descriptors: Components, Resources, their APIs, and the Systems of teams and environments",
    ),
    cursor=text(help_text="Where catalog/changes/ goes on"),
    next=url(null=True),
    complete=serializers.BooleanField(help_text="true on the last page only"),
    feed=uuid(help_text=_FEED),
)
CatalogChanges = shape(
    "CatalogChanges",
    upserted=serializers.ListField(child=AnyObject()),
    removed=serializers.ListField(child=text(), help_text="Entity references"),
    cursor=text(help_text="Where to go on"),
    more=serializers.BooleanField(help_text="true: ask again at once"),
    feed=uuid(help_text=_FEED),
)
ENTITIES = operation(
    "listEntities", "All entities", TAG, CatalogEntities, [example("entities", examples.ENTITIES)], errors=(410,)
)
CHANGES = operation(
    "listEntityChanges",
    "What changed since a cursor; with `wait` as soon as something does",
    TAG,
    CatalogChanges,
    [
        example("changes", examples.CHANGES),
        problem_example(410, "cursor-expired", "Changes since this cursor are not known here. Read all entities anew."),
    ],
    errors=(410,),
)
