"""For authors of bots: starters, and the conformance test behind `arena check`."""
