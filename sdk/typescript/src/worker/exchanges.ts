import type { ClaimRequest, WorkExchange, WorkExchangeReport, WorkReport } from "../api.js";
import { ApiError, ProtocolError } from "../errors.js";
import { mayPass } from "./backoff.js";
import type { Leases } from "./leases.js";
import type { Logger } from "./logger.js";
import { Outbox, type Result } from "./outbox.js";
import type { Slots } from "./slots.js";

/** How often at most claims that fail are logged. */
const warnEveryMs = 10_000;

/** What an exchange needs of the worker. */
export interface ExchangeContext {
  readonly leases: Leases;
  readonly slots: Slots;
  readonly logger: Logger;
  /** Ends what is in flight. */
  readonly signal: AbortSignal;
  claimRequest(max: number, waitSeconds: number): ClaimRequest;
  /** Takes the tasks and messages that a response brought. */
  received(response: Pick<WorkExchange, "tasks" | "messages">, claim: ClaimRequest): void;
}

/** Sends results, several in one request, and asks for tasks for their slots with the same request. */
export class Exchanges {
  readonly outbox: Outbox;
  readonly #context: ExchangeContext;
  #warnedAt = -warnEveryMs;

  constructor(context: ExchangeContext) {
    this.#context = context;
    this.outbox = new Outbox(
      (batch) => this.#exchange(batch),
      () => context.slots.expected,
    );
  }

  async #exchange(batch: readonly Result[]): Promise<boolean> {
    const { slots, leases, signal } = this.#context;
    for (const { lease } of batch) slots.leave(lease);
    const room = slots.reserve();
    const claim = room > 0 ? this.#context.claimRequest(room, 0) : undefined;
    const reports = batch.map(encodeReport);
    try {
      const response = await leases.exchange(claim ? { reports, claim } : { reports }, signal);
      if (response.reports.length !== batch.length) {
        throw new ProtocolError("the server responded with a wrong number of results");
      }
      this.#settle(batch, response);
      if (claim) this.#context.received(response, claim);
      return true;
    } catch (error) {
      await this.#settleFailed(batch, error);
      return false;
    } finally {
      slots.release(room);
    }
  }

  #settle(batch: readonly Result[], response: WorkExchange): void {
    for (const [i, result] of batch.entries()) {
      const outcome = response.reports[i];
      if (outcome?.progress) {
        result.resolve(outcome.progress);
        continue;
      }
      this.#context.slots.stay(result.lease);
      result.reject(
        outcome?.problem ? ApiError.ofProblem(outcome.problem) : new ProtocolError("a report has no result"),
      );
    }
    const now = performance.now();
    if (response.claim_problem && now - this.#warnedAt >= warnEveryMs) {
      this.#warnedAt = now;
      this.#context.logger.warn("a claim failed", { error: response.claim_problem.detail });
    }
  }

  /** If trying again cannot help, each result is sent alone, so that one does not affect the others. */
  async #settleFailed(batch: readonly Result[], error: unknown): Promise<void> {
    for (const { lease } of batch) this.#context.slots.stay(lease);
    if (mayPass(error) || batch.length === 1 || this.#context.signal.aborted) {
      for (const result of batch) result.reject(error as Error);
      return;
    }
    await Promise.all(batch.map((result) => this.#exchange([result])));
  }
}

function encodeReport({ lease, report }: Result): WorkExchangeReport & { report: WorkReport } {
  const { traceparent, tracestate } = lease.trace;
  return {
    lease: lease.token,
    report,
    ...(traceparent === undefined ? {} : { traceparent }),
    ...(tracestate === undefined ? {} : { tracestate }),
  };
}
