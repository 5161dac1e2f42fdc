"""Sends a form's draft to the services, and brings refusals back to the fields; for every form that makes a request.

In charge of: preview and submission of a DraftForm. Whatever goes wrong, the form is shown again with all that was
typed. Not in charge of: the forms, or the pages they are on.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

from portal.adapters import control_plane
from portal.domain.decision import Decision
from portal.domain.draft import Draft
from portal.domain.schema import Problem
from portal.models import Request
from portal.services import rehearsing, submitting
from portal.services.access import Actor
from portal.services.errors import InvalidInput, ServiceError
from portal.web.doors import status_of
from portal.web.figures import Figures, figures
from portal.web.forms import DraftForm, merge
from portal.web.rehearsals import Said, said
from portal.web.specs import changes

FIELDS_OF_CODES = {"name-taken": "/name", "not-a-member": "/team"}


@dataclass(frozen=True)
class Preview:
    """What would be decided, or what is missing before that can be told."""

    figures: Figures | None = None
    problems: list[str] = field(default_factory=list)
    differences: list[tuple[str, str, str]] = field(default_factory=list)  # of a change: place, old, new
    spoken: str = ""  # one sentence for screen readers

    @property
    def incomplete(self) -> bool:
        return self.figures is None


@dataclass(frozen=True)
class Sent:
    """The request, or the status with which the form is shown again."""

    request: Request | None = None
    status: int = 200
    message: str = ""


def preview(form: DraftForm, acting: Actor, *, place_errors: bool = False) -> Preview:
    """What submitting would bring. `place_errors`: show problems at the fields too (nobody is typing there now)."""
    draft = form.draft()
    try:
        if form.problems or isinstance(draft, list):
            raise InvalidInput(_all_problems(form, draft, acting))
        found = submitting.preview(draft, acting=acting)
    except ServiceError as error:
        problems = _problems_of(error)
        if place_errors:
            form.show(problems)
        unplaced = [_sentence(form, problem) for problem in problems]
        return Preview(None, unplaced, spoken=f"No preview yet: {len(unplaced)} to fill in or correct.")
    shown = figures(found.decision, found.inputs)
    return Preview(shown, [], changes(found.proposal.difference), _spoken(shown, found.decision))


def rehearsal(form: DraftForm, acting: Actor) -> Said | None:
    """What the control plane says of it; None while it can't be asked, or makes no claim."""
    draft = form.draft()
    if form.problems or isinstance(draft, list):
        return None
    try:
        return said(rehearsing.rehearse(submitting.preview(draft, acting=acting), control_plane))
    except ServiceError:
        return None  # the preview beside it says why


def submit(form: DraftForm, acting: Actor) -> Sent:
    """The stored request; or the form gets its errors, and nothing was written."""
    draft = form.draft()
    try:
        if form.problems or isinstance(draft, list):
            raise InvalidInput(_all_problems(form, draft, acting))
        done = submitting.submit(draft, acting=acting)
    except ServiceError as error:
        if error.code == "idempotency-key-reused":
            form.key = str(uuid.uuid4())
            sent = Problem(
                "", error.code, "You have sent this form already, with other values. Send it again to ask anew."
            )
            form.show([sent])
        else:
            form.show(_problems_of(error))
        return Sent(status=status_of(error))
    return Sent(done.request, message=_receipt(done.request, done.created))


def _all_problems(form: DraftForm, draft: Draft | list[Problem], acting: Actor) -> list[Problem]:
    """What was typed wrongly, and all else that is wrong too, so that nobody corrects in rounds."""
    if isinstance(draft, list):
        return merge(form.problems, draft)
    try:
        submitting.preview(draft, acting=acting)
    except InvalidInput as error:
        return merge(form.problems, error.problems)
    except ServiceError:
        pass  # is told when the rest is right
    return form.problems


def _problems_of(error: ServiceError) -> list[Problem]:
    if isinstance(error, InvalidInput):
        return error.problems
    return [Problem(FIELDS_OF_CODES.get(error.code, ""), error.code, error.message)]


def _sentence(form: DraftForm, problem: Problem) -> str:
    fields = [each for top in form.fields for each in top.walk() if each.pointer]
    owner = next((each for each in fields if each.pointer == problem.pointer), None)
    where = owner.label if owner else problem.pointer.removeprefix("/spec")[1:].replace("/", ".")
    return f"{where}: {problem.message}" if where else problem.message


def _spoken(shown: Figures, decision: Decision) -> str:
    unknown = decision.quote is not None and decision.quote.monthly is None
    price = f", {'price ' if unknown else ''}{shown.price}" if shown.price else ""
    if decision.outcome == "NeedsApproval":
        groups = " and ".join(dict.fromkeys(stage.group for stage in decision.stages))
        return f"Preview: needs approval by {groups}{price}."
    return f"Preview: {shown.sentence.lower()}{price}."


def _receipt(request: Request, created: bool) -> str:
    if not created:
        return "This request was sent already; here it is."
    return {
        "Denied": "The policies deny this request. Below is why, and what would pass.",
        "Waiting": "Your request was sent. It needs approval.",
    }.get(request.state, "Your request was sent, and allowed at once.")  # where it is by now, the page says
