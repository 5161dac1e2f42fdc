"""A text governs only if it has the digest it is asked for by, and a price only if it is that of its file."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.test import Client

from portal.models import ActiveDocument, Document, Request
from portal.services import loading, submitting
from portal.services.errors import ServiceError
from portal.services.explaining import explain
from tests.sample import actor, draft, model_body
from tests.tampering import forget_what_was_parsed, tamper
from tests.world import World, build_world, submit

pytestmark = [pytest.mark.slow, pytest.mark.django_db]

TEXT = """UPDATE portal_document SET texts = jsonb_set(texts, ARRAY[%s], to_jsonb(replace(texts->>%s, %s, %s)))
    WHERE digest = %s"""


@pytest.fixture(autouse=True)
def _nothing_parsed() -> Iterator[None]:
    forget_what_was_parsed()
    yield
    forget_what_was_parsed()


def active(kind: str, name: str = "default") -> str:
    return str(ActiveDocument.objects.get(kind=kind, name=name).document_id)


def edit(digest: str, file: str, old: str, new: str) -> None:
    before = Document.objects.get(pk=digest).texts[file]
    tamper(TEXT, [file, file, old, new, digest])
    assert Document.objects.get(pk=digest).texts[file] != before
    forget_what_was_parsed()


def edit_bundle() -> tuple[str, str]:
    edit(active("bundle"), "bundle.yaml", "quorum: 2", "quorum: 1")
    return active("bundle"), "bundle 'default'"


def edit_offering() -> tuple[str, str]:
    digest = active("offering", "modeldeployments")
    edit(digest, "offering.yaml", "spec.accelerator.count * spec.replicas.max", "spec.accelerator.count")
    return digest, "offering 'modeldeployments'"


def rename_offering() -> tuple[str, str]:
    digest = active("offering", "modeldeployments")
    tamper("UPDATE portal_document SET name = 'others' WHERE digest = %s", [digest])
    forget_what_was_parsed()
    return digest, "offering 'others'"


def empty_offering() -> tuple[str, str]:
    digest = active("offering", "modeldeployments")
    tamper("UPDATE portal_document SET texts = '[1]' WHERE digest = %s", [digest])
    forget_what_was_parsed()
    return digest, "offering 'modeldeployments'"


def edit_price_list() -> tuple[str, str]:
    edit(active("prices"), "prices.csv", "0.80", "0.08")
    return active("prices"), "prices 'default'"


def cheaper() -> tuple[str, str]:
    tamper("UPDATE portal_price SET price = 0.01 WHERE sku = %s", ["gpu.l4"])
    return active("prices"), "prices 'default'"


def another_currency() -> tuple[str, str]:
    tamper("UPDATE portal_price SET currency = %s", ["JPY"])
    return active("prices"), "prices 'default'"


def fewer_prices() -> tuple[str, str]:
    tamper("DELETE FROM portal_price WHERE sku = %s", ["gpu.l4"])
    return active("prices"), "prices 'default'"


def no_prices() -> tuple[str, str]:
    tamper("DELETE FROM portal_price WHERE sku <> %s", [""])
    return active("prices"), "prices 'default'"


WAYS = [
    edit_bundle,
    edit_offering,
    rename_offering,
    empty_offering,
    edit_price_list,
    cheaper,
    another_currency,
    fewer_prices,
    no_prices,
]
TEXTS = [edit_bundle, edit_offering, rename_offering, empty_offering]


@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_decided_by_what_was_altered(sample: None, way) -> None:  # type: ignore[no-untyped-def]
    digest, named = way()
    for act in (submitting.preview, submitting.submit):
        with pytest.raises(ServiceError) as refused:
            act(draft(model_body()), acting=actor("ada"))
        assert refused.value.code == "document-altered"
        assert named in refused.value.message and digest in refused.value.message
    assert not Request.objects.exists()


@pytest.mark.parametrize("way", TEXTS)
@pytest.mark.parametrize("parsed", [True, False], ids=["in the process that parsed it", "in a new process"])
def test_explain_shows_that_a_text_was_altered(sample: None, way, parsed: bool) -> None:  # type: ignore[no-untyped-def]
    request = submit("ada", model_body())
    digest, named = way()
    if parsed and way is rename_offering:
        pytest.skip("a name is not a part of the digest, and what was parsed is still right")
    [explanation] = explain(request.pk)
    [difference] = explanation.differences
    assert difference.path == "/inputs"
    assert "document-altered" in difference.again and named in difference.again and digest in difference.again
    shown = StringIO()
    with pytest.raises(CommandError) as failed:
        call_command("explain", str(request.pk), stdout=shown)
    assert failed.value.returncode == 1
    assert digest in shown.getvalue()


def test_an_altered_bundle_is_not_made_active_under_a_new_digest(sample: None) -> None:
    """Offerings are loaded alone: the active bundle is checked against them, and its text is not taken on trust."""
    digest, _ = edit_bundle()
    with pytest.raises(ServiceError, match="document-altered"):
        loading.load_all(settings.OFFERINGS_PATH, None, None, system="tests")
    assert active("bundle") == digest


def test_what_is_stored_as_it_was_loaded_governs(sample: None) -> None:
    for row in ActiveDocument.objects.all():
        assert loading.stored_texts(Document.Kind(row.kind), row.document_id)
    assert submit("ada", model_body()).state == "Approved"


@pytest.fixture
def people() -> World:
    return build_world()


@pytest.mark.parametrize("path", ["requests/", "requests/preview/"])
@pytest.mark.parametrize("way", [edit_bundle, cheaper])
def test_the_api_says_503(people: World, path: str, way) -> None:  # type: ignore[no-untyped-def]
    digest, _ = way()
    answer = Client().post(
        f"/api/v1/{path}",
        model_body(),
        content_type="application/json",
        headers={"Authorization": f"Bearer {people.tokens['ada']}", "Idempotency-Key": "once"},
    )
    assert (answer.status_code, answer.json()["code"]) == (503, "document-altered")
    assert digest in answer.json()["detail"]
