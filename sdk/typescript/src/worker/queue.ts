/** Delivers values in order to one reader at a time, which iterates over it. */
export class Queue<T> implements AsyncIterable<T> {
  readonly #items: T[] = [];
  #closed = false;
  #wake: (() => void) | undefined;

  put(...items: T[]): void {
    this.#items.push(...items);
    this.#wake?.();
  }

  /** Lets the reader take what is left, and ends the iteration then. */
  close(): void {
    this.#closed = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    for (;;) {
      while (this.#items.length > 0) yield this.#items.shift() as T;
      if (this.#closed) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
