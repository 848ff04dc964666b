"""Workers: programs that claim the tasks of an agent, do them and report the results."""

from ._api import DirectMessage
from ._artifacts import ArtifactWriter, SyncArtifactWriter
from ._task import SyncTask, Task
from ._worker import Worker

__all__ = [
    "ArtifactWriter",
    "DirectMessage",
    "SyncArtifactWriter",
    "SyncTask",
    "Task",
    "Worker",
]
