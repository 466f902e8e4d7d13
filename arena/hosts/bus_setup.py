"""Writes all that a NATS server needs to be a bus: certificates, keys and its configuration.

The folder has a CA, a certificate for the server, and a key per user (`arena.nk`, and one per
host). `nats-server.conf` is written once and is the operator's to edit. `users.conf` lists the
permissions of each user, and is written again whenever a host is added.
"""

from __future__ import annotations

import ipaddress
import os
import re
import secrets
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import nkeys  # type: ignore[import-untyped]  # it has no type hints
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from arena.hosts.bus import ARENA_USER, checked_host
from arena.hosts.nats_connection import seed_of
from protocol.errors import UsageError

__all__ = ["BusFolder", "set_up"]

_ADDRESS = re.compile(r"[A-Za-z0-9.:*_-]+")  # names, also with a wildcard, and IP addresses
_VALID_DAYS = 3650  # so that nobody has to renew it in the middle of a term

_SERVER_CONF = """\
# The bus of Card Arena: nats-server -c {folder}/nats-server.conf
# `arena bus init` has written this file, and does not touch it again: it is yours to edit.
# Hosts and arenas connect to this one port; over the bus nobody connects to them.
listen: "0.0.0.0:4222"
server_name: "card-arena"

# Everything is encrypted; clients know the server by ca.pem (--bus-ca).
tls {{
  cert_file: "{folder}/server.pem"
  key_file: "{folder}/server-key.pem"
  timeout: 5
}}

# A client that is cut off is noticed in about 15 s; by itself it connects again at once.
ping_interval: "5s"
ping_max: 2
write_deadline: "10s"

# Who may connect, and what each may do: written again with every host that is added.
# After that: nats-server --signal reload
include "users.conf"
"""

_USERS = """\
# Written by `arena bus init`: what each user may do. A host is forgotten when its .nk file is
# removed and `arena bus init` is run again.
#
# A host may send nothing to where it listens itself. It may answer what it hears, and the sender of
# a message chooses where its answer goes: to all that another host hears, say.
authorization {{
  timeout: 5
  users: [
    {{ # arenas, and who drains hosts
      nkey: {key}
      permissions: {{
        publish: ["arena.place.*", "arena.drain.*", "_INBOX.arena.>"]
        subscribe: ["arena.host.*", "_INBOX.arena.>"]
      }}
    }}
{hosts}  ]
}}
"""

_HOST_USER = """\
    {{ # the host {name}: it reports, answers who asks for room, and asks nobody for anything
      nkey: {key}
      permissions: {{
        publish: ["arena.host.{name}"]
        subscribe: ["arena.place.{name}", "arena.drain.{name}", "_INBOX.{name}.>"]
        allow_responses: {{ max: 1, expires: "1m" }}
      }}
    }}
"""


class BusFolder:
    """The files of a bus."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ca = folder / "ca.pem"
        self.ca_key = folder / "ca-key.pem"
        self.server = folder / "server.pem"
        self.server_key = folder / "server-key.pem"
        self.server_conf = folder / "nats-server.conf"
        self.users_conf = folder / "users.conf"

    def key(self, user: str) -> Path:
        return self.folder / f"{user}.nk"

    def hosts(self) -> list[str]:
        """Return the names of the hosts that have a key."""
        return sorted(file.stem for file in self.folder.glob("*.nk") if file.stem != ARENA_USER)

    def addresses(self) -> list[str]:
        """Return the names in the server's certificate; none if there is no certificate."""
        if not self.server.exists():
            return []
        extensions = x509.load_pem_x509_certificate(self.server.read_bytes()).extensions
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName)
        return [str(name.value) for name in names.value]


def set_up(folder: Path, addresses: Sequence[str], hosts: Sequence[str]) -> BusFolder:
    """Write missing files and keep the others; new addresses and hosts are added to the old ones.

    Raises `UsageError` for an invalid name, or if no address is known.
    """
    for name in hosts:
        checked_host(name)
    for address in addresses:
        if not _ADDRESS.fullmatch(address):
            raise UsageError(f"expected a name or an address of this machine, got {address!r}")
    files = BusFolder(folder)
    known = files.addresses()
    all_addresses = list(dict.fromkeys((*known, *addresses)))
    if not all_addresses:
        raise UsageError("expected --address NAME: the name or address by which clients connect")
    folder.mkdir(parents=True, exist_ok=True)
    if not files.ca.exists():
        _write_certificate(files.ca, files.ca_key, "Card Arena bus")
    if all_addresses != known:
        _write_server_certificate(files, all_addresses)
    for user, owner in ((ARENA_USER, "arenas"), *zip(hosts, hosts, strict=True)):
        if not files.key(user).exists():
            seed = nkeys.encode_seed(secrets.token_bytes(32), nkeys.PREFIX_BYTE_USER).decode()
            text = f"# The key of {owner} to the bus: keep it secret.\n{seed}\n"
            _write_secret(files.key(user), text.encode())
    if not files.server_conf.exists():
        text = _SERVER_CONF.format(folder=folder.resolve())
        files.server_conf.write_text(text, encoding="utf-8")
    keys = {name: _public_key(files.key(name)) for name in (ARENA_USER, *files.hosts())}
    arena = keys.pop(ARENA_USER)
    users = "".join(_HOST_USER.format(name=name, key=key) for name, key in keys.items())
    files.users_conf.write_text(_USERS.format(key=arena, hosts=users), encoding="utf-8")
    return files


def _public_key(file: Path) -> str:
    public: bytes = nkeys.from_seed(bytearray(seed_of(file).encode())).public_key
    return public.decode()


def _write_certificate(
    file: Path,
    key_file: Path,
    name: str,
    more: Sequence[x509.ExtensionType] = (),
    ca: tuple[x509.Name, ec.EllipticCurvePrivateKey] | None = None,
) -> None:
    """Write a new key and its certificate, signed by `ca`; without `ca` it is itself a CA."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuer, signer = ca or (subject, key)
    now, is_ca = datetime.now(UTC), ca is None
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_ca,
        crl_sign=is_ca,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))  # clocks of other machines may be behind
        .not_valid_after(now + timedelta(days=_VALID_DAYS))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.BasicConstraints(is_ca, 0 if is_ca else None), critical=True)
        .add_extension(usage, critical=True)
    )
    for extension in more:
        builder = builder.add_extension(extension, critical=False)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write_secret(key_file, secret)
    certificate = builder.sign(signer, hashes.SHA256())
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def _write_server_certificate(files: BusFolder, addresses: Iterable[str]) -> None:
    ca = x509.load_pem_x509_certificate(files.ca.read_bytes())
    ca_key = serialization.load_pem_private_key(files.ca_key.read_bytes(), None)
    assert isinstance(ca_key, ec.EllipticCurvePrivateKey), "we have written it"
    more = (
        x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]),
        x509.SubjectAlternativeName(list(map(_general, addresses))),
        x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()),
    )
    signer = ca.subject, ca_key
    _write_certificate(files.server, files.server_key, "nats-server", more, signer)


def _general(address: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        return x509.DNSName(address)


def _write_secret(file: Path, data: bytes) -> None:
    """Write a file that only its owner can read, from its first byte on."""
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
        stream.write(data)
