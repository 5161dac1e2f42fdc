"""Signed approvals: which count, for what, and what is said of the others."""

import base64
import copy
import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Any

import pytest
from composition_function import approvals
from composition_function.approvals import judge
from composition_function.contract import Approval
from cryptography.hazmat.primitives.asymmetric import ed448
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.crossplane.approved import KEY, NOW, OTHER_KEY, Manifest, approve, key_map, payload_for, pem, sign
from tests.crossplane.samples import EXAMPLES, MODEL, PGVECTOR, PRODUCTION, QDRANT, example, name_of


def verdict(claim: Manifest, keys: Manifest | None = None, now: float = NOW) -> Approval:
    """The verdict, with the key that signs by default."""
    return judge(claim, [keys or key_map()], now)


@pytest.mark.parametrize("path", EXAMPLES, ids=name_of)
def test_what_was_approved_is_granted(path: Any) -> None:
    claim = approve(example(path.stem), now=NOW)
    assert verdict(claim).granted, verdict(claim)
    assert "1c9b7f6e-33a1-4be7-8a54-1f8ad0b6a0d3" in verdict(claim).message, "the request is found again"


def test_what_crossplane_writes_into_the_spec_is_not_the_portals() -> None:
    claim = approve(example(MODEL), now=NOW)
    claim["spec"]["crossplane"] = {"compositionRef": {"name": "modeldeployments-kserve"}}
    assert verdict(claim).granted


def test_numbers_come_as_floats() -> None:
    claim = approve(example(MODEL), now=NOW)
    claim["spec"]["contextLength"] = float(claim["spec"]["contextLength"])
    assert verdict(claim).granted


def test_two_keys_count_while_one_takes_over_from_the_other() -> None:
    both = key_map(k1=pem(), k2=pem(OTHER_KEY))
    claim = example(MODEL)
    assert verdict(approve(claim, now=NOW), both).granted
    assert verdict(approve(claim, sign(payload_for(claim), OTHER_KEY, kid="k2")), both).granted
    crossed = verdict(approve(claim, sign(payload_for(claim), OTHER_KEY, kid="k1")), both)
    assert (crossed.granted, crossed.reason) == (False, "ApprovalInvalid"), "a key signs under its own id only"


def scaled(low: int, most: int) -> Callable[[Manifest], None]:
    return lambda claim: claim["spec"].update(replicas={"min": low, "max": most})


def changed(**fields: Any) -> Callable[[Manifest], None]:
    return lambda claim: claim["spec"].update(fields)


def renamed(**fields: Any) -> Callable[[Manifest], None]:
    return lambda claim: claim["metadata"].update(fields)


