import { ApiError, ConnectionError, UnexpectedResponseError } from "../errors.js";

const firstPauseMs = 200;
const longestPauseMs = 10_000;
const longestRetryAfterMs = 60_000;

/** Reports whether the lease is no longer valid. */
export function isStale(error: unknown): boolean {
  return error instanceof ApiError && error.status === 409;
}

/** Reports whether the server may have carried out a failed request. */
export function mayHaveArrived(error: unknown): boolean {
  if (error instanceof ApiError) return error.status >= 500;
  return !(error instanceof ConnectionError && error.notSent);
}

/** Reports whether the same request may succeed later. A response that is not of Parley may be a proxy's. */
export function mayPass(error: unknown): boolean {
  if (error instanceof ApiError) return error.status === 429 || error.status === 408 || error.status >= 500;
  return error instanceof ConnectionError || error instanceof UnexpectedResponseError;
}

/** Growing pauses between attempts. */
export class Backoff {
  #tries = 0;

  reset(): void {
    this.#tries = 0;
  }

  /** Returns how long to wait before the next attempt in milliseconds, or undefined if none can help. */
  next(error: unknown): number | undefined {
    if (!mayPass(error)) return undefined;
    const after = error instanceof ApiError ? Math.min(error.retryAfterMs, longestRetryAfterMs) : 0;
    const pause = Math.min(firstPauseMs * 2 ** Math.min(this.#tries++, 10), longestPauseMs);
    // Spread the pauses, so that workers do not come back all at once.
    return Math.max(after, pause / 2 + (Math.random() * pause) / 2);
  }
}
