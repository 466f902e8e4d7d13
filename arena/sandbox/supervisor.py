"""The process between the arena and a bot: when either ends, it ends what is left of the bot.

Run as `python -I -S supervisor.py CONTROL STATUS SCRATCH PROCS ISOLATED COMMAND...`. It uses only
the standard library and starts in a few milliseconds. As a child subreaper it adopts all that
the bot's processes leave behind. So its descendants are the bot's whole tree, even a process that
forks twice or opens a session of its own.

- `CONTROL` is a pipe that nothing is written to. Its end means that the arena is gone, or wants the
  bot ended at once: the tree is killed.
- `STATUS` is a pipe for lines: `started PID` or `failed WHY`; later, when nothing of the tree is
  left, `exit N` or `signal N`.
- `SIGTERM` to the supervisor is a `SIGTERM` to the tree, and a `SIGKILL` a second later.

Without `/proc` and subreapers (macOS) it kills the bot's process group, which a program can leave.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence

__all__ = ["NICENESS", "descendants", "end_strays", "ends_with_this", "main"]

GRACE_S = 1.0  # from SIGTERM to SIGKILL
NICENESS = 5  # of bots: the arena goes first
_PAUSE_S = 0.005  # between two rounds of killing: time for killed processes to end
_OOM_SCORE = "500"  # if the machine runs out of memory, the kernel takes a bot first

# linux/prctl.h
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38


def main(arguments: Sequence[str]) -> int:
    """Start the bot and stay until nothing of it is left."""
    control, status = int(arguments[0]), int(arguments[1])
    scratch, procs, isolated = arguments[2], arguments[3], arguments[4] == "isolated"
    for descriptor in (control, status):
        os.set_inheritable(descriptor, False)
    for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(ignored, signal.SIG_IGN)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    wakeup = _wake_by_signals()

    arena_is_gone = False
    try:
        child = _spawn(arguments[5:], procs, may_gain=isolated)
    except OSError as error:
        _say(status, f"failed {error.strerror}: {error.filename}")
    else:
        _say(status, f"started {child}")
        _close_streams()
        spared = child if isolated else 0
        how, arena_is_gone = _watch(child, control, wakeup, spared)
        how = _end_all(child, procs, how)
        if os.WIFSIGNALED(how):
            _say(status, f"signal {os.WTERMSIG(how)}")
        else:
            _say(status, f"exit {os.WEXITSTATUS(how)}")
    _remove(scratch)
    # A dead arena cannot remove these. While they are not empty, other bots still use them.
    if arena_is_gone:
        for folder in (scratch, procs):
            with contextlib.suppress(OSError):
                os.rmdir(os.path.dirname(folder))
    return 0


# ---- Start


def _spawn(command: Sequence[str], procs: str, *, may_gain: bool) -> int:
    """Fork and execute, and wait until that has worked; an `OSError` names the file that failed."""
    reader, writer = os.pipe()  # `exec` closes it
    supervisor = os.getpid()
    child = os.fork()
    if not child:
        try:
            _become(command, procs, supervisor, may_gain=may_gain)
        except OSError as error:
            why = f"{error.errno} {error.filename or command[0]}"
            os.write(writer, why.encode(errors="replace"))
        finally:
            os._exit(127)
    os.close(writer)
    with open(reader, "rb") as pipe:
        failure = pipe.read().decode(errors="replace")
    if failure:
        os.waitpid(child, 0)
        number, _, what = failure.partition(" ")
        raise OSError(int(number), os.strerror(int(number)), what)
    return child


def _become(command: Sequence[str], procs: str, supervisor: int, *, may_gain: bool) -> None:
    os.setsid()
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    _end_with(supervisor)
    # Otherwise the bot could run a set-user-ID program, which we cannot end. bubblewrap sets it,
    # too.
    if not may_gain:
        _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write(_OOM_SCORE)
    os.nice(NICENESS)
    if procs:
        with open(procs, "w") as file:
            file.write(str(os.getpid()))
    os.execvp(command[0], list(command))


def ends_with_this() -> Callable[[], None] | None:
    """A `preexec_fn` for a child that is killed when this process ends in any way; Linux only."""
    if sys.platform != "linux":
        return None
    this = os.getpid()
    return lambda: _end_with(this)


def _end_with(parent: int) -> None:
    """Let the kernel kill this process when its parent ends, even while it is stopped."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before PDEATHSIG was set
        os._exit(1)


def _prctl(option: int, value: int) -> None:
    """Set an option that is useful but not necessary; only Linux has any."""
    if sys.platform != "linux":
        return
    with contextlib.suppress(ImportError, OSError, AttributeError):
        import ctypes  # slow to import, and useless elsewhere

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _wake_by_signals() -> int:
    """The reading end of a pipe that gets the number of each arriving signal."""
    reader, writer = os.pipe()
    for end in (reader, writer):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    return reader


