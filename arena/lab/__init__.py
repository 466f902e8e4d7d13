"""Experiments on this machine: matches in process, cross tables, odds, ruin, what it carries.

Also bots that are launched for one command. No part of a live arena depends on this package.
"""
