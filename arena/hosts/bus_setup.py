"""Writes all that a NATS server needs to be a bus: certificates, keys and its configuration.

A folder has a CA of its own and a certificate for the server, a key per user (`arena.nk`, one per
worker, and one per host in `hosts`), `nats-server.conf`, which is the operator's to edit and is
written once, and `users.conf`, which says what each user may do and is written again whenever a
worker is added.
"""

from __future__ import annotations

import ipaddress
import os
import re
import secrets
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import nkeys  # type: ignore[import-untyped]  # it says nothing of its types
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from arena.hosts.bus import ARENA_USER
from arena.hosts.nats_connection import seed_of
from protocol.errors import UsageError

__all__ = ["BusFolder", "set_up"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")  # what subjects and buckets take
_HOST = re.compile(r"[A-Za-z0-9.:*_-]+")  # names, also with a wildcard, and both kinds of addresses
_VALID_DAYS = 3650  # nobody renews it in the middle of a term

_SERVER_CONF = """\
# The bus of Card Arena: nats-server -c {folder}/nats-server.conf
# `arena bus init` has written this file, and does not touch it again: it is yours to edit.
# Workers and arenas connect to this one port, and nobody connects to them.
listen: "0.0.0.0:4222"
server_name: "card-arena"

# Jobs and results wait here. If it is lost, arenas and workers repeat what is missing.
jetstream {{
  store_dir: "{folder}/jetstream"
  max_memory_store: 64MB
  max_file_store: 8GB  # records of long matches are 3 MB each until an arena has read them
}}

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

# Who may connect, and what each may do: written again with every worker that is added.
# After that: nats-server --signal reload
include "users.conf"
"""

_USERS = """\
# Written by `arena bus init`: what each user may do. A worker is forgotten when its .nk file is
# removed and `arena bus init` is run again.
#
# Each worker has an account of its own, and shares with the arenas what is listed here. Permissions
# alone would not do: a request names the subject of its reply, and the server, whose replies these
# are, asks nobody whether the worker may publish there, be it `$JS.API.STREAM.DELETE.ARENA_JOBS`.
authorization {{
  timeout: 5
}}
accounts {{
  ARENA {{ # arenas: they make the streams and queues, put jobs, read results, and command workers
    jetstream: enabled
    users: [
      {{
        nkey: {key}
        permissions: {{
          publish: ["arena.>", "$JS.>", "$O.>", "_INBOX.>", "_R_.>"] # replies to other accounts
          subscribe: ["arena.>", "_INBOX.arena.>"]
        }}
      }}
{hosts}    ]
    exports: [
{exports}    ]
    imports: [
{imports}    ]
  }}
{workers}}}
"""

_HOST_USER = """\
      {{ # the host {name}: it reports, answers who asks for room, and asks nobody for anything
        nkey: {key}
        permissions: {{
          publish: ["arena.host.{name}", "_INBOX.{name}.>"]
          subscribe: [
            "arena.place.{name}", "arena.place.* hosts", "arena.drain.{name}", "_INBOX.{name}.>"
          ]
          allow_responses: {{ max: 1, expires: "1m" }}
        }}
      }}
"""

_WORKER = """\
  worker-{name} {{ # the worker {name}: it speaks for itself alone, and takes jobs that are there
    users: [
      {{
        nkey: {key}
        permissions: {{
          publish: [
{publish}          ]
          subscribe: ["arena.command.{name}", "_INBOX.{name}.>"]
        }}
      }}
    ]
    exports: [
{exports}    ]
    imports: [
{imports}    ]
  }}
"""

_SPOKEN = ("arena.report.{name}", "arena.frames.*.{name}.*")
"""What a worker says to all arenas, or to one, and gets no reply to."""

_ASKED = (
    "arena.announce.*.{name}",
    "arena.program.*.{name}",
    "arena.results.*.{name}.*",
    "$O.records-{name}.>",
    "$JS.API.STREAM.MSG.GET.OBJ_records-{name}",
    "$JS.API.STREAM.PURGE.OBJ_records-{name}",
)
"""What a worker asks arenas, or JetStream, of itself."""

_ASKED_BY_ALL = (
    "$JS.API.CONSUMER.INFO.ARENA_JOBS.*",
    "$JS.API.CONSUMER.MSG.NEXT.ARENA_JOBS.*",
    "$JS.ACK.ARENA_JOBS.>",
)
"""What all workers ask JetStream."""

# Not even asked: without this import an account has JetStream's requests to itself, which says that
# it has no JetStream.
_SHADOW = "$JS.API.INFO"


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

    def host_key(self, name: str) -> Path:
        return self.folder / "hosts" / f"{name}.nk"

    def bot_hosts(self) -> list[str]:
        """The names of hosts that have a key."""
        return sorted(file.stem for file in self.folder.glob("hosts/*.nk"))

    def workers(self) -> list[str]:
        """The names of those that have a key."""
        return sorted(file.stem for file in self.folder.glob("*.nk") if file.stem != ARENA_USER)

    def hosts(self) -> list[str]:
        """The names that the server's certificate has; none if there is no certificate."""
        if not self.server.exists():
            return []
        names = x509.load_pem_x509_certificate(
            self.server.read_bytes()
        ).extensions.get_extension_for_class(x509.SubjectAlternativeName)
        return [str(name.value) for name in names.value]


def set_up(
    folder: Path, hosts: Sequence[str], workers: Sequence[str], bot_hosts: Sequence[str] = ()
) -> BusFolder:
    """Write what is missing, and keep the rest: another address, worker or host of bots is added.

    Raises `UsageError` for a name that cannot be one, or if nobody has said any host.
    """
    for name in (*workers, *bot_hosts):
        if not _NAME.fullmatch(name) or name == ARENA_USER:
            raise UsageError(
                f"expected a name of at most 32 letters, digits, - and _, got {name!r}"
            )
    for host in hosts:
        if not _HOST.fullmatch(host):
            raise UsageError(f"expected a name or an address of this machine, got {host!r}")
    files = BusFolder(folder)
    all_hosts = list(dict.fromkeys((*files.hosts(), *hosts)))
    if not all_hosts:
        raise UsageError("expected --host NAME: the name or address by which clients connect")
    folder.mkdir(parents=True, exist_ok=True)
    if not files.ca.exists():
        _write_ca(files)
    if all_hosts != files.hosts():
        _write_server_certificate(files, all_hosts)
    for user in (ARENA_USER, *workers):
        if not files.key(user).exists():
            _write_user_key(files.key(user), user)
    for name in bot_hosts:
        files.host_key(name).parent.mkdir(exist_ok=True)
        if not files.host_key(name).exists():
            _write_user_key(files.host_key(name), name)
    if not files.server_conf.exists():
        text = _SERVER_CONF.format(folder=folder.resolve())
        files.server_conf.write_text(text, encoding="utf-8")
    files.users_conf.write_text(_users(files), encoding="utf-8")
    return files


def _users(files: BusFolder) -> str:
    """The accounts, and what they share: each list in the words of `nats-server`."""
    names = files.workers()
    exports = [f'{{ service: "{subject}" }}' for subject in (*_ASKED_BY_ALL, _SHADOW)]
    imports = []
    for name in names:
        account = f"worker-{name}"
        for subject in _named_subjects(_ASKED, name):
            exports.append(f'{{ service: "{subject}", accounts: [{account}] }}')
        exports.append(f'{{ stream: "arena.command.{name}", accounts: [{account}] }}')
        for subject in _named_subjects(_SPOKEN, name):
            imports.append(f'{{ stream: {{ account: {account}, subject: "{subject}" }} }}')
    return _USERS.format(
        key=_public_key(files.key(ARENA_USER)),
        exports=_lines(exports, 6),
        imports=_lines(imports, 6),
        workers="".join(_worker(files, name) for name in names),
        hosts="".join(
            _HOST_USER.format(name=name, key=_public_key(files.host_key(name)))
            for name in files.bot_hosts()
        ),
    )


def _worker(files: BusFolder, name: str) -> str:
    spoken = _named_subjects(_SPOKEN, name)
    asked = (*_named_subjects(_ASKED, name), *_ASKED_BY_ALL)
    imports = [
        f'{{ service: {{ account: ARENA, subject: "{subject}" }} }}'
        for subject in (*asked, _SHADOW)
    ]
    imports.append(f'{{ stream: {{ account: ARENA, subject: "arena.command.{name}" }} }}')
    publish = (*spoken, *asked, f"_INBOX.{name}.>")
    return _WORKER.format(
        name=name,
        key=_public_key(files.key(name)),
        publish=_lines([f'"{subject}"' for subject in publish], 12),
        exports=_lines([f'{{ stream: "{each}", accounts: [ARENA] }}' for each in spoken], 6),
        imports=_lines(imports, 6),
    )


def _named_subjects(subjects: Iterable[str], name: str) -> list[str]:
    return [subject.replace("{name}", name) for subject in subjects]


def _lines(items: Iterable[str], indent: int) -> str:
    return "".join(f"{' ' * indent}{item}\n" for item in items)


def _write_user_key(file: Path, user: str) -> None:
    seed = nkeys.encode_seed(secrets.token_bytes(32), nkeys.PREFIX_BYTE_USER).decode()
    who = "arenas" if user == ARENA_USER else user
    _write_secret(file, f"# The key of {who} to the bus: keep it secret.\n{seed}\n".encode())


def _public_key(file: Path) -> str:
    public: bytes = nkeys.from_seed(bytearray(seed_of(file).encode())).public_key
    return public.decode()


def _write_ca(files: BusFolder) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _named("Card Arena bus")
    certificate = (
        _certificate(name, name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_others=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    _write_secret(files.ca_key, _pem(key))
    files.ca.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def _write_server_certificate(files: BusFolder, hosts: Iterable[str]) -> None:
    ca = x509.load_pem_x509_certificate(files.ca.read_bytes())
    ca_key = serialization.load_pem_private_key(files.ca_key.read_bytes(), None)
    assert isinstance(ca_key, ec.EllipticCurvePrivateKey), "we have written it"
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _certificate(_named("nats-server"), ca.subject, key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_others=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(list(map(_host, hosts))), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False
        )
        .sign(ca_key, hashes.SHA256())
    )
    _write_secret(files.server_key, _pem(key))
    files.server.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))  # clocks of other machines may be behind
        .not_valid_after(now + timedelta(days=_VALID_DAYS))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs_others: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_others,
        crl_sign=signs_others,
        encipher_only=False,
        decipher_only=False,
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _write_secret(file: Path, data: bytes) -> None:
    """Write a file that only its owner can read, from its first byte on."""
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as stream:
        stream.write(data)
