import type { WorkProgress, WorkReport } from "../api.js";
import type { Lease } from "./lease.js";

/** How long a result waits for those of other handlers. */
const gatherMs = 1;
/** Limits of the results in one request. */
const maxReports = 100;
export const maxLength = 1 << 20;
/**
 * A further request is sent if the last one got no response for this long, so that a request that hangs
 * delays no other results. Some may be in flight at a time.
 */
const slowMs = 500;
const maxInFlight = 4;

/** A report that ends a lease. */
export interface Result {
  readonly lease: Lease;
  readonly report: WorkReport;
  /** Length of the encoded report. */
  readonly length: number;
  readonly resolve: (progress: WorkProgress) => void;
  readonly reject: (error: Error) => void;
}

/** Collects the results of handlers and sends them together. */
export class Outbox {
  readonly #send: (batch: Result[]) => Promise<boolean>;
  readonly #expected: () => number;
  #items: Result[] = [];
  #inFlight = 0;
  #lastSentAt = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #lastHeardAt = 0;

  /**
   * send settles all results, and returns whether the server responded. expected returns how many results
   * handlers that run may still add.
   */
  constructor(send: (batch: Result[]) => Promise<boolean>, expected: () => number) {
    this.#send = send;
    this.#expected = expected;
  }

  /** How long ago the server last heard of this worker by a result, in milliseconds. */
  get idleMs(): number {
    return performance.now() - this.#lastHeardAt;
  }

  /** Sends a report of this length, together with others if possible. */
  deliver(lease: Lease, report: WorkReport, length: number, signal?: AbortSignal): Promise<WorkProgress> {
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        this.#items = this.#items.filter((item) => item !== result);
        result.reject(signal?.reason as Error);
      };
      const settled = (): void => {
        signal?.removeEventListener("abort", abort);
      };
      const result: Result = {
        lease,
        report,
        length,
        resolve: (progress) => {
          settled();
          resolve(progress);
        },
        reject: (error) => {
          settled();
          reject(error);
        },
      };
      signal?.addEventListener("abort", abort, { once: true });
      this.#items.push(result);
      this.#schedule();
    });
  }

  /** Sends what waits, or sets the time to look again. */
  #schedule(): void {
    if (this.#items.length === 0) return;
    const complete = this.#items.length >= Math.min(this.#expected(), maxReports);
    if (!complete && this.#inFlight === 0) {
      this.#timer ??= this.#wakeIn(gatherMs);
    } else {
      this.#flush();
    }
  }

  #wakeIn(ms: number): ReturnType<typeof setTimeout> {
    return setTimeout(() => {
      this.#timer = undefined;
      this.#flush();
    }, ms);
  }

  #flush(): void {
    const sinceLast = performance.now() - this.#lastSentAt;
    if (this.#inFlight > 0 && (this.#inFlight >= maxInFlight || sinceLast < slowMs)) {
      if (this.#items.length > 0) this.#timer ??= this.#wakeIn(Math.max(gatherMs, slowMs - sinceLast));
      return;
    }
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const batch = this.#next();
    if (batch.length === 0) return;
    this.#inFlight++;
    this.#lastSentAt = performance.now();
    void this.#send(batch).then((heard) => {
      this.#inFlight--;
      if (heard) this.#lastHeardAt = performance.now();
      clearTimeout(this.#timer);
      this.#timer = undefined;
      this.#schedule();
    });
  }

  /** Takes the results for the next request. */
  #next(): Result[] {
    let length = 0;
    const end = this.#items.findIndex((item, i) => {
      length += item.length;
      return i >= maxReports || (i > 0 && length > maxLength);
    });
    return this.#items.splice(0, end < 0 ? this.#items.length : end);
  }
}