def _close_streams() -> None:
    """Close our ends of the bot's pipes, so that they close once the bot closes its own."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    os.close(nothing)


def _say(status: int, line: str) -> None:
    with contextlib.suppress(OSError):  # the arena is gone
        os.write(status, f"{line}\n".encode(errors="replace"))


# ---- Watch


def _watch(child: int, control: int, wakeup: int, spared: int) -> tuple[int | None, bool]:
    """Wait until the bot has ended or has to end.

    Returns the status of its first process from `waitpid`, None while it runs, and whether the
    arena has closed the control pipe.
    """
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(wakeup, select.POLLIN)
    deadline_s: float | None = None
    while True:
        left_s = None if deadline_s is None else deadline_s - time.monotonic()
        if left_s is not None and left_s <= 0:
            return None, False
        ready = {fd for fd, _ in poll.poll(None if left_s is None else left_s * 1000)}
        numbers = os.read(wakeup, 4096) if wakeup in ready else b""
        how = _reap(child)[0]
        if how is not None:
            return how, False
        if control in ready and not os.read(control, 4096):
            return None, True
        if signal.SIGTERM in numbers and deadline_s is None:
            deadline_s = time.monotonic() + GRACE_S
            _terminate(child, spared)


def _reap(child: int) -> tuple[int | None, bool]:
    """Reap ended children; return the first process's status if it ended, and if any is left."""
    how = None
    try:
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return how, True
            if pid == child:
                how = status
    except ChildProcessError:
        return how, False


def _terminate(child: int, spared: int) -> None:
    """Send SIGTERM to all but the sandbox, which would kill the processes in it at once."""
    if not os.path.isdir("/proc/self"):
        _kill_group(child, signal.SIGTERM)
    for pid, _ in descendants(os.getpid()):
        if pid != spared:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGTERM)


# ---- End


def _end_all(child: int, procs: str, how: int | None) -> int:
    """Kill until nothing is left, as a fork bomb goes on; return the first process's status."""
    has_proc = os.path.isdir("/proc/self")
    while True:
        if procs:
            with (
                contextlib.suppress(OSError),  # a kernel before 5.14
                open(os.path.join(os.path.dirname(procs), "cgroup.kill"), "w") as file,
            ):
                file.write("1")
        family = descendants(os.getpid())
        # A signal to a whole group is atomic: no process of it can fork meanwhile.
        groups = {group for _, group in family} if has_proc else {child}
        for group in groups - {0, os.getpgrp()}:
            _kill_group(group, signal.SIGKILL)
        for pid, _ in family:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        ended, more = _reap(child)
        how = ended if how is None else how
        if not more:
            return how or 0
        time.sleep(_PAUSE_S)


def _kill_group(group: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(group, number)


def descendants(root: int) -> list[tuple[int, int]]:
    """The process id and group of all descendants of a process; empty where there is no /proc."""
    groups: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for pid in _pids():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", "rb") as file:
            # pid (name) state parent group ...; the name may hold anything, brackets too
            fields = file.read().rpartition(b")")[2].split()
            groups[pid] = int(fields[2])
            children.setdefault(int(fields[1]), []).append(pid)
    below = list(children.get(root, ()))
    for pid in below:
        below += children.get(pid, ())  # extends the list that this loop runs over
    return [(pid, groups[pid]) for pid in below]


def _pids() -> Iterator[int]:
    with contextlib.suppress(OSError):
        for name in os.listdir("/proc"):
            if name.isdigit():
                yield int(name)


def end_strays(scratch: str, within_s: float = 20.0) -> None:
    """Kill what is left of a bot whose supervisor was killed.

    These are the processes with its scratch directory as their HOME or working directory. It gives
    up after `within_s` on a bot that forks faster than it is killed.
    """
    deadline_s = time.monotonic() + within_s
    while left := [pid for pid in _pids() if _lives_in(pid, os.fsencode(scratch))]:
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        if time.monotonic() > deadline_s:
            return
        time.sleep(_PAUSE_S)


def _lives_in(pid: int, scratch: bytes) -> bool:
    if pid == os.getpid():
        return False
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/environ", "rb") as file:
            if b"HOME=" + scratch in file.read().split(b"\0"):
                return True
        place = os.readlink(f"/proc/{pid}/cwd".encode())
        return place == scratch or place.startswith(scratch + b"/")
    return False


def _remove(scratch: str) -> None:
    """Remove the bot's directory, even if it is unreadable; links are removed, not followed."""
    with contextlib.suppress(OSError, RecursionError):
        os.chmod(scratch, 0o700)
        for entry in list(os.scandir(scratch)):
            if entry.is_dir(follow_symlinks=False):
                _remove(entry.path)
            else:
                with contextlib.suppress(OSError):
                    os.unlink(entry.path)
        os.rmdir(scratch)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
