import type { Claim, ClaimRequest, WorkExchange, WorkExchangeRequest, WorkProgress, WorkReport } from "../api.js";
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

  claim(body: ClaimRequest, signal?: AbortSignal): Promise<Claim> {
    const waitMs = (body.wait_seconds ?? 0) * 1000;
    return this.#transport.call("claim-tasks", { path: { agent: this.#agent }, body, waitMs }, once(signal));
  }

  report(
    lease: string,
    body: WorkReport,
    { trace = {}, timeoutMs }: ReportOptions,
    signal?: AbortSignal,
  ): Promise<WorkProgress> {
    const headers: Record<string, string> = {};
    if (trace.traceparent !== undefined) headers["traceparent"] = trace.traceparent;
    if (trace.tracestate !== undefined) headers["tracestate"] = trace.tracestate;
    const path = { agent: this.#agent, lease };
    return this.#transport.call("report-task", { path, body }, { ...once(signal, timeoutMs), headers });
  }

  exchange(body: WorkExchangeRequest, signal?: AbortSignal): Promise<WorkExchange> {
    return this.#transport.call("exchange-work", { path: { agent: this.#agent }, body }, once(signal));
  }

  /** Hands a task back to the queue, which does not count as an attempt. */
  async giveBack(lease: string): Promise<void> {
    await this.#transport.call("return-task", { path: { agent: this.#agent, lease } }, once());
  }
}

function once(signal?: AbortSignal, timeoutMs = reportTimeoutMs): RequestOptions {
  return { signal, retry: false, timeoutMs };
}
