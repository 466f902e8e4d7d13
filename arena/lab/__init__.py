"""Experiments on this machine: matches in process, cross tables, odds, ruin trials, capacity.

It also launches bots for a single command. No part of a live arena depends on this package.
"""
