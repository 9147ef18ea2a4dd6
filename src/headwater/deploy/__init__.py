"""Deployment: flow files at work, in versions that can be changed while they run."""

from headwater.deploy.deployment import Deployment
from headwater.deploy.host import Host

__all__ = ["Deployment", "Host"]
