import type { ClaimRequest, WorkExchange, WorkExchangeReport, WorkProgress, WorkReport } from "../api.js";
import { ApiError, UnexpectedResponseError } from "../errors.js";
import { mayPass } from "./backoff.js";
import type { Lease } from "./lease.js";
import type { Leases } from "./leases.js";
import type { Logger } from "./logger.js";
import { maxLength, Outbox, type Result } from "./outbox.js";
import type { Slots } from "./slots.js";

/** How often at most claims that fail are logged. */
const warnEveryMs = 10_000;
/** How long results are sent alone to a server that does not know exchanges. */
const aloneMs = 300_000;

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
  #aloneUntil = 0;

  constructor(context: ExchangeContext) {
    this.#context = context;
    this.outbox = new Outbox(
      (batch) => this.#exchange(batch),
      () => context.slots.expected,
    );
  }

  /** Sends a report that ends a lease, together with others if possible. */
  async deliver(lease: Lease, report: WorkReport, signal?: AbortSignal): Promise<WorkProgress> {
    const { length } = JSON.stringify(report); // throws if the report cannot be encoded
    if (length > maxLength || performance.now() < this.#aloneUntil) return this.#sendAlone(lease, report, signal);
    return this.outbox.deliver(lease, report, length, signal);
  }

  /** Sends a report in a request of its own, which asks for no tasks. */
  #sendAlone(lease: Lease, report: WorkReport, signal = this.#context.signal): Promise<WorkProgress> {
    return this.#context.leases.report(lease.token, report, { trace: lease.trace }, signal);
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
        throw new UnexpectedResponseError("the server responded with a wrong number of results");
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
        outcome?.problem ? ApiError.ofProblem(outcome.problem) : new UnexpectedResponseError("a report has no result"),
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
    if (mayPass(error) || this.#context.signal.aborted) {
      for (const result of batch) result.reject(error as Error);
      return;
    }
    if (isUnknownRoute(error)) this.#aloneUntil = performance.now() + aloneMs;
    await Promise.all(
      batch.map(({ lease, report, resolve, reject }) => this.#sendAlone(lease, report).then(resolve, reject)),
    );
  }
}

/** Reports whether the server may be an older one, without exchanges. */
function isUnknownRoute(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 404 || error.status === 405);
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