ONE_H100 = {"class": "h100-80gb", "count": 1}
ANOTHER_MODEL = {"source": "hf://other/model", "revision": "main", "quantization": "none"}
EDITED = [
    (PRODUCTION, scaled(2, 2), None, "", "more at least, within the most"),
    (PRODUCTION, scaled(1, 1), None, "", "less at most"),
    (PRODUCTION, scaled(1, 3), "ApprovalExceeded", "6 of gpu.h100-80gb, and 4 are approved", "beyond the ceiling"),
    (PRODUCTION, changed(accelerator=ONE_H100), "ApprovalExceeded", "/spec/accelerator/count", "less, not as approved"),
    (PRODUCTION, changed(concurrency=8), "ApprovalExceeded", "/spec/concurrency", "what a replica does is no scaling"),
    (PRODUCTION, changed(suspend=True), None, "", "anybody may stop it"),
    (PRODUCTION, lambda claim: claim["spec"].pop("suspend"), None, "", "absent is not suspended"),
    (MODEL, changed(model=ANOTHER_MODEL), "ApprovalExceeded", "/spec/model/source", "another model"),
    (MODEL, changed(regions=["us-east"]), "ApprovalExceeded", "/spec/regions", "another place"),
    (MODEL, lambda claim: claim["spec"].pop("concurrency"), "ApprovalExceeded", "/spec/concurrency", "a field is gone"),
    (PRODUCTION, changed(**{"replicas/max": 9}), "ApprovalExceeded", "~1max", "a field that looks like a path"),
    (MODEL, changed(extra=False), "ApprovalExceeded", "/spec/extra", "a field more"),
    (MODEL, changed(a=1, b=2, c=3, d=4), "ApprovalExceeded", "and 1 more", "many differences are counted"),
    (QDRANT, changed(vectors=5_000_001), "ApprovalExceeded", "/spec/vectors", "no field of a database scales"),
    (QDRANT, changed(vectors=1), "ApprovalExceeded", "/spec/vectors", "less is not as approved either"),
    (PGVECTOR, changed(highAvailability=1), "ApprovalExceeded", "/spec/highAvailability", "1 is not true"),
    (MODEL, renamed(name="other"), "ApprovalForeign", "search-dev/chat", "copied to another claim"),
    (MODEL, renamed(namespace="other"), "ApprovalForeign", "search-dev/chat", "copied to another namespace"),
    (MODEL, lambda claim: claim.update(kind="VectorDatabase"), "ApprovalForeign", "ModelDeployment", "another kind"),
    (MODEL, lambda claim: claim.update(apiVersion="a/v9"), "ApprovalForeign", "v1alpha1", "another version"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "edit", "reason", "says", "why"), EDITED, ids=[case[4] for case in EDITED])
def test_an_edited_claim(name: str, edit: Callable[[Manifest], None], reason: str | None, says: str, why: str) -> None:
    claim = approve(example(name), now=NOW)
    edit(claim)
    found = verdict(claim)
    assert (found.granted, found.reason) == (reason is None, reason or "Approved"), why
    assert says in found.message
    assert not found.keeps


def test_starting_again_is_asked_for() -> None:
    claim = example(QDRANT)
    claim["spec"]["suspend"] = True
    approve(claim, now=NOW)
    claim["spec"]["suspend"] = False
    assert (verdict(claim).reason, "/spec/suspend" in verdict(claim).message) == ("ApprovalExceeded", True)
    model = example(MODEL)
    model["spec"]["suspend"] = True
    assert payload_for(model)["ceilings"] == {"gpu.l4": 0}


def test_an_approval_from_before_the_field_existed_means_not_suspended() -> None:
    claim = example(MODEL)
    payload = payload_for(claim)
    del payload["spec"]["suspend"]
    assert verdict(approve(claim, sign(payload))).granted


def told(**changes: Any) -> str:
    """An approval of the example whose payload says something else; None takes a member away."""
    payload = {**payload_for(example(MODEL)), **changes}
    return sign({key: value for key, value in payload.items() if value is not None})


def unsigned(header: Manifest, payload: Manifest | None = None, secret: bytes | None = None) -> str:
    """A token made by hand: no library would make some of these."""
    parts = [json.dumps(header), json.dumps(payload or payload_for(example(MODEL)))]
    encoded = ".".join(base64.urlsafe_b64encode(part.encode()).rstrip(b"=").decode() for part in parts)
    signature = b"" if secret is None else hmac.new(secret, encoded.encode(), hashlib.sha256).digest()
    return f"{encoded}.{base64.urlsafe_b64encode(signature or b'none').rstrip(b'=').decode()}"


