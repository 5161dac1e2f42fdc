"""The catalog feed in the OpenAPI document."""

from __future__ import annotations

from rest_framework import serializers

from portal.api.schemas import examples
from portal.api.schemas.common import AnyObject, example, operation, problem_example, shape, text, url

TAG = "catalog feed"
CatalogEntities = shape(
    "CatalogEntities",
    entities=serializers.ListField(child=AnyObject(), help_text="Backstage descriptors"),
    cursor=text(help_text="Where catalog/changes/ goes on"),
    next=url(null=True),
    complete=serializers.BooleanField(help_text="true on the last page only"),
)
CatalogChanges = shape(
    "CatalogChanges",
    upserted=serializers.ListField(child=AnyObject()),
    removed=serializers.ListField(child=text(), help_text="Entity references"),
    cursor=text(help_text="Where to go on"),
    more=serializers.BooleanField(help_text="true: ask again at once"),
)
ENTITIES = operation(
    "listEntities", "All entities", TAG, CatalogEntities, [example("entities", examples.ENTITIES)], errors=(410,)
)
CHANGES = operation(
    "listEntityChanges",
    "What changed since a cursor",
    TAG,
    CatalogChanges,
    [
        example("changes", examples.CHANGES),
        problem_example(410, "cursor-expired", "Changes since 12 are not known here. Read all entities anew."),
    ],
    errors=(410,),
)
