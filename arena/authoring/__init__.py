"""For authors of bots: what `arena new` writes, and the conformance test behind `arena check`."""