HEADER = {"alg": "EdDSA", "kid": "k1", "typ": "approval+jwt"}
NESTED = base64.urlsafe_b64encode(b"[" * 8_000).rstrip(b"=").decode()
GOOD = sign(payload_for(example(MODEL)))
HOSTILE: list[tuple[object, str, str]] = [
    ("", "ApprovalMissing", "empty"),
    (7, "ApprovalMissing", "a number"),
    ({"a": "b"}, "ApprovalMissing", "an object"),
    ("yes", "ApprovalInvalid", "no JWS"),
    ("..", "ApprovalInvalid", "three empty parts"),
    ("a.b.c", "ApprovalInvalid", "three parts of nothing"),
    ("é.é.é", "ApprovalInvalid", "no base64url"),
    (GOOD + "\n", "ApprovalInvalid", "a line break at its end"),
    (GOOD + "." + GOOD, "ApprovalInvalid", "two of them"),
    (told(reason="x" * 25_000), "ApprovalInvalid", "huge, although it is one"),
    (f"{NESTED}.{NESTED}.AAAA", "ApprovalInvalid", "a header nested too deep to be read"),
    (f"{GOOD.split('.')[0]}.{NESTED}.AAAA", "ApprovalInvalid", "a payload nested too deep to be read"),
    (unsigned({**HEADER, "alg": "none"}), "ApprovalInvalid", "alg none"),
    (unsigned({**HEADER, "alg": "HS256"}, secret=pem().encode()), "ApprovalInvalid", "HS256 with the public key"),
    (unsigned({**HEADER, "alg": ["EdDSA"]}), "ApprovalInvalid", "a list of algorithms"),
    (sign(payload_for(example(MODEL)), typ="JWT"), "ApprovalInvalid", "some other token of the portal"),
    (sign(payload_for(example(MODEL)), crit=["exp"]), "ApprovalInvalid", "an extension that has to be understood"),
    (unsigned({**HEADER, "kid": ["k1"]}), "ApprovalInvalid", "a list of key ids"),
    (unsigned({"alg": "EdDSA", "typ": "approval+jwt"}), "ApprovalKeyUnknown", "no key id"),
    (unsigned({**HEADER, "kid": "../k1"}), "ApprovalKeyUnknown", "a key id that is a path"),
    (unsigned(HEADER), "ApprovalInvalid", "no signature"),
    (GOOD[:-8] + "AAAAAAAA", "ApprovalInvalid", "another signature"),
    (sign(payload_for(example(MODEL)), OTHER_KEY), "ApprovalInvalid", "signed by somebody else"),
    (sign(payload_for(example(MODEL)), OTHER_KEY, kid="k2"), "ApprovalKeyUnknown", "a key that is not published"),
    (told(iss="someone"), "ApprovalInvalid", "another issuer"),
    (told(aud="another-function"), "ApprovalInvalid", "for somebody else"),
    (told(aud=None), "ApprovalInvalid", "for nobody"),
    (told(exp=None), "ApprovalInvalid", "for ever"),
    (told(exp="tomorrow"), "ApprovalInvalid", "until a word"),
    (told(exp=1e300), "ApprovalInvalid", "until the end of time"),
    (told(exp=True), "ApprovalInvalid", "until true"),
    (told(sub=7), "ApprovalInvalid", "of an instance that is a number"),
    (told(claim=None), "ApprovalInvalid", "of nothing"),
    (told(claim="chat"), "ApprovalInvalid", "of a word"),
    (told(spec=[]), "ApprovalInvalid", "a spec that is a list"),
    (told(ceilings=None), "ApprovalInvalid", "no ceilings"),
    (told(ceilings={}), "ApprovalExceeded", "no ceiling for what it takes is none of it"),
    (told(ceilings={"gpu.l4": "9"}), "ApprovalInvalid", "a ceiling that is a text"),
    (told(ceilings={"gpu.l4": True}), "ApprovalInvalid", "a ceiling that is true"),
    (told(ceilings={"gpu.l4": 1.5}), "ApprovalInvalid", "a ceiling of one and a half"),
]  # fmt: skip


@pytest.mark.parametrize(("token", "reason", "why"), HOSTILE, ids=[case[2] for case in HOSTILE])
def test_what_is_no_approval_is_said_to_be_none(token: object, reason: str, why: str) -> None:
    found = verdict(approve(example(MODEL), token))
    assert (found.granted, found.reason, found.keeps) == (False, reason, False), (why, found)
    assert 40 < len(found.message) < 600, "a sentence that a person can act on"
    assert found.message.isprintable()


