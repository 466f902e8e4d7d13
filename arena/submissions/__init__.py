"""What students hand in: taken at `/submit`, built, checked, kept as versions, ready to be played.

A submission is the upload of one owner. It waits, is built and checked, one at a time, and is then
accepted or refused. Only an accepted one is a version, `ann v3`; one version of an owner is in play
in a game. Who plays it in which competition is decided in `arena/competitions`.
"""
