"""Reads the OpenAPI document and writes types and resources of the package."""

from __future__ import annotations

import keyword
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

Schema = dict[str, Any]

HEADER = "# Generated from api/openapi.yaml by scripts/generate.py. Do not edit.\n"

OPERATIONS = {
    "proposals": {
        "list-proposals": "list",
        "submit-proposal": "submit",
        "get-proposal": "get",
        "change-proposal": "update",
        "cast-vote": "vote",
        "withdraw-vote": "withdraw_vote",
        "list-votes": "votes",
        "list-history": "history",
        "count-proposals": "counts",
        "group-proposals": "groups",
        "find-similar-proposals": "find_similar",
        "list-similar-proposals": "similar",
        "decide-proposals": "decide",
    },
    "notes": {"list-notes": "list", "create-note": "create", "delete-note": "delete"},
    "followups": {
        "list-followups": "list",
        "create-followup": "create",
        "get-followup": "get",
        "change-followup": "update",
    },
    "friction": {
        "report-friction": "report",
        "list-friction": "list",
        "get-friction": "get",
        "get-friction-settings": "settings",
        "set-friction-settings": "set_settings",
    },
    "agents": {
        "list-agents": "list",
        "create-agent": "create",
        "get-agent": "get",
        "change-agent": "update",
        "get-agent-connection": "connection",
        "find-agents": "find",
        "get-usage": "usage",
        "get-agent-usage": "callers",
        "refresh-agent": "refresh",
    },
    "org_tasks": {
        "list-a2a-tasks": "list",
        "get-a2a-task": "get",
        "list-push-configs": "push_configs",
        "list-task-push-configs": "task_push_configs",
        "retry-push-config": "retry_push_config",
        "rerun-a2a-task": "rerun",
    },
    "members": {
        "list-members": "list",
        "create-member": "create",
        "get-member": "get",
        "change-member": "update",
        "erase-member": "erase",
        "create-member-link": "create_link",
    },
    "invitations": {
        "list-invitations": "list",
        "create-invitation": "create",
        "revoke-invitation": "revoke",
    },
    "keys": {
        "list-keys": "list",
        "create-key": "create",
        "get-key": "get",
        "revoke-key": "revoke",
        "rotate-key": "rotate",
    },
    "own_keys": {
        "list-own-keys": "list",
        "create-own-key": "create",
        "get-own-key": "get",
        "revoke-own-key": "revoke",
        "rotate-own-key": "rotate",
    },
    "oauth_clients": {
        "list-clients": "list",
        "create-client": "create",
        "get-client": "get",
        "change-client": "update",
        "delete-client": "delete",
        "rotate-client": "rotate",
    },
    "webhooks": {
        "list-webhooks": "list",
        "create-webhook": "create",
        "get-webhook": "get",
        "change-webhook": "update",
        "delete-webhook": "delete",
        "rotate-webhook": "rotate",
        "list-webhook-deliveries": "deliveries",
        "ping-webhook": "ping",
        "redeliver-webhook": "redeliver",
    },
    "audit": {"list-audit": "list"},
    "server": {
        "get-me": "me",
        "get-health": "health",
        "get-readiness": "ready",
        "get-platform-card": "platform_card",
    },
}
"""The name of the method for each operation, by resource."""

WRITTEN = {
    "call-agent",
    "get-agent-card",
    "claim-tasks",
    "report-task",
    "return-task",
    "exchange-work",
    "rerun-task",
    "list-events",
}
"""Operations that the package has by hand: streams, leases and JSON-RPC."""

REPEATABLE = {"revoke-key", "revoke-own-key", "set-friction-settings"}
"""Operations without an Idempotency-Key that have the same outcome a second time."""

ENUMS = {
    ("reliability", "performance", "security", "process", "feature", "documentation"): "Category",
    ("low", "normal", "high"): "Priority",
    ("draft", "open", "approved", "rejected", "resolved"): "ProposalStatus",
    ("open", "in_progress", "done", "canceled"): "FollowupStatus",
    ("for", "against"): "Choice",
    ("available", "busy", "offline"): "AgentStatus",
    ("user", "agent", "service"): "PrincipalKind",
    ("minute", "hour", "day"): "QuotaPeriod",
    ("active", "paused", "failed"): "WebhookState",
    ("standard", "cloudevents", "slack"): "WebhookFormat",
}
"""Names of enumerations that occur more than once."""


def load(path: Path) -> Schema:
    """Read the document, and check that this script knows all of its operations."""
    document: Schema = yaml.safe_load(path.read_text())
    found = {operation.id for operation in operations(document)}
    known = WRITTEN.union(*OPERATIONS.values())
    if found != known:
        raise SystemExit(
            f"operations that scripts/openapi.py does not know: {sorted(found - known)}; "
            f"operations that are gone: {sorted(known - found)}"
        )
    return document


