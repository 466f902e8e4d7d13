"""What does an arena offer over TLS, and what do handshakes cost it? `python -m
tests.tools.tls_scan` tells; it is no part of CI.

`sslscan` (Debian's package of that name) asks an arena with TLS for all that it offers. The exit
status is 1 if there is a version before TLS 1.2, a suite of TLS 1.2 without ECDHE, or a group over
a finite field.

`--hellos N` replays a recorded ClientHello instead, which offers one group alone, ffdhe8192 or
`--group`, N times while two house bots play, some a second. Printed are the arena's CPU time for
each, and decisions per second without and with them. Linux only."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.request import urlopen

from tests.support.arena_process import ROOT, free_port

__all__ = ["main", "recorded_hello", "wrong_in"]

_GROUPS = frozenset({"prime256v1", "P-256", "secp256r1", "x25519", "X25519"})
_VERSIONS = frozenset({"TLSv1.2", "TLSv1.3"})
_BEGINS_S = 60.0
_QUIET_S = 5.0
_ANSWER_S = 5.0
_REPLIES_BYTES = 4096


def recorded_hello(group: str = "ffdhe8192") -> bytes:
    """What a client of OpenSSL says first that can do nothing but TLS 1.3 with one group.

    Raises:
        subprocess.CalledProcessError: this OpenSSL does not know the group.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(_ANSWER_S)
        url = f"127.0.0.1:{server.getsockname()[1]}"
        words = ("openssl", "s_client", "-tls1_3", "-groups", group, "-connect", url)
        with subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as client:
            try:
                with server.accept()[0] as connection:
                    connection.settimeout(_ANSWER_S)
                    head = _read(connection, 5)
                    return head + _read(connection, int.from_bytes(head[3:]))
            except TimeoutError:
                raise subprocess.CalledProcessError(client.wait(), words) from None
            finally:
                client.kill()


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (chunk := connection.recv(size - len(data))):
        data += chunk
    return data


def wrong_in(scan: str) -> list[str]:
    """The lines of an `sslscan` that no arena of ours should bring about."""
    wrong = []
    for line in scan.splitlines():
        words = line.split()
        if re.match(r"(SSL|TLS)v\S+ +enabled", line) and words[0] not in _VERSIONS:
            wrong.append(line)
        elif words[:1] in (["Accepted"], ["Preferred"]):
            is_old = words[1] != "TLSv1.3" and not words[4].startswith("ECDHE-")
            if words[1] not in _VERSIONS or is_old:
                wrong.append(line)
        elif words[2:3] == ["bits"] and words[3] not in _GROUPS:
            wrong.append(line)
    return wrong


class _Serving:
    """An arena with TLS, as a process of its own, in which two house bots play."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, cert: Path) -> None:
        self.port = port
        self._pid = process.pid
        self._trust = ssl.create_default_context(cafile=cert)

    @property
    def cpu_s(self) -> float:
        """What it has used."""
        stat = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")

    def decisions(self) -> tuple[float, int]:
        """When, and how many there have been."""
        url = f"https://127.0.0.1:{self.port}/metrics"
        with urlopen(url, context=self._trust, timeout=_BEGINS_S) as answer:
            found = re.search(rb"^arena_decisions_total (\S+)", answer.read(), re.M)
        assert found, "there is that figure"
        return time.monotonic(), int(float(found[1]))


@contextmanager
def _arena() -> Iterator[_Serving]:
    bot = f"{sys.executable} -m bots ace_king_queen honest --no-session --quiet"
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        cert, key = folder / "arena.crt", folder / "arena.key"
        words = ("openssl req -x509 -nodes -newkey ec -pkeyopt ec_paramgen_curve:P-256",)
        subprocess.run(
            [
                *words[0].split(),
                *("-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=arena"),
                *("-addext", "subjectAltName=IP:127.0.0.1"),
            ],
            check=True,
            capture_output=True,
        )
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "arena", "serve", "ace_king_queen"),
                *("--port", str(port), "--db", folder / "arena.db"),
                *("--tls-cert", cert, "--tls-key", key, "--set", "hands=10000000"),
                *("--bot", f"ann={bot}", "--bot", f"ben={bot}"),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        try:
            arena = _Serving(process, port, cert)
            _wait_for(arena, process)
            yield arena
        finally:
            process.terminate()
            process.wait()


def _wait_for(arena: _Serving, process: subprocess.Popen[bytes]) -> None:
    """Until they play."""
    give_up = time.monotonic() + _BEGINS_S
    while time.monotonic() < give_up and process.poll() is None:
        with suppress(OSError):
            if arena.decisions()[1] > 1000:
                return
        time.sleep(0.2)
    raise SystemExit("expected the arena to play within a minute, it does not")


def scan() -> int:
    """Print what `sslscan` finds wrong, and all that it finds."""
    if shutil.which("sslscan") is None:
        raise SystemExit("expected sslscan on PATH; on Debian: apt-get install sslscan")
    with _arena() as arena:
        done = subprocess.run(
            ["sslscan", "--no-colour", f"127.0.0.1:{arena.port}"],
            capture_output=True,
            text=True,
            check=True,
        )
    print(done.stdout)
    wrong = wrong_in(done.stdout)
    for line in wrong:
        print(f"should not be offered: {line}", file=sys.stderr)
    if "Key Exchange Group" not in done.stdout:
        raise SystemExit("expected an sslscan that lists groups, as 2.0 does")
    return int(bool(wrong))


async def _replay(port: int, hello: bytes, count: int, per_s: float) -> None:
    async def one() -> None:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(_ANSWER_S):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                try:
                    writer.write(hello)
                    await reader.read(_REPLIES_BYTES)
                finally:
                    writer.transport.abort()

    async with asyncio.TaskGroup() as group:
        for _ in range(count):
            group.create_task(one())
            await asyncio.sleep(1 / per_s)


def replay(count: int, per_s: float, group: str) -> dict[str, float]:
    """What so many recorded hellos cost; CPU time is the arena's beyond what its match takes."""
    hello = recorded_hello(group)
    with _arena() as arena:
        before_s, began = arena.cpu_s, arena.decisions()
        time.sleep(_QUIET_S)
        quiet_s, quiet = arena.cpu_s, arena.decisions()
        asyncio.run(_replay(arena.port, hello, count, per_s))
        attacked_s, attacked = arena.cpu_s, arena.decisions()
    each_s = (quiet_s - before_s) / (quiet[1] - began[1])
    match_s = each_s * (attacked[1] - quiet[1])
    return {
        "hellos": count,
        "bytes": count * len(hello),
        "seconds": round(attacked[0] - quiet[0], 1),
        "cpu_s": round(attacked_s - quiet_s, 2),
        "cpu_ms_each": round((attacked_s - quiet_s - match_s) / count * 1000, 2),
        "decisions_per_s_quiet": round((quiet[1] - began[1]) / (quiet[0] - began[0])),
        "decisions_per_s_attacked": round((attacked[1] - quiet[1]) / (attacked[0] - quiet[0])),
    }


def main() -> int:
    """Scan, or replay, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hellos", type=int, metavar="N", help="replay so many")
    parser.add_argument("--per-second", type=float, default=10.0)
    parser.add_argument("--group", default="ffdhe8192", help="that they offer")
    options = parser.parse_args()
    if options.hellos is None:
        return scan()
    print(json.dumps(replay(options.hellos, options.per_second, options.group)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
