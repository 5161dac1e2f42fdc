"""Signed approvals as the portal makes them, for tests of what the function makes of them. Not the portal's own code:
tests/contract holds the two together."""

import copy
import time
from typing import Any

import jwt
from composition_function import approvals
from composition_function.needs import metered
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

Manifest = dict[str, Any]
KEY = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(b"o" * 32)
NOW = 1_800_000_000


def pem(key: Ed25519PrivateKey = KEY) -> str:
    """A key's public half."""
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()


def key_map(**keys: str) -> Manifest:
    """The ConfigMap of keys; without arguments the one of ``KEY``."""
    data = {f"{kid}.pem": text for kid, text in (keys or {"k1": pem()}).items()}
    name, namespace = approvals.KEYS.match_name, approvals.KEYS.namespace
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


def payload_for(claim: Manifest, now: float = NOW) -> Manifest:
    """What the portal would sign for a claim as it is."""
    meta = claim["metadata"]
    return {
        "iss": "portal",
        "aud": "composition-function",
        "sub": "5a4f2f0e-7f6d-4c0e-9a53-0d8a4a3d2b11",
        "iat": int(now),
        "exp": int(now) + 3600,
        "request": "1c9b7f6e-33a1-4be7-8a54-1f8ad0b6a0d3",
        "claim": {
            "apiVersion": claim["apiVersion"],
            "kind": claim["kind"],
            "namespace": meta["namespace"],
            "name": meta["name"],
        },
        "spec": copy.deepcopy({key: value for key, value in claim["spec"].items() if key != "crossplane"}),
        "ceilings": metered(claim),
        "quote": {"monthly": "584.00", "currency": "EUR"},
    }


def sign(payload: Manifest, key: Any = KEY, algorithm: str = "EdDSA", **header: Any) -> str:
    """A compact JWS."""
    return jwt.encode(payload, key, algorithm, {"kid": "k1", "typ": "approval+jwt", **header})


def approve(claim: Manifest, token: object | None = None, now: float | None = None) -> Manifest:
    """Put a token into a claim; without one, an approval of it as it is."""
    if token is None:
        token = sign(payload_for(claim, time.time() if now is None else now))
    claim["metadata"].setdefault("annotations", {})[approvals.ANNOTATION] = token
    return claim
