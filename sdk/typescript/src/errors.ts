import type { Problem, ProblemField } from "./api.js";

/** The base class of all errors of this package. */
export class ParleyError extends Error {
  override name = "ParleyError";
}

/** What the server said about a refused request. */
export interface Refusal {
  /** HTTP status; 200 if the refusal is a JSON-RPC error in a normal response. */
  status: number;
  /** Stable name of the reason, such as proposal.transition_not_allowed; empty if the response is not from Parley. */
  code?: string | undefined;
  /** A sentence that says what was wrong. */
  detail?: string | undefined;
  /** JSON-RPC error code, such as -32001. */
  rpcCode?: number | undefined;
  /** Each part of the request that broke a rule. */
  fields?: readonly ProblemField[] | undefined;
  /** What the state of the record allows instead. */
  allowed?: readonly string[] | undefined;
  /** The scope that the key lacks. */
  scope?: string | undefined;
  /** Id of the request in the server's log. */
  requestId?: string | undefined;
  /** How long the server asks to wait, in milliseconds. */
  retryAfterMs?: number | undefined;
}

/** The server refused a request. */
export class ApiError extends ParleyError implements Refusal {
  override name = "ApiError";
  readonly status: number;
  readonly code: string;
  readonly detail: string;
  readonly rpcCode: number | undefined;
  readonly fields: readonly ProblemField[];
  readonly allowed: readonly string[];
  readonly scope: string | undefined;
  readonly requestId: string | undefined;
  readonly retryAfterMs: number;

  constructor(refusal: Refusal) {
    const { status, rpcCode, code = "", detail = "" } = refusal;
    const number = status === 200 && rpcCode !== undefined ? rpcCode : status;
    super(`the server responded with ${String(number)}: ${detail || "no details"}${code && ` (${code})`}`);
    this.status = status;
    this.code = code;
    this.detail = detail;
    this.rpcCode = rpcCode;
    this.fields = refusal.fields ?? [];
    this.allowed = refusal.allowed ?? [];
    this.scope = refusal.scope;
    this.requestId = refusal.requestId;
    this.retryAfterMs = refusal.retryAfterMs ?? 0;
  }

  /** Returns the error of a problem document (RFC 9457) that is a part of a response. */
  static ofProblem(problem: Problem): ApiError {
    return new ApiError({
      status: problem.status,
      code: problem.code,
      detail: problem.detail,
      fields: problem.errors,
      allowed: problem.allowed,
      scope: problem.scope,
      requestId: problem.request_id,
    });
  }
}

/** A request got no response, or only a part of it. The server may have carried it out. */
export class ConnectionError extends ParleyError {
  override name = "ConnectionError";
  /** The request certainly did not reach the server. */
  readonly notSent: boolean;

  constructor(server: string, cause: unknown) {
    const notSent = neverConnected(cause);
    super(`${notSent ? "cannot reach" : "no response from"} ${server}: ${describe(cause)}`, { cause });
    this.notSent = notSent;
  }
}

/** The response is not what a Parley server sends. */
export class UnexpectedResponseError extends ParleyError {
  override name = "UnexpectedResponseError";
}

/** Events after the last known one are no longer kept; see FollowEventsOptions.onReset. */
export class EventsResetError extends ParleyError {
  override name = "EventsResetError";

  constructor() {
    super("events after the last known one are no longer kept; read the records again, or set onReset");
  }
}

/** Fails the task when a handler throws it: the sender sees its message, unlike those of other errors. */
export class Fail extends ParleyError {
  override name = "Fail";
}

/** Rejects the task when a handler throws it: the agent does not do such tasks. The sender sees its message. */
export class Reject extends ParleyError {
  override name = "Reject";
}

/** The sender canceled the task. */
export class TaskCanceledError extends ParleyError {
  override name = "TaskCanceledError";

  constructor() {
    super("the sender canceled the task");
  }
}

/** The lease is lost; the task goes to another worker. */
export class LeaseLostError extends ParleyError {
  override name = "LeaseLostError";

  constructor(cause?: unknown) {
    super("the lease is lost; the task goes to another worker", { cause });
  }
}

/** The worker is stopping; the task goes back to the queue. */
export class WorkerStoppingError extends ParleyError {
  override name = "WorkerStoppingError";

  constructor() {
    super("the worker is stopping");
  }
}

/** The handler has already ended the task. */
export class FinishedError extends ParleyError {
  override name = "FinishedError";

  constructor() {
    super("the task is already finished");
  }
}

const connectCodes = new Set(["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH"]);

/** Reports whether no connection was made. Browsers do not tell, so they always report false. */
function neverConnected(error: unknown): boolean {
  for (let e = error; e instanceof Error; e = e.cause) {
    if (e instanceof AggregateError) return e.errors.length > 0 && e.errors.every(neverConnected);
    if ("code" in e && typeof e.code === "string") {
      return connectCodes.has(e.code) || e.code === "UND_ERR_CONNECT_TIMEOUT";
    }
  }
  return false;
}

/** @internal Returns the message of an error. It never throws: programs may throw anything. */
export function reasonOf(error: unknown): string {
  try {
    return error instanceof Error ? error.message : String(error);
  } catch {
    return "an error that has no text";
  }
}

/** Returns the message of the innermost cause, which names the reason; fetch only says that it failed. */
function describe(error: unknown): string {
  let text = "";
  for (let e = error; e instanceof Error; e = e.cause) text = e.message || text;
  return text || reasonOf(error);
}
