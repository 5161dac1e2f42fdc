"""The signed approval of a claim: whether it is the portal's, of this claim, and covers what the claim asks for.

The portal puts a JWS (RFC 7515) with an Ed25519 signature (RFC 8037) into an annotation of the claim; its public keys
come in a ConfigMap that the function asks for. In charge of the verdict only: what is composed without an approval is
``workloads``' matter. Whatever is in the annotation, the answer is a verdict and never an exception.

An approval names what it is of, but not when it was the last: until it expires, an older one of the same claim is as
good as the newest. Who may write claims is the API server's to say.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import jwt
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from composition_function.contract import TTL_PENDING, Approval, Manifest, Selector, SpecError, at
from composition_function.needs import metered, suspended

ANNOTATION = "portal.aiplatform.example.org/approval"
KEYS = Selector("approval-keys", "v1", "ConfigMap", namespace="portal-system", match_name="portal-approval-keys")
ISSUER, AUDIENCE, TYPE = "portal", "composition-function", "approval+jwt"
# EdDSA names Ed448 as well (RFC 8037); only Ed25519 keys are taken, so that this is one algorithm.
ALGORITHM = "EdDSA"
# All annotations of an object may have 256 KiB together (Kubernetes, apimachinery/pkg/api/validation). An approval of a
# spec of this project has 2.
SIZE_MAX = 32 * 1024
CLOCKS_DIFFER = 60  # seconds
_LATEST = 1 << 33  # seconds since 1970: the year 2242, and a time that every library can write
_FORM = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")

# What may differ from the approved spec as long as it stays within the ceilings: how far the platform scales. What a
# replica does at once (concurrency) is not among it: it decides whether the model fits on its accelerators.
SCALING: Mapping[str, frozenset[str]] = {"ModelDeployment": frozenset({"/replicas/min", "/replicas/max"})}

_WAY_OUT = "Ask for the change in the portal"
_AGAIN = f"this is looked at again every {TTL_PENDING} s"


class _Refused(Exception):
    """Why an approval doesn't count: the condition's reason and message."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason, self.message = reason, message


def judge(claim: Manifest, config_maps: Sequence[Manifest], now: float) -> Approval:
    """The verdict on a claim's approval. ``config_maps`` is what came for ``KEYS``; ``now`` is seconds since 1970."""
    try:
        payload = _payload(_token(claim), _keys(config_maps), now)
        _of_this_claim(payload, claim)
        _within(payload, claim)
    except _Refused as refused:
        return Approval(False, refused.reason, refused.message)
    until = datetime.fromtimestamp(payload["exp"], UTC).strftime("%Y-%m-%d %H:%M UTC")
    if now > payload["exp"] + CLOCKS_DIFFER:
        message = f"its approval expired on {until}: what it holds is kept, nothing more is started. {_WAY_OUT} again"
        return Approval(False, "ApprovalExpired", message, keeps=True)
    return Approval(True, "Approved", f"request {_shown(payload.get('request'))}; valid until {until}")


def _token(claim: Manifest) -> str:
    token = at(claim, "metadata", "annotations", ANNOTATION)
    if not isinstance(token, str) or not token:
        raise _Refused(
            "ApprovalMissing",
            f"it has no annotation {ANNOTATION}, so nobody has approved it. {_WAY_OUT}, which signs what it delivers",
        )
    if len(token) > SIZE_MAX:
        raise _invalid(f"it has {len(token)} characters, and at most {SIZE_MAX} are read")
    if not _FORM.fullmatch(token):
        raise _invalid("it is no compact JWS (three parts of base64url, with dots between)")
    return token


def _invalid(why: str) -> _Refused:
    return _Refused(
        "ApprovalInvalid", f"the annotation {ANNOTATION} holds no approval of the portal: {why}. {_WAY_OUT}"
    )


def _keys(config_maps: Sequence[Manifest]) -> dict[str, str]:
    """Key id -> PEM. Entries with other names are left alone."""
    found: dict[str, str] = {}
    for item in config_maps:
        data = at(item, "data", default={})
        if isinstance(data, dict):
            found |= {n.removesuffix(".pem"): pem for n, pem in data.items() if n.endswith(".pem")}
    return found


def _payload(token: str, keys: Mapping[str, str], now: float) -> dict[str, Any]:
    """What was signed. The algorithm is ours to say, not the token's."""
    key = _key(_header(token), keys)
    # Times are held against ``now``: an approval that has expired is still one.
    checks: Any = {"require": ["exp", "iat", "iss", "aud", "sub"], "verify_exp": False, "verify_iat": False}
    try:
        payload: dict[str, Any] = jwt.decode(token, key, [ALGORITHM], checks, audience=AUDIENCE, issuer=ISSUER)
    except jwt.InvalidSignatureError:
        raise _invalid("its signature is not that of its key, so it was altered or made up") from None
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        raise _invalid(_shown(str(error))) from None
    for member in ("iat", "exp"):
        time = payload[member]
        if isinstance(time, bool) or not isinstance(time, int) or not 0 <= time < _LATEST:
            raise _invalid(f"/{member} is {_shown(time)}; it must be a time in seconds since 1970")
    if payload["iat"] > now + CLOCKS_DIFFER:
        raise _invalid("it is from the future; set the clocks of the portal and of this cluster")
    return payload