@dataclass
class Operation:
    """An operation of the document."""

    id: str
    method: str
    path: str
    spec: Schema
    document: Schema

    @property
    def body(self) -> Schema | None:
        content = self.spec.get("requestBody", {}).get("content", {}).get("application/json")
        return resolve(self.document, content["schema"]) if content else None

    @property
    def response(self) -> Schema | None:
        for status in ("200", "201"):
            content = (
                self.spec["responses"].get(status, {}).get("content", {}).get("application/json")
            )
            if content:
                schema: Schema = content["schema"]
                return schema
        return None

    def parameters(self, location: str) -> list[Schema]:
        resolved = [resolve(self.document, p) for p in self.spec.get("parameters", ())]
        return [p for p in resolved if p["in"] == location]


def operations(document: Schema) -> list[Operation]:
    """Return all operations."""
    return [
        Operation(spec["operationId"], method, path, spec, document)
        for path, methods in document["paths"].items()
        for method, spec in methods.items()
        if method in ("get", "post", "put", "patch", "delete")
    ]


def resolve(document: Schema, schema: Schema) -> Schema:
    """Follow a reference."""
    while "$ref" in schema:
        target: Any = document
        for name in schema["$ref"].removeprefix("#/").split("/"):
            target = target[name]
        schema = target
    return schema


def type_of(schema: Schema, *, prefix: str = "", keep_null: bool = True) -> str:
    """Return the Python type of a schema. Arguments may be any sequence or mapping."""
    if "$ref" in schema:
        return prefix + str(schema["$ref"]).rsplit("/", 1)[1]
    if choices := schema.get("oneOf") or schema.get("anyOf"):
        names = [type_of(c, prefix=prefix, keep_null=keep_null) for c in choices]
        return " | ".join(dict.fromkeys(n for n in names if keep_null or n != "None"))
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else list(kinds)
    null = "null" in kinds or None in schema.get("enum", ())
    kinds = [kind for kind in kinds if kind != "null"]
    if values := [value for value in schema.get("enum", ()) if value is not None]:
        name = ENUMS.get(tuple(values))
        spelled = f"{prefix}{name}" if name else f"Literal[{', '.join(map(repr, values))}]"
        names = [spelled]
    else:
        names = [_plain(kind, schema, prefix) for kind in kinds] or ["Any"]
    if null and keep_null and names != ["Any"]:
        names.append("None")
    return " | ".join(names)


def _plain(kind: str, schema: Schema, prefix: str) -> str:
    if kind == "array":
        return (
            f"Sequence[{type_of(schema.get('items', {}), prefix=prefix)}]"
            if prefix
            else (f"list[{type_of(schema.get('items', {}))}]")
        )
    if kind == "object":
        return "Mapping[str, Any]" if prefix else "dict[str, Any]"
    if kind == "string" and schema.get("format") == "date-time":
        return f"{prefix}Timestamp"
    return {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}[kind]


def types(document: Schema) -> str:
    """Return the module with the types of all responses, and of values in requests."""
    lines = [
        HEADER,
        '"""The JSON objects of the REST API, as typed dictionaries.',
        "",
        "Objects may have more members than their type: newer servers add some.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import Any, Literal, TypedDict, Union",
        "",
        "Timestamp = str",
        '"""A time in UTC (RFC 3339), such as `2026-01-31T09:30:00.123Z`; see `parley.parse_time`."""',
        "",
    ]
    lines += [f"{name} = Literal[{', '.join(map(repr, values))}]" for values, name in ENUMS.items()]
    wanted = _used(document)
    for name, schema in document["components"]["schemas"].items():
        if name in wanted:
            lines += ["", "", *_typed_dict(name, schema)]
    return "\n".join(lines) + "\n"


def _used(document: Schema) -> set[str]:
    """Return the schemas that responses and values of requests refer to."""
    generated = [o for o in operations(document) if o.id not in WRITTEN]
    todo: list[Any] = [o.response for o in generated]
    todo += [
        {"$ref": f"#/components/schemas/{name}"} for name in ("AgentCard", "Event", "EventPage")
    ]
    todo += [list((o.body or {}).get("properties", {}).values()) for o in generated]
    used: set[str] = set()
    while todo:
        item = todo.pop()
        if isinstance(item, list):
            todo += item
        elif isinstance(item, dict):
            name = str(item.get("$ref", "")).rsplit("/", 1)[1:]
            if name and name[0] not in used:
                used.add(name[0])
                todo.append(document["components"]["schemas"][name[0]])
            todo += [value for key, value in item.items() if key not in ("if", "then", "else")]
    return used


