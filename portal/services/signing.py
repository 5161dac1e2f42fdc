"""Signs what was approved, and looks after the keys: one is made at the first use, others follow by rotation.

    make -> publish to every control plane -> sign (from `active_from` on) -> a newer one signs -> retire

A key's public half is published from the start until it is retired; it signs only once every control plane that an
environment names has it, so that no approval arrives before the key that proves it. The private half is stored
encrypted with a key derived from SECRET_KEY. Not in charge of: what an approval says (rendering.approval_token), what
is done about a wrong one (the composition function), applying claims again (reapplying).
"""

from __future__ import annotations

import base64
import datetime as dt
import re
import secrets
from typing import Any

import jwt
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone

from portal.domain.lifecycle import InstancePhase
from portal.domain.offerings import Offering
from portal.models import Environment, Instance, SigningKey
from portal.ports import ControlPlane, RetryableError, TerminalError
from portal.rendering.approval_token import TYPE, approval_of, approval_payload, with_approval
from portal.rendering.claim import facts_from_claim
from portal.services import journal
from portal.services.errors import Conflict, NotFound

SYSTEM = "signing"
ALGORITHM = "EdDSA"
# Until when an approval may start or enlarge something; what runs by then is kept by the function whatever the date.
# Long enough to wait for capacity or to be placed anew after a cluster was lost, short enough that an approval of
# yesteryear starts nothing. `manage.py signing_key resign` renews those of living claims.
VALID_FOR = dt.timedelta(days=90)
# The function looks at the keys through the core's cache; what it still remembers must be older than a new key's first
# signature.
SETTLES = dt.timedelta(seconds=60)

_LOCK = "portal:signing-keys"
_published: dict[
    str, tuple[str, ...]
] = {}  # control plane -> ids of the keys that this process has seen published there


def approve(claim: dict[str, Any], offering: Offering) -> dict[str, Any]:
    """The claim with its signed approval and its ceilings. Called once per approved change, when its inputs freeze.

    Raises RetryableError while no key can sign, naming the way out.
    """
    ceilings = offering.measure(facts_from_claim(claim).spec)
    now = timezone.now()
    payload = approval_payload(claim, ceilings, now, now + VALID_FOR)
    key = _signing_key(now)
    return with_approval(claim, signed(payload, key.kid, _opened(key)), ceilings)


def signed(payload: dict[str, Any], kid: str, private: Ed25519PrivateKey) -> str:
    """The token: a JWS in compact form (RFC 7515) by Ed25519 (RFC 8037)."""
    return jwt.encode(payload, private, algorithm=ALGORITHM, headers={"kid": kid, "typ": TYPE})


def publish(plane: ControlPlane, *, again: bool = False) -> None:
    """Make sure that a control plane has the public keys; the first key is made here if there is none.

    One query where this process has published the same keys before, unless `again` (what is there may have been
    altered). Raises RetryableError: nothing should be delivered there that its function could not verify.
    """
    keys = living_keys() or [make_first_key()]
    kids = tuple(sorted(key.kid for key in keys))
    if not again and _published.get(plane.name) == kids:
        return
    try:
        plane.publish_approval_keys({key.kid: key.public_pem for key in keys})
    except TerminalError as error:
        # Not the request's fault: it waits for the operator, as long as any other failure is waited out.
        raise RetryableError(error.code, f"The approval keys can't be published: {error.message}") from error
    _note_published(plane.name, kids)
    _published[plane.name] = kids


def make_first_key() -> SigningKey:
    """The key to sign with, made if there is none. Of two processes that ask at once one makes it."""
    with transaction.atomic():
        _lock()
        found = SigningKey.objects.filter(retired_at=None, active_from__isnull=False).first()
        return found or _make(timezone.now())


def rotate() -> SigningKey:
    """A new key, or the one that an earlier rotation made and that is not published everywhere yet. It signs nothing
    before it is; the former one signs until then, and stays published until it is retired."""
    with transaction.atomic():
        _lock()
        waiting = SigningKey.objects.filter(retired_at=None, active_from=None).first()
        return waiting or _make(None)


def retire(kid: str) -> SigningKey:
    """Withdraw a key: what it has signed is an unknown key's from then on. Conflict while it signs, or while living
    claims carry its approvals (`resign` them first). NotFound."""
    with transaction.atomic():
        _lock()
        key = SigningKey.objects.filter(kid=kid, retired_at=None).first()
        if key is None:
            raise NotFound("signing key", kid)
        if key.active_from is not None and current_key(timezone.now()) == key:
            raise Conflict("key-signs", f"{kid} is the key that signs. Rotate first: a newer one has to sign.")
        carriers = [instance for instance in living_instances() if kid_of(instance.claim) == kid]
        if carriers:
            names = ", ".join(f"{each.namespace}/{each.name}" for each in carriers[:10])
            raise Conflict(
                "key-in-use",
                f"{len(carriers)} living claims carry approvals of {kid} ({names}). Give them new ones first: "
                "`manage.py signing_key resign`.",
            )
        key.retired_at = timezone.now()
        key.save(update_fields=["retired_at"])
        journal.record("signing-key.retire", system=SYSTEM, data={"kid": kid})
    return key


