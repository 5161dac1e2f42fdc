"""Taking back and asking for what others set, in the OpenAPI document."""

from __future__ import annotations

from rest_framework import serializers

from portal.api.schemas import examples
from portal.api.schemas.common import asked, example, operation, problem_example, shape, text, url, uuid
from portal.api.schemas.instances import DriftedField
from portal.domain.draft import MAX_REASON

TAG = "instances"
_LINKS = shape("DriftLinks", **{"self": url()}, page=url())
TAKEN_BACK = shape("TakenBack", instance=uuid(), fields=DriftedField(many=True), links=_LINKS())
ASKED_FOR = shape("AskedFor", request=uuid(), state=text(help_text="Of the request"), links=_LINKS())
NOTHING = {"application/json": {"type": "object", "additionalProperties": False}}
REASON = shape("ReasonForDrift", reason=serializers.CharField(required=False, allow_blank=True, max_length=MAX_REASON))
_OF_A_REQUEST = {name: examples.REQUEST["links"][name] for name in ("self", "page")}
_NOT_FOUND = problem_example(404, "not-found", "There is no instance '…' that you can see.")
_NO_DRIFT = problem_example(409, "no-drift", "ranking is as it was approved: there is nothing to take back.")
TAKE_BACK = operation(
    "takeBackDrift",
    "Apply what was approved again, by force",
    TAG,
    TAKEN_BACK,
    [
        asked("nothing", {}),
        example(
            "taken back",
            {
                "instance": examples.INSTANCE_ID,
                "fields": examples.INSTANCE["drift"],
                "links": examples.INSTANCE["links"],
            },
        ),
        _NOT_FOUND,
        _NO_DRIFT,
    ],
    errors=(404, 409),
    request=NOTHING,
)
ASK = operation(
    "askForDrift",
    "Ask for the live values as a change",
    TAG,
    ASKED_FOR,
    [
        asked("a reason", {"reason": "The load has doubled."}),
        example(
            "asked",
            {"request": examples.REQUEST_ID, "state": "Waiting", "links": _OF_A_REQUEST},
        ),
        _NOT_FOUND,
        _NO_DRIFT,
    ],
    errors=(404, 409),
    request=REASON,
)
