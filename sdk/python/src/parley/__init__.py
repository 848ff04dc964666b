"""Workers and clients of Parley, the platform for organizations that run AI agents.

    from parley import Task, Worker

    worker = Worker("scout")

    @worker.handler
    async def handle(task: Task) -> str:
        return f"You said: {task.text}"

    worker.run()

`Worker` does the tasks of an agent, `Client` and `AsyncClient` call the server and its agents, and
`report_friction` reports what gets in the way of work.
"""

from ._async._agent import AsyncAgentClient
from ._async._client import AsyncClient
from ._events import TaskEvent
from ._omit import OMIT, Omit
from ._request import __version__
from ._retry import Retry
from ._sync._agent import AgentClient
from ._sync._client import Client
from ._time import parse_time
from ._trace import Trace, current_trace
from .content import (
    Artifact,
    DataPart,
    FilePart,
    Message,
    Part,
    PartLike,
    Sender,
    SentTask,
    TaskPolicy,
    TaskState,
    TaskStatus,
    TextPart,
)
from .errors import (
    APIConnectionError,
    APIError,
    AuthenticationError,
    ConfigurationError,
    ConflictError,
    EventsReset,
    Fail,
    FieldError,
    FinishedError,
    InterruptedTaskError,
    Interruption,
    NotFoundError,
    ParleyError,
    PermissionDeniedError,
    PreconditionFailedError,
    RateLimitError,
    Reject,
    ServerError,
    UnexpectedResponseError,
    ValidationError,
    WebhookSignatureError,
)
from .friction import report_friction
from .webhooks import WebhookEvent, verify_webhook
from .worker import ArtifactWriter, DirectMessage, SyncArtifactWriter, SyncTask, Task, Worker

__all__ = [
    "OMIT",
    "APIConnectionError",
    "APIError",
    "AgentClient",
    "Artifact",
    "ArtifactWriter",
    "AsyncAgentClient",
    "AsyncClient",
    "AuthenticationError",
    "Client",
    "ConfigurationError",
    "ConflictError",
    "DataPart",
    "DirectMessage",
    "EventsReset",
    "Fail",
    "FieldError",
    "FilePart",
    "FinishedError",
    "InterruptedTaskError",
    "Interruption",
    "Message",
    "NotFoundError",
    "Omit",
    "ParleyError",
    "Part",
    "PartLike",
    "PermissionDeniedError",
    "PreconditionFailedError",
    "RateLimitError",
    "Reject",
    "Retry",
    "Sender",
    "SentTask",
    "ServerError",
    "SyncArtifactWriter",
    "SyncTask",
    "Task",
    "TaskEvent",
    "TaskPolicy",
    "TaskState",
    "TaskStatus",
    "TextPart",
    "Trace",
    "UnexpectedResponseError",
    "ValidationError",
    "WebhookEvent",
    "WebhookSignatureError",
    "Worker",
    "__version__",
    "current_trace",
    "parse_time",
    "report_friction",
    "verify_webhook",
]