def living_keys() -> list[SigningKey]:
    """Keys that are not retired: those whose public halves are published."""
    return list(SigningKey.objects.filter(retired_at=None))


def control_planes() -> set[str]:
    """Names of the control planes that environments deliver to: where every key has to be before it signs."""
    return set(Environment.objects.order_by().values_list("control_plane", flat=True))


def current_key(now: dt.datetime) -> SigningKey | None:
    """The newest key that signs by now."""
    return SigningKey.objects.filter(retired_at=None, active_from__lte=now).order_by("-active_from", "kid").first()


def living_instances() -> list[Instance]:
    """Instances whose claim was frozen and is not gone."""
    found = Instance.objects.filter(claim__isnull=False).exclude(phase=InstancePhase.GONE.value)
    return list(found.select_related("team", "environment", "document").order_by("created_at", "id"))


def kid_of(claim: dict[str, Any] | None) -> str | None:
    """The id of the key that a claim's approval names, None where there is no readable one. Proves nothing."""
    token = approval_of(claim)
    if token is None:
        return None
    try:
        kid = jwt.get_unverified_header(token).get("kid")
    except jwt.InvalidTokenError:
        return None
    # Whatever else somebody writes there is the name of no key, and may be a text that no database takes.
    return kid if isinstance(kid, str) and re.fullmatch(r"[0-9a-z-]{1,63}", kid) else None


def claimed_payload(claim: dict[str, Any]) -> dict[str, Any] | None:
    """What a claim's approval says, whoever has signed it: proves nothing. None where there is no readable one."""
    try:
        payload: dict[str, Any] = jwt.decode(approval_of(claim) or "", options={"verify_signature": False})
    except jwt.InvalidTokenError:
        return None
    return payload


def verified_payload(claim: dict[str, Any]) -> dict[str, Any] | None:
    """What a claim's approval says, if one of the portal's own keys has signed it, retired or not and whatever its
    date; None otherwise. Only that it was signed here is proven, not that it is of this claim."""
    token = approval_of(claim)
    key = SigningKey.objects.filter(kid=kid_of(claim) or "").first()
    if token is None or key is None:
        return None
    checks = {"verify_exp": False, "verify_aud": False}
    try:
        payload: dict[str, Any] = jwt.decode(token, key.public_pem, algorithms=[ALGORITHM], options=checks)  # type: ignore[arg-type]  # a part of Options
    except jwt.InvalidTokenError:
        return None
    return payload


def _signing_key(now: dt.datetime) -> SigningKey:
    key = current_key(now)
    if key is None:
        raise RetryableError("no-signing-key", "No key signs approvals yet; one does once it is published everywhere.")
    return key


def _make(active_from: dt.datetime | None) -> SigningKey:
    private = Ed25519PrivateKey.generate()
    pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    now = timezone.now()
    key = SigningKey.objects.create(
        kid=f"{now:%Y-%m-%d}-{secrets.token_hex(4)}",
        algorithm=ALGORITHM,
        public_pem=public.decode(),
        private_sealed=_seal().encrypt(pem).decode(),
        created_at=now,
        active_from=active_from,
    )
    journal.record("signing-key.create", system=SYSTEM, data={"kid": key.kid, "algorithm": ALGORITHM})
    return key


def _note_published(name: str, kids: tuple[str, ...]) -> None:
    """Remember where keys are. One that every control plane has by now signs from in a moment on."""
    now = timezone.now()
    with transaction.atomic():
        _lock()
        keys = SigningKey.objects.filter(kid__in=kids)
        new = [key for key in keys if name not in key.published]
        for key in new:
            key.published = {**key.published, name: now.isoformat()}
            key.save(update_fields=["published"])
        if new:
            data = {"controlPlane": name, "kids": list(kids)}
            journal.record("signing-key.publish", system=SYSTEM, data=data)
        for key in keys.filter(active_from=None, retired_at=None):
            if control_planes() <= key.published.keys():
                key.active_from = now + SETTLES
                key.save(update_fields=["active_from"])
                data = {"kid": key.kid, "from": key.active_from.isoformat()}
                journal.record("signing-key.activate", system=SYSTEM, data=data)


def _opened(key: SigningKey) -> Ed25519PrivateKey:
    try:
        pem = _seal().decrypt(key.private_sealed.encode())
    except InvalidToken:
        raise RetryableError(
            "signing-key-sealed",
            f"The signing key {key.kid} was stored under another SECRET_KEY and can't be used. Start the portal with "
            "that SECRET_KEY again, or make a new key: `manage.py signing_key rotate`, then `signing_key resign`.",
        ) from None
    private = serialization.load_pem_private_key(pem, password=None)
    if not isinstance(private, Ed25519PrivateKey):
        raise ValueError(f"signing key {key.kid} is no Ed25519 key")
    return private


def _seal() -> Fernet:
    """Encrypts and authenticates with a key of its own, derived from SECRET_KEY (RFC 5869)."""
    derived = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=b"portal.signing_key.v1")
    return Fernet(base64.urlsafe_b64encode(derived.derive(settings.SECRET_KEY.encode())))


def _lock() -> None:
    """One process at a time changes keys, until its transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [_LOCK])
