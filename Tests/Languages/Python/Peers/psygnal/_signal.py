"""The modes for emissions that a slot makes while it is being called."""

from enum import Enum

ReemissionVal = str


class ReemissionMode(str, Enum):
    IMMEDIATE = "immediate"
    QUEUED = "queued"
    LATEST = "latest"

    @staticmethod
    def _members():
        return ["immediate", "queued", "latest"]
