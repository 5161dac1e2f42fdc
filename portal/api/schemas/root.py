"""The root in the OpenAPI document."""

from __future__ import annotations

from rest_framework import serializers

from portal.api.schemas.common import URL, Labels, example, operation, shape, text

Root = shape(
    "Root",
    version=text(),
    you=shape(
        "You",
        username=text(),
        groups=serializers.ListField(child=text()),
        scopes=serializers.ListField(child=text(), allow_null=True, help_text="null: a session, not a token"),
    )(),
    links=Labels(),
)
ROOT = operation(
    "readRoot",
    "Where everything is, and who is asking",
    "root",
    Root,
    [
        example(
            "root",
            {
                "version": "v1",
                "you": {"username": "ada", "groups": ["platform-approvers"], "scopes": ["approve", "read"]},
                "links": {"requests": f"{URL}/requests/"},
            },
        )
    ],
)