def _typed_dict(name: str, schema: Schema) -> list[str]:
    """Return a typed dictionary. Optional members and keywords need base classes of their own."""
    required = set(schema.get("required", ()))
    groups: dict[tuple[bool, bool], Schema] = {}
    for key, value in schema.get("properties", {}).items():
        groups.setdefault((keyword.iskeyword(key), key in required), {})[key] = value
    plain = {always: members for (word, always), members in groups.items() if not word}
    words = {always: members for (word, always), members in groups.items() if word}
    lines: list[str] = []
    bases: list[str] = []
    for always, members in words.items():
        base = f"_{name}Words"
        pairs = ", ".join(f"{key!r}: {type_of(value)!r}" for key, value in members.items())
        lines += [f'{base} = TypedDict("{base}", {{{pairs}}}, total={always})', "", ""]
        bases.append(base)
    if len(plain) == 2:
        base = f"_{name}Required"
        lines += [
            f"class {base}({', '.join(bases) or 'TypedDict'}):",
            *_members(plain.pop(True)),
            "",
            "",
        ]
        bases = [base]
    [(always, members)] = plain.items() or [(True, {})]
    total = "" if always else ", total=False"
    return [*lines, f"class {name}({', '.join(bases) or 'TypedDict'}{total}):", *_members(members)]


def _members(properties: Schema) -> list[str]:
    lines = []
    for name, schema in properties.items():
        lines.append(f"    {name}: {type_of(schema)}")
        if text := _sentence(schema):
            lines.append(f'    """{text}"""')
    return lines or ["    pass"]


def _sentence(schema: Schema) -> str:
    return (
        " ".join(str(schema.get("description", "")).split())
        .replace("\\", "\\\\")
        .replace('"""', "'''")
    )


def resources(document: Schema) -> str:
    """Return the module with a class for each resource."""
    by_id = {operation.id: operation for operation in operations(document)}
    lines = [
        HEADER,
        '"""The operations of the REST API, by resource."""',
        "",
        "from __future__ import annotations",
        "",
        "from collections.abc import AsyncIterator, Mapping, Sequence",
        "from typing import Any, Literal, cast",
        "",
        "from .. import types as t",
        "from .._omit import OMIT, Omit, given",
        "from .._request import Request, join, query_of, without_none",
        "from ._paging import cursor_pages, numbered_pages",
        "from ._transport import AsyncTransport",
    ]
    for resource, methods in OPERATIONS.items():
        lines += ["", "", f"class {_class(resource)}:"]
        lines += [f'    """{_about(resource)}"""', ""]
        lines += [
            "    def __init__(self, transport: AsyncTransport) -> None:",
            "        self._transport = transport",
        ]
        for id, method in methods.items():
            lines += ["", *_method(by_id[id], method)]
    return "\n".join(lines) + "\n"


def _class(resource: str) -> str:
    return "Async" + "".join(word.capitalize() for word in resource.split("_")) + "Resource"


def _about(resource: str) -> str:
    names = {
        "org_tasks": "All A2A tasks of the org",
        "own_keys": "The caller's own keys",
        "oauth_clients": "OAuth clients",
        "server": "The server itself",
        "audit": "The audit log",
    }
    return f"{names.get(resource) or resource.capitalize()}."


@dataclass
class Argument:
    """An argument of a method."""

    name: str
    schema: Schema
    location: str
    required: bool

    @property
    def python(self) -> str:
        return f"{self.name}_" if keyword.iskeyword(self.name) else self.name

    @property
    def nullable(self) -> bool:
        types = self.schema.get("type", ())
        either = self.schema.get("oneOf") or self.schema.get("anyOf") or ()
        return (
            "null" in types
            or None in self.schema.get("enum", ())
            or any(c.get("type") == "null" for c in either)
        )

    @property
    def omitted(self) -> bool:
        """Null has a meaning of its own, so another value stands for "not given"."""
        return self.location == "body" and self.nullable and not self.required

    def declare(self) -> str:
        kind = type_of(self.schema, prefix="t.", keep_null=self.location == "body")
        if self.required:
            return f"{self.python}: {kind}"
        if self.omitted:
            return f"{self.python}: {kind} | Omit = OMIT"
        return f"{self.python}: {kind} | None = None"


def _arguments(operation: Operation) -> list[Argument]:
    found = [
        Argument(
            p["name"],
            {"description": p.get("description", ""), **p["schema"]},
            location,
            location == "path" or p.get("required", False),
        )
        for location in ("path", "query")
        for p in operation.parameters(location)
        if p["name"] != "org"
    ]
    body = operation.body or {}
    required = set(body.get("required", ()))
    found += [
        Argument(
            name, {"description": schema.get("description", ""), **schema}, "body", name in required
        )
        for name, schema in body.get("properties", {}).items()
    ]
    return found


