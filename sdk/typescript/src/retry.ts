import { ApiError, ConnectionError } from "./errors.js";

/** How requests are repeated. */
export interface RetryOptions {
  /** Maximum number of attempts; default 5. 1 turns retries off. */
  attempts?: number | undefined;
  /** Pause before the second attempt; default 200. It doubles with each attempt, and varies at random by half. */
  minWaitMs?: number | undefined;
  /** Longest pause; default 3000. */
  maxWaitMs?: number | undefined;
  /** Longest Retry-After to wait for; default 30000. If the server asks for more, the request fails. */
  maxRetryAfterMs?: number | undefined;
  /** Called before each pause. */
  onRetry?: ((retry: { error: unknown; waitMs: number; attempt: number }) => void) | undefined;
}

/** Decides when a failed request is sent again. */
export class RetryPolicy {
  readonly attempts: number;
  readonly maxWaitMs: number;
  readonly maxRetryAfterMs: number;
  readonly #minWaitMs: number;
  readonly #onRetry: RetryOptions["onRetry"];

  constructor(options: RetryOptions = {}) {
    this.attempts = Math.max(1, options.attempts ?? 5);
    this.#minWaitMs = options.minWaitMs ?? 200;
    this.maxWaitMs = Math.max(this.#minWaitMs, options.maxWaitMs ?? 3000);
    this.maxRetryAfterMs = options.maxRetryAfterMs ?? 30_000;
    this.#onRetry = options.onRetry;
  }

  /**
   * Returns the pause before the next attempt in milliseconds, or undefined if there should be none. A
   * request that is not repeatable is sent again only if it certainly was not carried out.
   */
  pauseAfter(error: unknown, attempt: number, repeatable: boolean): number | undefined {
    const mean = Math.min(this.#minWaitMs * 2 ** (attempt - 1), this.maxWaitMs);
    const wait = mean / 2 + Math.random() * mean;
    if (error instanceof ApiError) {
      const again = error.retryAfterMs <= this.maxRetryAfterMs && mayPass(error, repeatable);
      return again ? Math.max(wait, error.retryAfterMs) : undefined;
    }
    if (error instanceof ConnectionError) return repeatable || error.notSent ? wait : undefined;
    return undefined;
  }

  /** Announces a repetition and waits. */
  async pause(error: unknown, waitMs: number, attempt: number, signal?: AbortSignal): Promise<void> {
    this.#onRetry?.({ error, waitMs, attempt });
    await sleep(waitMs, signal);
  }
}

/**
 * Reports whether the same request may succeed later. Only refusals of Parley, which have a code, mean
 * that the request was not carried out; a proxy may send the same status for a request that was.
 */
function mayPass(error: ApiError, repeatable: boolean): boolean {
  switch (error.status) {
    case 429:
    case 503:
      return repeatable || error.code !== "";
    case 502:
    case 504:
      return repeatable;
    default:
      return false;
  }
}

/** Returns the value of a Retry-After header in milliseconds: it holds seconds or a date. */
export function parseRetryAfter(value: string | null, now = Date.now()): number {
  if (!value) return 0;
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const at = Date.parse(value);
  return Number.isNaN(at) ? 0 : Math.max(0, at - now);
}

/** Waits. It rejects with the signal's reason if the signal is aborted first. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    if (signal?.aborted) {
      reject(signal.reason as Error);
      return;
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", abort, { once: true });
  });
}
