"""The modes of an emission that a slot makes during another emission."""

from enum import Enum

ReemissionVal = str


class ReemissionMode(str, Enum):
    IMMEDIATE = "immediate"
    QUEUED = "queued"
    LATEST = "latest"

    @staticmethod
    def _members():
        return ["immediate", "queued", "latest"]
