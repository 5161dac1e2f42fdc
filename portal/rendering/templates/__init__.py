"""Backstage templates (scaffolder.backstage.io/v1beta3), built from what offerings say of themselves.

In charge of: which templates there are, and their files. `form` makes pages of a schema, `steps` what a template does.
Not in charge of: reading offerings or writing files (management/commands/build_templates).

Each is made in two flavours: `http` needs nothing but Roadie's http:backstage:request, `actions` the backend module,
whose tasks wait, tell as they go, and fail with the portal's reasons.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from portal.domain import strict_yaml
from portal.domain.offerings import Offering
from portal.rendering.templates import form, steps
from portal.rendering.templates.steps import FLAVOURS, Flavour

HEAD = "# Built by `manage.py build_templates` from crossplane/apis: edit there, and build again.\n"


def files(offerings: Iterable[tuple[Offering, form.Hints]]) -> dict[str, str]:
    """Every file by its path below scaffolder-templates/."""
    found: dict[str, str] = {}
    known = sorted(offerings, key=lambda each: each[0].name)
    for flavour in FLAVOURS:
        templates = [template for each in known for template in _of_offering(*each, flavour)]
        templates += [_of_any(verb, flavour) for verb in ("suspend", "resume", "delete")]
        templates.append(_vote(flavour))
        for each in templates:
            found[f"{flavour}/{each['metadata']['name']}.yaml"] = _text(each)
        targets = [f"./{each['metadata']['name']}.yaml" for each in templates]
        found[f"{flavour}/all.yaml"] = _text(
            {
                "apiVersion": "backstage.io/v1alpha1",
                "kind": "Location",
                "metadata": {"name": f"portal-templates-{flavour}", "description": "All templates of the portal"},
                "spec": {"targets": sorted(targets)},
            }
        )
    return found


def name_of(verb: str, offering: str, flavour: Flavour = "http") -> str:
    """A template's name, such as portal-OFFERING-request; `offering` is "" where it is for all."""
    parts = ["portal", *([offering] if offering else []), verb, *(["actions"] if flavour == "actions" else [])]
    return "-".join(parts)


def _of_offering(offering: Offering, hints: form.Hints, flavour: Flavour) -> list[dict[str, Any]]:
    spec = form.spec_page(offering, hints)
    request = _template(
        name_of("request", offering.name, flavour),
        f"Request a {offering.title[0].lower()}{offering.title[1:]}",
        offering.description,
        offering.catalog.type,
        flavour,
        [form.where_page(offering), spec.page],
        steps.create(offering.name, spec.values, flavour),
    )
    change = _template(
        name_of("change", offering.name, flavour),
        f"Change a {offering.title[0].lower()}{offering.title[1:]}",
        f"What is there is replaced by what you give here, as a whole. {offering.description}",
        offering.catalog.type,
        flavour,
        [form.which_page(offering.name), spec.page],
        steps.change(spec.values, flavour),
    )
    return [request, change]


_ABOUT = {
    "suspend": ("Suspend", "Stops it and keeps its data. Models give their accelerators back."),
    "resume": ("Resume", "Starts again what was suspended, if there is room."),
    "delete": ("Delete", "Removes it with its data. This can't be undone."),
}


def _of_any(verb: str, flavour: Flavour) -> dict[str, Any]:
    title, description = _ABOUT[verb]
    return _template(
        name_of(verb, "", flavour),
        f"{title} what runs",
        description,
        "service",
        flavour,
        [form.which_page("")],
        steps.of_instance(title, flavour),
    )


def _vote(flavour: Flavour) -> dict[str, Any]:
    return _template(
        name_of("vote", "", flavour),
        "Approve or reject a request",
        "Your vote on a request that waits for you. Nobody votes on a request of their own.",
        "service",
        flavour,
        [form.vote_page()],
        steps.vote(flavour),
    )


def _template(
    name: str,
    title: str,
    description: str,
    kind: str,
    flavour: Flavour,
    pages: list[dict[str, Any]],
    made: Mapping[str, Any],
) -> dict[str, Any]:
    return {
        "apiVersion": "scaffolder.backstage.io/v1beta3",
        "kind": "Template",
        "metadata": {
            "name": name,
            "title": title,
            "description": description,
            "tags": ["ai-platform", flavour],
        },
        "spec": {"owner": "group:default/platform-team", "type": kind, "parameters": pages, **made},
    }


def _text(value: dict[str, Any]) -> str:
    return HEAD + strict_yaml.dump(value)
