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
Me = shape(
    "Me",
    username=text(),
    ref=text(null=True, help_text="How Backstage calls this person"),
    teams=shape("MyTeam", slug=text(), role=text(choices=["member", "owner"]))(many=True),
    groups=serializers.ListField(child=text(), help_text="Those that one may approve for"),
    scopes=serializers.ListField(child=text(), allow_null=True, help_text="null: a person, not a token with scopes"),
)
ME = operation(
    "readMe",
    "Who is asking: teams, groups, scopes",
    "root",
    Me,
    [
        example(
            "me",
            {
                "username": "ada",
                "ref": "user:default/ada",
                "teams": [{"slug": "search", "role": "owner"}],
                "groups": ["platform-approvers"],
                "scopes": None,
            },
        )
    ],
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
