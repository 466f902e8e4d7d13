"""The developers' bench: how fast this tree is, beside peers or beside another commit.

    python -m tests.tools.bench [GROUP ...] [--against COMMIT [--in FOLDER]] [--rounds N] [--json]

Whatever is compared is measured in rounds in which each side has its turn, and the ratio of each
round counts: a machine that is slow for a while slows down all sides. CPU time is the steadiest
figure. The other commit is driven from outside alone, by `arena serve`, `arena connect` and
`arena.play`, so that any commit can be compared whatever its modules are called. No part of CI.

tables   the server's CPU time for a decision with 1, 64, 512 and 2,048 matches at once, beside a
         bare prototype, and the time on the clock, with one match also beside an echo
matches  a round robin of 200 bots with its database, two hands a match
clients  the CPU time of `arena connect` for a decision, beside a thin client
games    each game in one process
idle     what 5,000 idle bots cost, and those that join them
"""
