"""In charge of: certificates for programs on this machine, and the authority that signs them.

Not in charge of: certificates that others have to trust; these are for 127.0.0.1.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import CertificateIssuerPrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID = dt.timedelta(days=365)
_CLOCKS_DIFFER = dt.timedelta(minutes=5)


@dataclass(frozen=True)
class Authority:
    """A certificate and a key that sign others, in PEM."""

    certificate: bytes
    key: bytes

    def issue(self, folder: Path, name: str, prefix: str = "tls") -> None:
        """Writes <prefix>.crt, <prefix>.key and ca.crt: a server's and a client's certificate for this machine."""
        folder.mkdir(parents=True, exist_ok=True)
        key = ec.generate_private_key(ec.SECP256R1())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Crossplane's own authority lies in the country "Earth"
            issuer = x509.load_pem_x509_certificate(self.certificate).subject
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        certificate = (
            _builder(name, issuer, key.public_key())
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .sign(_private_key(self.key), hashes.SHA256())
        )
        (folder / f"{prefix}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        write_private(folder / f"{prefix}.key", _pem(key))
        (folder / "ca.crt").write_bytes(self.certificate)


def authority_in(folder: Path) -> Authority:
    """The authority kept in `folder` as ca.crt and ca.key, made at the first call and when it nears its end."""
    folder.mkdir(parents=True, exist_ok=True)
    certificate, key = folder / "ca.crt", folder / "ca.key"
    if key.exists() and certificate.exists():
        known = x509.load_pem_x509_certificate(certificate.read_bytes())
        if known.not_valid_after_utc - dt.datetime.now(dt.UTC) > VALID / 2:
            return Authority(certificate.read_bytes(), key.read_bytes())
    made = _new_authority()
    write_private(key, made.key)
    certificate.write_bytes(made.certificate)
    return made


def signing_key(path: Path) -> Path:
    """A private key in `path`, made at the first call."""
    if not path.exists():
        key = ec.generate_private_key(ec.SECP256R1())
        # kube-apiserver takes the public key out of this format, not out of PKCS8.
        write_private(path, _pem(key, serialization.PrivateFormat.TraditionalOpenSSL))
    return path


def write_private(path: Path, content: bytes) -> None:
    """A file that only its owner may read, from its first byte on."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_bytes(content)


def _new_authority() -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "portal-local-control-plane")])
    usage = x509.KeyUsage(
        key_cert_sign=True,
        crl_sign=True,
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        _builder("portal-local-control-plane", subject, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate.public_bytes(serialization.Encoding.PEM), _pem(key))


def _builder(name: str, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_DIFFER)
        .not_valid_after(now + VALID)
    )


def _private_key(pem: bytes) -> CertificateIssuerPrivateKeyTypes:
    return cast(CertificateIssuerPrivateKeyTypes, serialization.load_pem_private_key(pem, None))


def _pem(
    key: ec.EllipticCurvePrivateKey, layout: serialization.PrivateFormat = serialization.PrivateFormat.PKCS8
) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, layout, serialization.NoEncryption())
