from __future__ import annotations

import pytest

from tests.tools.mutants import ROOT, TARGETS, stages_of

MODULES = [
    str(file.relative_to(ROOT))
    for target in TARGETS
    for file in sorted(ROOT.glob(target))
    if not file.name.startswith("_")
]


def test_a_module_is_tried_by_its_own_tests_first_then_by_the_nearest() -> None:
    own, near, others = stages_of("arena/engine/match.py")

    assert own == ["tests/arena/engine/test_match.py"]
    assert "tests/arena/engine/test_shuffle.py" in near
    assert "tests/arena/formats/test_schedule.py" in others
    assert not {*own, *near} & {*others}
    assert not {*own} & {*near}
    assert not any("/e2e/" in file for file in (*own, *near, *others))


@pytest.mark.parametrize("module", MODULES)
def test_every_module_with_mutants_is_reached(module: str) -> None:
    assert stages_of(module)
