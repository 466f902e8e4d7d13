"""Experiments on this machine: matches in process, cross tables, odds, benchmarks."""
