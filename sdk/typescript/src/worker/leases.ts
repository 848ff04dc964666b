import type { Claim, ClaimRequest, WorkExchange, WorkExchangeRequest, WorkProgress, WorkReport } from "../api.js";
import { UnexpectedResponseError } from "../errors.js";
import type { RequestOptions, Transport } from "../transport.js";

/** How long a report may take. */
export const reportTimeoutMs = 15_000;

/** The trace that a task belongs to (W3C Trace Context). */
export interface Trace {
  traceparent?: string | undefined;
  tracestate?: string | undefined;
}

/** Options of one report. */
export interface ReportOptions {
  trace?: Trace;
  timeoutMs?: number;
}

/**
 * The API for the workers of one agent. Each request is sent once: only the worker knows whether a claim
 * or a report may be repeated, and how the repetition differs.
 */
export class Leases {
  readonly #transport: Transport;
  readonly #agent: string;

  constructor(transport: Transport, agent: string) {
    this.#transport = transport;
    this.#agent = agent;
  }

  async claim(body: ClaimRequest, signal?: AbortSignal): Promise<Claim> {
    const waitMs = (body.wait_seconds ?? 0) * 1000;
    const path = { agent: this.#agent };
    const response = await this.#transport.call("claim-tasks", { path, body, waitMs }, once(signal));
    return withLists(response, "tasks", "messages");
  }

  async report(
    lease: string,
    body: WorkReport,
    { trace = {}, timeoutMs }: ReportOptions,
    signal?: AbortSignal,
  ): Promise<WorkProgress> {
    const headers: Record<string, string> = {};
    if (trace.traceparent !== undefined) headers["traceparent"] = trace.traceparent;
    if (trace.tracestate !== undefined) headers["tracestate"] = trace.tracestate;
    const path = { agent: this.#agent, lease };
    const options = { ...once(signal, timeoutMs), headers };
    return withLists(await this.#transport.call("report-task", { path, body }, options), "messages");
  }

  async exchange(body: WorkExchangeRequest, signal?: AbortSignal): Promise<WorkExchange> {
    const path = { agent: this.#agent };
    const response = await this.#transport.call("exchange-work", { path, body }, once(signal));
    return withLists(response, "reports", "tasks", "messages");
  }

  /** Hands a task back to the queue, which does not count as an attempt. */
  async giveBack(lease: string): Promise<void> {
    await this.#transport.call("return-task", { path: { agent: this.#agent, lease } }, once());
  }
}

/** Returns a response whose members with these names are lists, as those of Parley are. */
function withLists<T extends object>(response: T, ...names: (keyof T & string)[]): T {
  for (const name of names) {
    if (!Array.isArray((response as T | null | undefined)?.[name])) {
      throw new UnexpectedResponseError(`the response has no list "${name}"; is it from a Parley server?`);
    }
  }
  return response;
}

function once(signal?: AbortSignal, timeoutMs = reportTimeoutMs): RequestOptions {
  return { signal, retry: false, timeoutMs };
}
