/** Runs functions one at a time, in the order of the calls. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  get busy(): boolean {
    return this.#waiting > 0;
  }

  run<T>(action: () => Promise<T>): Promise<T> {
    this.#waiting++;
    const result = this.#last.then(action).finally(() => {
      this.#waiting--;
    });
    this.#last = result.catch(() => undefined);
    return result;
  }
}
