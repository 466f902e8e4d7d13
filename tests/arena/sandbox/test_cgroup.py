"""Control groups in a tree of files like the kernel's; writing has the kernel's effects."""

from __future__ import annotations

import errno
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from arena.games.verdict import Finding
from arena.sandbox import cgroup as module
from arena.sandbox.cgroup import Cgroup, make, probe
from protocol.messages import Ending, Limits, Mechanism
from tests.support.not_none import not_none

LIMITS = Limits(memory_mib=256, processes=4)
V2 = "31 23 0:28 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
V1 = "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
HYBRID = "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="this is not Linux")


class Kernel:
    """A machine whose cgroupfs is in a directory.

    Args:
        root: the machine's /.
        own: the group of this process.
        controllers: what that group may hand on.
        mounts: /proc/self/mountinfo.
    """

    def __init__(
        self,
        root: Path,
        own: str = "/user/arena.scope",
        controllers: str = "cpu memory pids",
        mounts: str = V2,
    ) -> None:
        self.root = root
        self.refuse: Callable[[Path, str], int] = lambda path, text: 0
        self.writes: list[tuple[str, str]] = []
        mount = "sys/fs/cgroup/unified" if mounts.endswith(HYBRID) else "sys/fs/cgroup"
        self.group = root / mount / own.lstrip("/")
        (root / "proc/self").mkdir(parents=True)
        (root / "proc/self/mountinfo").write_text(mounts)
        self.move_to(own)
        self.group.mkdir(parents=True)
        for name, text in {
            "cgroup.controllers": controllers,
            "cgroup.subtree_control": "",
            "cgroup.events": "populated 1",
            "cgroup.procs": str(os.getpid()),
        }.items():
            (self.group / name).write_text(f"{text}\n")

    def move_to(self, own: str) -> None:
        lines = f"4:memory:/elsewhere\n1:name=systemd:/\n0::{own}\n"
        (self.root / "proc/self/cgroup").write_text(lines)

    def write(self, path: Path, text: str) -> None:
        """What the kernel makes of a write to one of its files."""
        self.writes.append((path.relative_to(self.group).as_posix(), text))
        if number := self.refuse(path, text):
            raise OSError(number, os.strerror(number), str(path))
        if not path.parent.is_dir():
            raise FileNotFoundError(errno.ENOENT, "no such group", str(path))
        if path.name == "cgroup.subtree_control":
            self._hand_on(path, text)
        elif path.name == "cgroup.procs":
            for procs in [self.group / path.name, *self.group.rglob(path.name)]:
                left = [pid for pid in procs.read_text().split() if pid != text]
                procs.write_text("\n".join(left))
            path.write_text(text)
        else:
            path.write_text(f"{text}\n")

    def _hand_on(self, path: Path, text: str) -> None:
        enabled = set(path.read_text().split())
        for word in text.split():
            if word[0] == "-":
                enabled.discard(word[1:])
            elif self._is_inner(path.parent):
                raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(path))
            else:
                enabled.add(word[1:])
        path.write_text(" ".join(sorted(enabled)))

    def _is_inner(self, group: Path) -> bool:
        """Whether processes are where there must be none: only the root of all groups is free."""
        procs = (group / "cgroup.procs").read_text().split()
        return bool(procs) and (group / "cgroup.events").exists()

    def remove(self, path: Path) -> None:
        procs = path / "cgroup.procs"
        if path.is_dir() and not (procs.exists() and procs.read_text().split()):
            shutil.rmtree(path)

    def say(self, file: str) -> str:
        return (self.group / file).read_text().strip()

    @property
    def groups(self) -> list[str]:
        return sorted(path.name for path in self.group.iterdir() if path.is_dir())


@pytest.fixture
def boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Kernel]:
    """Start a machine."""

    def call(**options: str) -> Kernel:
        kernel = Kernel(tmp_path / "root", **options)
        monkeypatch.setattr(module, "_write", kernel.write)
        monkeypatch.setattr(module, "_remove", kernel.remove)
        return kernel

    return call


