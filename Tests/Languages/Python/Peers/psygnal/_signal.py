"""The modes of reemission. A slot reemits if it emits the signal that is calling the slot."""

from enum import Enum

ReemissionVal = str


class ReemissionMode(str, Enum):
    IMMEDIATE = "immediate"
    QUEUED = "queued"
    LATEST = "latest"

    @staticmethod
    def _members():
        return ["immediate", "queued", "latest"]
