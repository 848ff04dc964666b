import type { AgentCard, OrgTask } from "../api.js";
import { encodeMessage, partsOf, type Content, type Message } from "../content.js";
import { jsonOf, openStream } from "../sse.js";
import { refusalOfRpc, type RpcErrorBody } from "../rpc.js";
import { fill, type Call, type RequestOptions, type Transport } from "../transport.js";
import type { Page } from "./page.js";
import { endedEarly, Reconnector } from "./resume.js";
import {
  decodeEvent,
  decodeTask,
  encodeState,
  type TaskEvent,
  type TaskSnapshot,
  type TaskState,
  type WireEvent,
  type WireTask,
} from "./tasks.js";

/** How long a task may take and how often it is tried. */
export interface TaskPolicy {
  /** When the task fails unless it is over. */
  deadline?: Date | undefined;
  /** The time from the creation of the task to its deadline; instead of deadline. */
  timeoutSeconds?: number | undefined;
  /** When the task is tried again; default: up to 3 attempts if workers are lost. */
  retry?:
    | {
        /** Attempts at most, with the first; default 3. */
        maxAttempts?: number | undefined;
        /** The wait before the second attempt; doubles with each further one, up to an hour. */
        backoffSeconds?: number | undefined;
        /** After which ends of an attempt; default: both. */
        on?: ("lost" | "failed")[] | undefined;
      }
    | undefined;
}

/** Options of a message to an agent. */
export interface SendOptions extends RequestOptions {
  /** The sender's id of the task; by default the client makes one. That of a live task sends a further message. */
  id?: string | undefined;
  /** Groups tasks. */
  contextId?: string | undefined;
  /**
   * The task that the caller works on: its id, or the token of its lease. The server counts such calls, and
   * refuses those that go too deep. Task.call sets it.
   */
  parent?: string | undefined;
  /** Arbitrary metadata for the agent. */
  metadata?: Record<string, unknown> | undefined;
  /** The deadline of a new task, and when it is tried again; default: that of the agent. */
  policy?: TaskPolicy | undefined;
  /** How many messages of the history the response has; default none. */
  historyLength?: number | undefined;
}

/** Selects the caller's own tasks. */
export interface TaskListOptions extends RequestOptions {
  contextId?: string | undefined;
  state?: TaskState | undefined;
  updatedAfter?: Date | undefined;
  historyLength?: number | undefined;
  includeArtifacts?: boolean | undefined;
  limit?: number | undefined;
  cursor?: string | undefined;
}

/** What can be sent: content, or a whole message. */
export type Sendable = Content | Omit<Message, "role">;

/** Calls one agent by A2A. The sender chooses the id of a task, so that a repeated send makes no second task. */
export class AgentClient {
  readonly #transport: Transport;
  readonly #path: string;
  readonly #id: string;

  /** @internal */
  constructor(transport: Transport, id: string) {
    this.#transport = transport;
    this.#path = fill("/a2a/{agent}", { agent: id });
    this.#id = id;
  }