def test_a_token_from_the_future_blames_the_clocks() -> None:
    found = verdict(approve(example(MODEL), now=NOW + 3600))
    assert (found.reason, "clocks" in found.message) == ("ApprovalInvalid", True)
    assert verdict(approve(example(MODEL), now=NOW + 30)).granted, "clocks differ by a little"


def test_an_expired_approval_is_told_apart_since_it_keeps_what_runs() -> None:
    claim = approve(example(MODEL), now=NOW)
    assert verdict(claim, now=NOW + 3600).granted
    found = verdict(claim, now=NOW + 3700)
    assert (found.granted, found.reason, found.keeps) == (False, "ApprovalExpired", True)
    claim["spec"]["contextLength"] = 256
    assert not verdict(claim, now=NOW + 3700).keeps, "it was never an approval of this"


@pytest.mark.parametrize(
    ("config_maps", "says", "reason"),
    [
        ([], "has: none", "the ConfigMap is not there"),
        ([{"kind": "ConfigMap"}], "has: none", "it is empty"),
        ([{"data": "k1.pem"}], "has: none", "it is something else"),
        ([key_map(k2=pem())], "has: k2", "other keys"),
        ([key_map(k1="")], "no Ed25519 public key", "an empty key"),
        ([key_map(k1="-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n")], "no Ed25519", "a broken key"),
        ([{"data": {"k1.pem": 7}}], "no Ed25519", "a number"),
        (
            [
                key_map(
                    k1=ed448.Ed448PrivateKey.generate()
                    .public_key()
                    .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
                    .decode()
                )
            ],
            "no Ed25519",
            "a key of the other curve that EdDSA may mean",
        ),
    ],
)
def test_keys_that_are_missing_or_no_keys(config_maps: list[Manifest], says: str, reason: str) -> None:
    found = judge(approve(example(MODEL), now=NOW), config_maps, NOW)
    assert (found.granted, found.reason) == (False, "ApprovalKeyUnknown"), reason
    assert says in found.message
    assert "every 10 s" in found.message, "how long it may take until keys that come are seen"


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.text(max_size=300), st.binary(max_size=200).map(lambda raw: raw.decode("latin-1"))))
def test_anything_at_all_is_refused_and_never_an_exception(token: str) -> None:
    found = verdict(approve(example(MODEL), token))
    assert not found.granted
    assert found.message.isprintable()


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(GOOD) - 1), st.sampled_from("ABCxyz019-_. {\x00"), st.booleans())
def test_a_character_more_or_another_one_and_it_counts_no_longer(at: int, character: str, instead: bool) -> None:
    token = GOOD[:at] + character + GOOD[at + instead :]
    found = verdict(approve(example(MODEL), token))
    # The last character of a base64 part may hold bits that mean nothing.
    same = [decoded(part) for part in token.split(".")] == [decoded(part) for part in GOOD.split(".")]
    assert found.granted is same, found


def decoded(part: str) -> object:
    try:
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except ValueError:
        return part


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(sorted(payload_for(example(MODEL)))), JSON)
def test_whatever_the_portal_signs_the_answer_is_a_verdict(member: str, value: Any) -> None:
    payload = payload_for(example(MODEL))
    try:
        token = sign({**payload, member: value})
    except (TypeError, OverflowError):  # the library refuses to sign some of it
        return
    found = verdict(approve(example(MODEL), token))
    assert found.message.isprintable()
    if found.granted:
        assert member in ("quote", "request", "sub", "iat", "exp") or value == payload[member]


def test_the_verdict_changes_nothing_of_what_it_looks_at() -> None:
    claim, keys = approve(example(MODEL), now=NOW), key_map()
    before = copy.deepcopy((claim, keys))
    judge(claim, [keys], NOW)
    assert (claim, keys) == before


def test_the_portals_keys_are_asked_for_by_name() -> None:
    assert (approvals.KEYS.match_name, approvals.KEYS.namespace) == ("portal-approval-keys", "portal-system")
    assert KEY.public_key() != OTHER_KEY.public_key()
