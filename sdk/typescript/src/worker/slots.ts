import type { Lease } from "./lease.js";

/** The most tasks that one request may ask for. */
const maxClaim = 100;

/** Counts the tasks that a worker holds and asks for, and lets as many handlers run as its capacity. */
export class Slots {
  readonly #capacity: number;
  readonly #held = new Set<Lease>();
  /** Those whose result is being sent: their slots are given to new tasks. */
  readonly #leaving = new Set<Lease>();
  readonly #waiting: (() => void)[] = []; // tasks whose slot is still in use
  readonly #listeners = new Set<() => void>();
  #asked = 0; // tasks that requests in flight ask for
  #running = 0;
  #closed = false;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** How many more tasks can be taken. */
  get free(): number {
    return this.#capacity - this.expected - this.#asked;
  }

  /** How many held tasks have no result on its way. */
  get expected(): number {
    return this.#held.size - this.#leaving.size;
  }

  get held(): readonly Lease[] {
    return [...this.#held];
  }

  /** Takes no more tasks. */
  close(): void {
    this.#closed = true;
  }

  hold(lease: Lease): void {
    this.#held.add(lease);
  }

  forget(lease: Lease): void {
    this.#held.delete(lease);
    this.#leaving.delete(lease);
    this.#changed();
  }

  /** Records that the result of a task is being sent. */
  leave(lease: Lease): void {
    if (this.#held.has(lease)) this.#leaving.add(lease);
  }

  /** Records that a task keeps its slot, because its result was not accepted. */
  stay(lease: Lease): void {
    this.#leaving.delete(lease);
  }

  /** Takes the free slots for a request that asks for tasks. */
  reserve(): number {
    const n = this.#closed ? 0 : Math.max(0, Math.min(this.free, maxClaim));
    this.#asked += n;
    return n;
  }

  /** Gives the slots of a request back. */
  release(n: number): void {
    this.#asked -= n;
    this.#changed();
  }

  /**
   * Runs a handler. If one that has reported its result still runs, it waits for the slot; if the signal
   * is aborted first, it does not run.
   */
  async run(handle: () => Promise<void>, signal: AbortSignal): Promise<void> {
    if (this.#running < this.#capacity) this.#running++;
    else if (!(await this.#turn(signal))) return;
    try {
      await handle();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running--;
    }
  }

  /** Waits until a handler passes its slot on. It reports false if the signal is aborted first. */
  #turn(signal: AbortSignal): Promise<boolean> {
    return new Promise((resolve) => {
      const take = (): void => {
        signal.removeEventListener("abort", leave);
        resolve(true);
      };
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(take), 1);
        resolve(false);
      };
      this.#waiting.push(take);
      signal.addEventListener("abort", leave, { once: true });
    });
  }

  /** Waits for a free slot, or for the signal. */
  async whenFree(signal: AbortSignal): Promise<void> {
    while (this.free <= 0 && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const done = (): void => {
          this.#listeners.delete(done);
          signal.removeEventListener("abort", done);
          resolve();
        };
        this.#listeners.add(done);
        signal.addEventListener("abort", done, { once: true });
      });
    }
  }

  #changed(): void {
    for (const listener of [...this.#listeners]) listener();
  }
}
