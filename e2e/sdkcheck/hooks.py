"""What the schemas of the document cannot say, for schemathesis.

Requests that are valid by their schema may still be refused: a cursor comes from an earlier
response, a principal must exist, a time of expiry lies in the future. The table RULES
has all such rules. Some requests are changed so that they succeed more often, and claims
and reads of events do not wait.
"""

import re

import schemathesis
from schemathesis.core.failures import AcceptedNegativeData
from schemathesis.openapi.checks import RejectedPositiveData

ID = r"[a-z0-9][a-z0-9._-]{0,63}"

# The place in the request, and the message of the server.
RULES = [
    (r"cursor", r"is not a cursor of this list|cannot be combined with page"),
    (r"after", r'must be the "next" of the page before'),
    (r"q", r"must contain a letter, a digit or a symbol|must not have more than 64 words"),
    (r"sort", r"relevance needs a search text"),
    (r"since", r"must be a time such as"),  # the pattern has days that a month does not have
    (r"/title", r"must have a visible character"),
    (r"title", r"is required, unless there is a problem"),
    (r"/items/\d+/id", r"appears twice"),
    (r"/skills(/.*)?", r"is given twice|different tags|bytes of names"),
    (r"/duplicate_of", r"must be the id of an existing proposal|must be another proposal|is itself a duplicate"),
    (r"/assignee", r"is not a member of this org"),
    (r"/scopes/\d+", r"names an agent that this org cannot reach"),
    (r"/expires_at", r"must lie in the future"),
    (r"/seen", r"must be the number from the claim or the last response"),
    (r"/admin", r"can be true for users only"),
    (r"/url", r"must (start with https://|be an absolute URL|not (be an address of|point to|contain a user name))"),
    # Patterns cannot name characters above U+FFFF in a way that all tools understand.
    (r"/name|/provider/organization|/skills/\d+/name", r"cannot contain the character U\+[0-9A-F]{5}"),
]

# An Idempotency-Key belongs to one request.
CODES = {"idempotency.key_reused"}

# These are the same in all requests, whatever schemathesis wanted to send.
PINNED = {"org", "agent"}


@schemathesis.hook
def filter_failure(context, failure, case, response):
    if case.operation.path == "/a2a/{agent}" and isinstance(case.body, list):
        return False  # the response to a batch is an array; the document has the single request
    if case.operation.path.endswith("/work") and isinstance(failure, AcceptedNegativeData):
        if any("problem" in report for report in response.json()["reports"]):
            return False  # a bad report is refused alone
    if isinstance(failure, RejectedPositiveData):
        return not ruled_out(response.json())
    if isinstance(failure, AcceptedNegativeData) and case.meta is not None:
        # Nothing was wrong with the request if the one bad part was pinned, or came from a link instead.
        replaced = "positive test case" in failure.message
        return not replaced and parameter_of(case) not in PINNED
    return True


def ruled_out(problem):
    """Whether each fault that the server found is one that no schema can name."""
    if problem.get("code") in CODES:
        return True
    faults = problem.get("errors", [])
    return bool(faults) and all(
        any(
            re.fullmatch(place, fault.get("pointer") or fault.get("parameter") or "") and re.search(words, fault["detail"])
            for place, words in RULES
        )
        for fault in faults
    )


@schemathesis.hook
def map_body(context, body):
    if not isinstance(body, dict):
        return body
    path = context.operation.path
    if path.endswith("/keys") and re.fullmatch(f"(user|agent|service):{ID}", str(body.get("principal"))):
        body["principal"] = "service:crm"
    if path.endswith("/keys") and re.match(r"\d{4}-", str(body.get("expires_at"))):
        body["expires_at"] = "2999-01-01T00:00:00Z"
    return body


@schemathesis.hook
def before_call(context, case, kwargs):
    # A case without credentials must stay as it is: schemathesis adds them to one that was changed.
    if case.operation.path.endswith("/events") and parameter_of(case) != "Authorization":
        if re.fullmatch(r"wait=\d+", str((case.headers or {}).get("Prefer"))):
            case.headers["Prefer"] = "wait=0"
    if case.operation.path.endswith("/claim"):
        claim_little(case.body)
    if case.operation.path.endswith("/work") and isinstance(case.body, dict):
        claim_little(case.body.get("claim"))


def claim_little(claim):
    """Makes a claim one that does not wait, and leaves tasks to others."""
    if not isinstance(claim, dict):
        return
    if is_count(claim.get("wait_seconds", 0), 60):
        claim["wait_seconds"] = 0
    if is_count(claim.get("max"), 100):
        claim["max"] = min(claim["max"], 1)


def parameter_of(case):
    """The one parameter that the case is about, if there is one."""
    return getattr(case.meta.phase.data, "parameter", None) if case.meta is not None else None


def is_count(value, most):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == int(value) and 0 <= value <= most
