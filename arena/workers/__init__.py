"""Matches on other machines: an arena puts jobs on a bus, and workers play them.

One engine carries both: NATS with JetStream, behind the protocol `Bus`. An arena without a bus
knows nothing of this package; behind `Jobs` stands then `LocalJobs`.
"""