def _method(operation: Operation, name: str) -> list[str]:
    arguments = _arguments(operation)
    path = [a for a in arguments if a.location == "path"]
    named = sorted((a for a in arguments if a.location != "path"), key=lambda a: not a.required)
    keyed = any(p["name"] == "Idempotency-Key" for p in operation.parameters("header"))
    declared = [a.declare() for a in path]
    options = [a.declare() for a in named] + (
        ["idempotency_key: str | None = None"] if keyed else []
    )
    signature = ", ".join(["self", *declared, *(["*"] if options else []), *options])
    result = type_of(operation.response, prefix="t.") if operation.response else "None"
    lines = [
        f"    async def {name}({signature}) -> {result}:",
        *_docstring(operation, path + named, keyed),
    ]
    lines += _request(operation, arguments, keyed)
    call = "await self._transport.call(request)"
    lines.append(
        f'        return cast("{result}", {call})' if result != "None" else f"        {call}"
    )
    return lines + _pages(operation, name, path, named)


def _docstring(operation: Operation, arguments: list[Argument], keyed: bool) -> list[str]:
    summary = operation.spec["summary"].rstrip(".") + "."
    lines = [summary]
    if text := _sentence(operation.spec):
        lines += ["", *textwrap.wrap(text, 90)]
    described = [(a.python, _sentence(a.schema)) for a in arguments]
    if keyed:
        described.append(
            ("idempotency_key", "Repeats with the same key have no further effect for 24 hours.")
        )
    if described:
        lines += ["", "Args:"]
        for name, text in described:
            lines += textwrap.wrap(
                f"{name}: {text}", 90, initial_indent="    ", subsequent_indent="        "
            )
    lines = [line.replace("\\", "\\\\").replace('"""', "'''") for line in lines]
    body = [f"        {line}".rstrip() for line in lines[1:]]
    if not body:
        return [f'        """{lines[0]}"""']
    return [f'        """{lines[0]}', *body, '        """']


def _request(operation: Operation, arguments: list[Argument], keyed: bool) -> list[str]:
    base = "/api/v1/orgs/{org}"
    in_org = operation.path.startswith(base)
    segments = operation.path.removeprefix(base).strip("/").split("/")
    spelled = [s.strip("{}") if s.startswith("{") else repr(s) for s in segments]
    parts = [f'"{operation.method.upper()}"', f"join({', '.join(spelled)})"]
    if not in_org:
        parts.append("in_org=False")
    if query := [a for a in arguments if a.location == "query"]:
        parts.append(f"query=query_of({', '.join(_pair(a) for a in query)})")
    if operation.body is not None:
        body = [a for a in arguments if a.location == "body"]
        plain = ", ".join(_pair(a) for a in body if not a.omitted)
        parts.append(f"body=without_none({plain})")
        if special := ", ".join(_pair(a) for a in body if a.omitted):
            parts[-1] = f"body=without_none({plain}) | given({special})"
    if keyed:
        parts += ["keyed=True", "idempotency_key=idempotency_key"]
    if operation.id in REPEATABLE:
        parts.append("repeatable=True")
    return [f"        request = Request({', '.join(parts)})"]


def _pair(argument: Argument) -> str:
    if argument.python != argument.name:
        return f'**{{"{argument.name}": {argument.python}}}'
    return f"{argument.name}={argument.name}"


def _pages(
    operation: Operation, name: str, path: list[Argument], named: list[Argument]
) -> list[str]:
    """Return an iterator over all pages of a list, if it has pages."""
    paging = {a.name for a in named} & {"cursor", "page"}
    if not paging or operation.response is None:
        return []
    schema = resolve(operation.document, operation.response)
    member, items = next(
        (k, v["items"]) for k, v in schema["properties"].items() if v.get("type") == "array"
    )
    item = type_of(items, prefix="t.")
    filters = [a for a in named if a.name not in ("cursor", "page", "limit")]
    signature = ", ".join(
        [
            "self",
            *(a.declare() for a in path),
            *(["*"] if filters else []),
            *(a.declare() for a in filters),
        ]
    )
    kind = "cursor_pages" if "cursor" in paging else "numbered_pages"
    lines = [
        "",
        f"    async def {'all' if name == 'list' else 'all_' + name}({signature}) -> AsyncIterator[{item}]:",
        *_docstring(operation, path + filters, keyed=False),
    ]
    lines[2] = lines[2].replace('"""', '"""Iterate over all pages: ', 1)
    lines += _request(operation, path + filters, keyed=False)
    return [
        *lines,
        f'        async for item in {kind}(self._transport, request, "{member}"):',
        f'            yield cast("{item}", item)',
    ]
