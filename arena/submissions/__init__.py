"""Receives the bots that students submit at `/submit`, builds and checks them, and keeps versions.

A submission is one upload by one owner. It waits, is built and checked, one at a time, and is then
accepted or refused. Only an accepted submission is a version, such as `ann v3`. In each game, at
most one version of an owner is in play. `arena/competitions` decides who plays it, and where.
"""
