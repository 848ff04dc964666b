import { ConnectionError, ParleyError } from "../errors.js";
import type { RetryPolicy } from "../retry.js";

/** How many connections of a stream of a task may break in a row without progress. */
const taskBroken = 8;

/** How one connection of a stream ended. */
export interface ConnectionEnd {
  error: unknown;
  /** It brought the stream forward. */
  worked: boolean;
  /** The stream can be opened again. */
  repeatable: boolean;
}

/** Decides whether a stream whose connection has ended is continued, and waits before that. */
export class Reconnector {
  readonly #retry: RetryPolicy;
  readonly #signal: AbortSignal | undefined;
  readonly #maxBroken: number;
  #broken = 0;

  constructor(retry: RetryPolicy, signal: AbortSignal | undefined, maxBroken = taskBroken) {
    this.#retry = retry;
    this.#signal = signal;
    this.#maxBroken = maxBroken;
  }

  /** Waits before the next connection. It throws the error if there should be none. */
  async pause({ error, worked, repeatable }: ConnectionEnd): Promise<void> {
    this.#signal?.throwIfAborted();
    this.#broken = worked ? 1 : this.#broken + 1;
    const wait = this.#retry.pauseAfter(error, this.#broken, repeatable);
    if (wait === undefined || this.#broken >= this.#maxBroken || this.#retry.attempts === 1) throw error;
    await this.#retry.pause(error, wait, this.#broken, this.#signal);
  }
}

/** The error of a connection that ended before its stream. */
export function endedEarly(server: string): ConnectionError {
  return new ConnectionError(server, new ParleyError("the connection was closed before the end of the stream"));
}
