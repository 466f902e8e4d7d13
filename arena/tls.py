"""The certificate that an arena shows, made ready for its sockets; whatever is wrong with the files is told in one line."""

from __future__ import annotations

import ssl
from pathlib import Path

from protocol.errors import UsageError

__all__ = ["context"]

_OF_ANOTHER = ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED")
"""What OpenSSL says of a key that belongs to another certificate: of the same kind, or of another, as RSA to one that is EC."""


def context(cert: Path, key: Path) -> ssl.SSLContext:
    """What a server encrypts with.

    Args:
        cert: the certificate in PEM, and those that lead to a known authority after it.
        key: its private key in PEM, not encrypted, as nobody is there to type a password when an arena starts again by itself.

    Raises:
        UsageError: a file is not there, or is not what it should be.
    """
    _check(cert, "a certificate", b"CERTIFICATE-----")
    _check(key, "a private key", b"PRIVATE KEY-----")
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2

    def password() -> str:
        raise UsageError(f"expected a private key without a password, {key} has one")

    try:
        made.load_cert_chain(cert, key, password)
    except ssl.SSLError as error:
        if error.reason in _OF_ANOTHER:
            raise UsageError(f"expected the private key of {cert}, got {key}") from None
        reason = (error.reason or "it is damaged").replace("_", " ").lower()
        raise UsageError(f"cannot use {cert} with {key}: {reason}") from None
    return made


def _check(file: Path, what: str, mark: bytes) -> None:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise UsageError(
            f"expected {what}, cannot read {file}: {error.strerror or error}"
        ) from None
    if mark not in data:
        raise UsageError(f"expected {what} in PEM, {file} has none")