  /** Sends a task, or a further message on one. With waitSeconds it waits for the task to rest, up to a minute. */
  async send(message: Sendable, options: SendOptions & { waitSeconds?: number } = {}): Promise<TaskSnapshot> {
    const { waitSeconds = 0 } = options;
    const headers = parentOf(options);
    if (waitSeconds > 0) headers["Prefer"] = `wait=${String(waitSeconds)}`;
    const call = this.#call("tasks/send", sendParams(message, options), { headers, waitMs: waitSeconds * 1000 });
    return decodeTask(await this.#result<WireTask>({ ...call, repeatable: true }, options));
  }

  /**
   * Sends a task and iterates over its events until it is over or waits for its sender. A further message on a live task begins with
   * its own events. The stream survives broken connections and restarts of the server.
   */
  stream(message: Sendable, options: SendOptions = {}): AsyncGenerator<TaskEvent, void, undefined> {
    const params = sendParams(message, options);
    const call = this.#call("tasks/sendSubscribe", params, { headers: parentOf(options) });
    return this.#follow(params.id, call, "", options);
  }

  /**
   * Iterates over the events of a task that the caller sent, until it is over or waits for its sender. It
   * survives up to 8 broken connections in a row. after: id of the last known event.
   */
  subscribe(
    id: string,
    { after = "", ...options }: RequestOptions & { after?: string | undefined } = {},
  ): AsyncGenerator<TaskEvent, void, undefined> {
    return this.#follow(id, this.#call("tasks/resubscribe", { id }), after, options);
  }

  /** Returns a task that the caller sent. */
  async get(id: string, options: RequestOptions & { historyLength?: number } = {}): Promise<TaskSnapshot> {
    const params = { id, historyLength: options.historyLength };
    return decodeTask(await this.#v1<WireTask>("GetTask", params, { ...options, repeatable: true }));
  }

  /** Cancels a task that the caller sent. */
  async cancel(id: string, options: RequestOptions = {}): Promise<TaskSnapshot> {
    return decodeTask(await this.#v1<WireTask>("CancelTask", { id }, options));
  }

  /**
   * Sends a task of the caller again that failed, was rejected or canceled. The new task has its own id, and
   * names the old one in its metadata.
   */
  rerun(id: string, options: RequestOptions = {}): Promise<OrgTask> {
    const path = fill("/api/v1/agents/{agent}/tasks/{id}/rerun", { agent: this.#id, id });
    return this.#transport.json({ method: "POST", path, keyed: true }, options);
  }

  /** Returns one page of the tasks that the caller sent to the agent, the latest change first. */
  async list(options: TaskListOptions = {}): Promise<Page<TaskSnapshot>> {
    const params = {
      contextId: options.contextId,
      status: options.state && encodeState(options.state),
      statusTimestampAfter: options.updatedAfter?.toISOString(),
      historyLength: options.historyLength,
      includeArtifacts: options.includeArtifacts,
      pageSize: options.limit,
      pageToken: options.cursor,
    };
    const list = await this.#v1<{ tasks?: WireTask[]; nextPageToken?: string; totalSize?: number }>(
      "ListTasks",
      params,
      { ...options, repeatable: true },
    );
    const next = list.nextPageToken === "" ? undefined : list.nextPageToken;
    return { items: (list.tasks ?? []).map(decodeTask), total: list.totalSize, next };
  }

  /** Iterates over the tasks of all pages. */
  async *all(options: TaskListOptions = {}): AsyncGenerator<TaskSnapshot, void, undefined> {
    let cursor = options.cursor;
    do {
      const page = await this.list({ limit: 100, ...options, cursor });
      yield* page.items;
      cursor = page.next;
    } while (cursor !== undefined);
  }

  /** Sends the agent a message that is not a task: it cannot be queried later. */
  message(content: Content, options: RequestOptions = {}): Promise<{ id: string }> {
    const message = { role: "user", ...encodeMessage({ parts: partsOf(content) }) };
    return this.#result(this.#call("message/send", { message }), options);
  }

  /** Calls any JSON-RPC method of the agent. repeatable: a second time does the same as the first. */
  call<T>(method: string, params: unknown, options: RequestOptions & { repeatable?: boolean } = {}): Promise<T> {
    return this.#result({ ...this.#call(method, params), repeatable: options.repeatable ?? false }, options);
  }

  /** Returns the agent's card in the form of A2A 1.0. */
  card(options: RequestOptions = {}): Promise<AgentCard> {
    const headers = { "A2A-Version": "1.0" };
    return this.#transport.json({ method: "GET", path: this.#path, headers, repeatable: true }, options);
  }

  #call(method: string, params: unknown, more: Partial<Call> = {}): Call {
    return { method: "POST", path: this.#path, body: { jsonrpc: "2.0", id: 1, method, params }, ...more };
  }

  #v1<T>(method: string, params: unknown, options: RequestOptions & { repeatable?: boolean }): Promise<T> {
    return this.call(method, params, { ...options, headers: { ...options.headers, "A2A-Version": "1.0" } });
  }

  async #result<T>(call: Call, options: RequestOptions): Promise<T> {
    return resultOf(await this.#transport.json<RpcResponse<T>>(call, options));
  }

  /** Follows the events of a task over as many connections as necessary. */
  async *#follow(
    id: string,
    first: Call,
    after: string,
    options: RequestOptions,
  ): AsyncGenerator<TaskEvent, void, undefined> {
    const reconnector = new Reconnector(this.#transport.retry, options.signal);
    let last = after;
    for (;;) {
      const before = last;
      let error: unknown = endedEarly(this.#transport.base);
      try {
        const call =
          last === "" ? first : this.#call("tasks/resubscribe", { id }, { headers: { "Last-Event-ID": last } });
        for await (const event of openStream(this.#transport, call, options)) {
          if (event.data === undefined) continue;
          const change = decodeEvent(event.id, resultOf(jsonOf(event) as RpcResponse<WireEvent>));
          if (last !== "" && Number(event.id) <= Number(last)) continue; // it came before
          last = event.id || last;
          yield change;
          if (change.final) return;
        }
      } catch (failure) {
        error = failure;
      }
      await reconnector.pause({ error, worked: last !== before, repeatable: true });
    }
  }
}

interface RpcResponse<T> {
  result?: T;
  error?: RpcErrorBody;
}

function resultOf<T>(response: RpcResponse<T>): T {
  if (response.error) throw refusalOfRpc(response.error, { status: 200 });
  return response.result as T;
}

function parentOf({ parent }: SendOptions): Record<string, string> {
  return parent === undefined ? {} : { "Parley-Parent-Task": parent };
}

function sendParams(sendable: Sendable, options: SendOptions) {
  const message = typeof sendable === "object" && "parts" in sendable ? sendable : { parts: partsOf(sendable) };
  const { id = `js-${crypto.randomUUID()}`, contextId, policy, historyLength } = options;
  const metadata = policy ? { ...options.metadata, "parley.dev/policy": encodePolicy(policy) } : options.metadata;
  return { id, contextId, metadata, historyLength, message: { role: "user", ...encodeMessage(message) } };
}

function encodePolicy({ deadline, timeoutSeconds, retry }: TaskPolicy) {
  return {
    deadline: deadline?.toISOString(),
    timeout_seconds: timeoutSeconds,
    retry: retry && { max_attempts: retry.maxAttempts, backoff_seconds: retry.backoffSeconds, on: retry.on },
  };
}
