"""Jobs over a bus: who plays them, what counts, and what becomes of lost attempts."""

from __future__ import annotations

from tests.support.bus_stage import BusStage
from tests.support.virtual_time import run_in_virtual_time


def test_all_pairings_are_played_by_workers() -> None:
    async def main() -> None:
        stage = BusStage(20)
        for name in ("w1", "w2"):
            stage.start_worker(name)
        await stage.start_arena()
        await stage.until_done(60)
        await stage.close()

        assert len(stage.began) == 20
        assert stage.told == []
        assert stage.on_bus == 0

    run_in_virtual_time(main())
