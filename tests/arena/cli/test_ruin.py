from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]

SMALL = ["--stake", "20", "--goal", "40", "--trials", "30", "--seed", "1"]


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such limit")
def test_more_jobs_than_files_can_be_open(run_process: Run) -> None:
    def few_files() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))

    argv = ["ruin", "tcp", "--bot", "sleep 100", *SMALL[:4], "--jobs", "200"]
    ran = run_process(*argv, preexec_fn=few_files)

    assert ran.status == 1
    assert ran.err.splitlines()[-1].endswith("Too many open files; expected fewer --jobs than 200")