@pytest.fixture
def kernel(boot: Callable[..., Kernel]) -> Kernel:
    return boot()


@pytest.fixture
def group(tmp_path: Path) -> Cgroup:
    return Cgroup(tmp_path, LIMITS)


def made(kernel: Kernel, name: str = "ann") -> Cgroup:
    """The group of a bot, where groups work."""
    return not_none(make(name, LIMITS, kernel.root))


def say(group: Cgroup, **files: str) -> None:
    for name, text in files.items():
        (group.path / name.replace("_", ".", 1)).write_text(text)


# ---- probe


def test_a_delegated_group_works_and_is_left_as_it_was(kernel: Kernel) -> None:

    assert probe(kernel.root) is None
    assert kernel.say("cgroup.subtree_control") == ""
    assert kernel.say("cgroup.procs") == str(os.getpid())
    assert kernel.groups == []
    assert ("cgroup.subtree_control", "+memory +pids") in kernel.writes


def nothing(kernel: Kernel) -> None:
    """As it is."""


def with_another(kernel: Kernel) -> None:
    """Process 1 is in our group, too."""
    (kernel.group / "cgroup.procs").write_text(f"1\n{os.getpid()}")


def root_of_all(kernel: Kernel) -> None:
    (kernel.group / "cgroup.events").unlink()
    with_another(kernel)


def of_somebody_else(kernel: Kernel) -> None:
    kernel.refuse = lambda path, text: errno.EACCES if text.startswith("+") else 0


def in_no_group(kernel: Kernel) -> None:
    (kernel.root / "proc/self/cgroup").write_text("4:memory:/x\n")


PART = {"own": "/", "mounts": V2.replace("0:28 / ", "0:28 /docker/ab\\040c ")}
ONLY_V1 = "only cgroup v1 has the memory controller"
OLD = {"mounts": V1, "controllers": "hugetlb"}
PROBED: dict[str, tuple[dict[str, str], Callable[[Kernel], None], str]] = {
    "the root of a container": ({"own": "/"}, nothing, ""),
    "a mount of a part": (PART, lambda kernel: kernel.move_to("/docker/ab c"), ""),
    "a mount of another part": (
        *(PART, lambda kernel: kernel.move_to("/docker/other")),
        "not delegated: the arena's own group is not visible here",
    ),
    "version 1": (OLD, nothing, ONLY_V1),
    "both versions": ({**OLD, "mounts": V1 + HYBRID}, nothing, ONLY_V1),
    "in no group of version 2": ({}, in_no_group, "this process is in no group of cgroup v2"),
    "a controller that was not handed to us": (
        *({"controllers": "cpu pids"}, nothing),
        "not delegated: no memory controller; start it with systemd.*",
    ),
    "somebody else's group": ({}, of_somebody_else, ".*GROUP belongs to somebody else.*"),
    "a group that others are in": ({}, with_another, ".*other processes are in GROUP.*"),
    "the root of all groups, with others in it": ({"own": "/"}, root_of_all, ""),
}


@pytest.mark.parametrize(("options", "prepare", "why"), PROBED.values(), ids=PROBED)
def test_where_groups_work_and_why_they_do_not(
    boot: Callable[..., Kernel],
    options: dict[str, str],
    prepare: Callable[[Kernel], None],
    why: str,
) -> None:
    kernel = boot(**options)
    prepare(kernel)

    assert re.fullmatch(why.replace("GROUP", str(kernel.group)), probe(kernel.root) or "")
    assert kernel.say("cgroup.procs").split()[-1] == str(os.getpid())
    assert kernel.groups == []
    assert bool(kernel.writes) is (not why or prepare is of_somebody_else)
    assert bool(make("ann", LIMITS, kernel.root)) is (not why)


def test_no_groups_and_another_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert probe(tmp_path) == "cgroup v2 is not mounted"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert probe() == "not Linux"


def test_a_limit_that_the_kernel_refuses_is_said(kernel: Kernel) -> None:
    kernel.refuse = lambda path, text: errno.EINVAL if path.name == "pids.max" else 0

    assert probe(kernel.root) == f"not delegated: {kernel.group}: Invalid argument"
    assert make("ann", LIMITS, kernel.root) is None
    assert kernel.groups == ["arena"], "the probe's and the bot's are gone"


