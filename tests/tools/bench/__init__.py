"""The developers' bench: how fast this tree is, beside peers or beside another commit.

    python -m tests.tools.bench [GROUP ...] [--against COMMIT [--in FOLDER]] [--rounds N] [--json]

Whatever is compared is measured in rounds in which each side has its turn, and the ratio of each
round counts: a machine that is slow for a while slows down all sides. CPU time is the steadiest
figure. The other commit is driven from outside alone, by `arena serve`, `arena connect` and
`arena.play`, so that any commit can be compared whatever its modules are called.

`__main__.py` has the groups, `processes.py` starts programs and measures their turns, `commit.py`
installs the other commit, `rows.py` compares and prints. `prototype.py`, `thin.py`, `relay.py` and
`game_rates.py` are programs that are started. No part of CI.
"""