def _header(token: str) -> dict[str, Any]:
    try:
        header: dict[str, Any] = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        raise _invalid(f"its header can't be read ({_shown(str(error))})") from None
    for name, wanted in (("alg", ALGORITHM), ("typ", TYPE)):
        if header.get(name) != wanted:
            raise _invalid(f"its header says {name} {_shown(header.get(name))}, and only {wanted} is taken")
    return header


def _key(header: Mapping[str, Any], keys: Mapping[str, str]) -> Ed25519PublicKey:
    kid = header.get("kid")
    pem = keys.get(kid) if isinstance(kid, str) else None
    where = f"ConfigMap {KEYS.namespace}/{KEYS.match_name}"
    if pem is None:
        has = ", ".join(sorted(_shown(name) for name in keys)[:5]) or "none"
        raise _Refused(
            "ApprovalKeyUnknown",
            f"its approval is signed with key {_shown(kid)}, and {where} has: {has}. The portal publishes its keys "
            f"there; {_AGAIN}. A key that was withdrawn stays unknown: have the portal sign again",
        )
    try:
        key = load_pem_public_key(pem.encode())
    except (ValueError, TypeError, AttributeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise _Refused("ApprovalKeyUnknown", f"{where}: {_shown(kid)}.pem is no Ed25519 public key; {_AGAIN}")
    return key


def _of_this_claim(payload: Mapping[str, Any], claim: Manifest) -> None:
    here = {
        "apiVersion": claim.get("apiVersion"),
        "kind": claim.get("kind"),
        "namespace": at(claim, "metadata", "namespace"),
        "name": at(claim, "metadata", "name"),
    }
    named = payload.get("claim")
    if not isinstance(named, dict):
        raise _invalid(f"/claim is {_shown(named)}; it must say of what it is an approval")
    if {key: named.get(key) for key in here} != here:
        whose = f"{named.get('kind')} {named.get('namespace')}/{named.get('name')} of {named.get('apiVersion')}"
        raise _Refused("ApprovalForeign", f"its approval is of {_shown(whose)}, not of this claim. {_WAY_OUT}")


def _within(payload: Mapping[str, Any], claim: Manifest) -> None:
    """Raises _Refused where the claim asks for anything else, or for more, than was approved."""
    approved, ceilings = payload.get("spec"), payload.get("ceilings")
    if not isinstance(approved, dict) or not isinstance(ceilings, dict):
        raise _invalid("/spec and /ceilings must be objects")
    may_differ = {"/crossplane"} | SCALING.get(str(claim.get("kind")), frozenset())
    if suspended(claim) or approved.get("suspend", False) is False:
        may_differ |= {
            "/suspend"
        }  # anybody may stop what runs, since that only gives back; starting again is asked for
    others = [p for p in _differences(approved, at(claim, "spec", default={}), "") if p not in may_differ]
    if others:
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        which = ", ".join(f"/spec{_shown(pointer)}" for pointer in others[:3])
        raise _Refused("ApprovalExceeded", f"{which}{more} is not as it was approved. {_WAY_OUT}, or change it back")
    try:
        amounts = metered(claim)
    except SpecError as error:
        raise _Refused("ApprovalExceeded", f"what it takes can't be told: {_shown(str(error), 300)}") from None
    for dimension, amount in amounts.items():
        ceiling = ceilings.get(dimension, 0)
        if isinstance(ceiling, bool) or not isinstance(ceiling, int):
            raise _invalid(f"/ceilings/{_shown(dimension)} is {_shown(ceiling)}; it must be an integer")
        if amount > ceiling:
            told = f"it asks for {amount} of {_shown(dimension)}, and {ceiling} are approved"
            raise _Refused("ApprovalExceeded", f"{told}. {_WAY_OUT}, or ask for less")


def _differences(approved: Any, live: Any, pointer: str) -> Iterator[str]:
    """JSON pointers of all that is not the same on both sides; lists count as a whole."""
    if isinstance(approved, dict) and isinstance(live, dict):
        for key in sorted(approved.keys() | live.keys()):
            yield from _differences(approved.get(key, _ABSENT), live.get(key, _ABSENT), f"{pointer}/{_step(key)}")
    # Python's True is equal to 1, JSON's is not.
    elif isinstance(approved, bool) != isinstance(live, bool) or approved != live:
        yield pointer


_ABSENT = object()


def _step(key: str) -> str:
    """A step of a JSON pointer (RFC 6901): a field called ``replicas/max`` is not ``max`` of ``replicas``."""
    return key.replace("~", "~0").replace("/", "~1")


def _shown(value: object, limit: int = 80) -> str:
    """Something of somebody else's in a message: short, and on one line."""
    text = value if isinstance(value, str) else repr(value)
    printable = "".join(c if c.isprintable() else "?" for c in text[:limit])
    return f"{printable}…" if len(text) > limit else printable
