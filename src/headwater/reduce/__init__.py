"""Provenance of other jobs: W3C PROV streams, reduced to which outputs depend on which inputs."""