# ---- make


def test_a_bots_group_has_its_limits(kernel: Kernel) -> None:
    group = made(kernel)
    names = ("memory.max", "memory.swap.max", "memory.oom.group", "pids.max")

    found = [(group.path / name).read_text().strip() for name in names]
    assert found == [str(256 << 20), "0", "1", "64"]
    assert group.procs == group.path / "cgroup.procs"
    assert kernel.say("arena/cgroup.procs") == str(os.getpid())
    assert kernel.say("cgroup.subtree_control") == "memory pids"


def test_an_arena_that_is_in_its_leaf_makes_siblings(kernel: Kernel) -> None:
    first = made(kernel)
    kernel.move_to("/user/arena.scope/arena")
    second = made(kernel)

    assert first.path != second.path, "the first may not be gone yet"
    assert first.path.parent == second.path.parent == kernel.group
    assert probe(kernel.root) is None
    assert kernel.say("cgroup.subtree_control") == "memory pids"


def test_a_kernel_without_swap_has_one_limit_less(kernel: Kernel) -> None:
    kernel.refuse = lambda path, text: errno.ENOENT if "swap" in path.name else 0

    assert make("ann", LIMITS, kernel.root) is not None


@pytest.mark.parametrize("name", ["../../x", "..", "a/b", "ä" * 200, "a\nb", ""])
def test_a_name_does_not_lead_out_of_the_group(kernel: Kernel, name: str) -> None:
    group = made(kernel, name)

    assert group.path.parent == kernel.group
    assert group.path.is_dir()


# ---- What the kernel has noted


QUIET = "low 0\nhigh 0\nmax 12\noom 0\noom_kill 0\noom_group_kill 0\n"
KILLED = "max 90\noom 1\noom_kill 3\noom_group_kill 1\n"
BY_MACHINE = "max 0\noom 0\noom_kill 1\noom_group_kill 0\n"
MORE = "memory over 256 MiB: had 256 MiB and wanted more (cgroup)"
NOTED: dict[str, tuple[str, dict[str, str], str]] = {
    "limits that were kept": (QUIET, {"pids_events": "max 0\n"}, ""),
    "killed for memory": (KILLED, {}, "memory over 256 MiB (cgroup)"),
    "a kernel that knows the peak": (KILLED, {"memory_peak": f"{256 << 20}\n"}, MORE),
    "killed as the machine ran out": (BY_MACHINE, {}, ""),
    "a fork that was refused": (
        *(QUIET, {"pids_events": "max 7\n"}),
        "processes and threads over 64 (cgroup)",
    ),
}


@pytest.mark.parametrize(("memory", "files", "text"), NOTED.values(), ids=NOTED)
def test_what_the_kernel_has_noted_is_found(
    group: Cgroup, memory: str, files: dict[str, str], text: str
) -> None:
    say(group, memory_events=memory, **files)

    kind = Ending.MEMORY if text.startswith("memory") else Ending.PROCESSES
    expected = Finding(kind=kind, text=text, mechanism=Mechanism.CGROUP) if text else None
    assert group.finding() == expected


def test_a_group_that_is_gone_has_nothing_to_say(tmp_path: Path) -> None:
    group = Cgroup(tmp_path / "gone", LIMITS)

    assert group.finding() is None
    assert group.cpu_ms() == 0
    assert group.remove()


def test_cpu_time_is_the_kernels(group: Cgroup) -> None:
    say(group, cpu_stat="usage_usec 1234567\nuser_usec 1\nsystem_usec 2\n")

    assert group.cpu_ms() == 1234.567


# ---- Its end


def test_a_group_is_removed_with_those_below_it_once_nobody_is_in_it(kernel: Kernel) -> None:
    group = made(kernel)
    (group.path / "own").mkdir()
    group.procs.write_text("501")

    assert not group.remove()
    group.procs.write_text("")

    assert group.remove()
    assert kernel.groups == ["arena"]
