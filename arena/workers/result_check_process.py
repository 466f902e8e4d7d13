"""The process that checks results of workers, one after another: data in, reasons out.

Run as `python -m arena.workers.result_check_process`. Each question is the length of what follows,
in 4 bytes, and in msgpack an `ExpectedAttempt` with the data of the result; each answer is a
`ResultFit` in the same way. The process has limits of memory and CPU time, as a result may be made
to take any. It ends with its input, so also when the arena is killed, whatever it is doing then.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import struct
import sys
import threading
import time
from typing import BinaryIO, Never

from arena.workers.messages import decode, encode
from arena.workers.result_fit import ExpectedAttempt, fit_of

if sys.platform != "win32":
    import resource

__all__ = ["LENGTH", "OUT_OF_CPU", "main"]

LENGTH = struct.Struct("!I")
OUT_OF_CPU = 24 if sys.platform == "win32" else signal.SIGXCPU
"""The signal that ends the process if a check takes too much CPU time; Windows has none."""

# Playing a result of 110 MiB again takes 13 times its size, and 21 s of CPU, measured; data can be
# made to take 90 times its size when it is read.
_MEMORY_BYTES = 512 << 20
_MEMORY_BYTES_PER_BYTE = 20
_CPU_S = 30
_CPU_S_PER_MIB = 2
_NICENESS = 5  # matches come first


def main() -> Never:
    """Check results until the input ends."""
    for ignored in ("SIGINT", "SIGHUP"):
        if hasattr(signal, ignored):
            signal.signal(getattr(signal, ignored), signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):
        os.nice(_NICENESS)
    if sys.platform != "win32":
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # rather this process than the arena, if memory runs out
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # for a stray `print`
    questions: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, questions), daemon=True).start()
    try:
        while True:
            expected: ExpectedAttempt
            data: bytes
            expected, data = decode(questions.get(), tuple[ExpectedAttempt, bytes])
            reply = encode(fit_of(data, expected))
            out.write(LENGTH.pack(len(reply)) + reply)
            out.flush()
    except BaseException:  # the arena sees that it has ended
        os._exit(1)


def _limit(size: int) -> None:
    """From now on, as much memory and CPU time as results of this size may take."""
    if sys.platform == "win32":
        return
    most_s = time.process_time() + _CPU_S + _CPU_S_PER_MIB * (size >> 20)
    most_bytes = _MEMORY_BYTES + _MEMORY_BYTES_PER_BYTE * size
    for limit, most in ((resource.RLIMIT_CPU, int(most_s) + 1), (resource.RLIMIT_AS, most_bytes)):
        _, hard = resource.getrlimit(limit)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(limit, (most, hard))


def _listen(source: BinaryIO, questions: queue.SimpleQueue[bytes]) -> None:
    """Put every question into the queue; end the process with the input, even while it checks."""
    with contextlib.suppress(BaseException):
        while head := source.read(LENGTH.size):
            (length,) = LENGTH.unpack(head)
            _limit(length)  # those of a small one before would not take a large one in
            questions.put(source.read(length))
    os._exit(0)


if __name__ == "__main__":
    main()
