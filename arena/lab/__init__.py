"""Experiments on this machine: matches in process, cross tables, odds, ruin, benchmarks, and bots that are launched for one command.

Nothing of a live arena depends on it.
"""
