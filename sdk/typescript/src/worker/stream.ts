import { partsOf, text, type Content, type Part } from "../content.js";

/**
 * An artifact that grows chunk by chunk, such as the tokens of a model. What is written while a report is
 * on its way goes with the next one, so that a fast source makes few requests.
 */
export class ArtifactStream {
  readonly #append: (parts: Part[], last: boolean) => Promise<void>;
  #pending: Part[] = [];
  /** Is settled when nothing is pending. It stays after a failure, so that further calls fail alike. */
  #sending: Promise<void> | undefined;
  #begun = false;
  #ending = false;
  #complete = false;

  /** @internal */
  constructor(append: (parts: Part[], last: boolean) => Promise<void>) {
    this.#append = append;
  }

  /**
   * Adds content. The promise is settled when the sender can see it. It need not be awaited: after a
   * failure, all further calls of write and end reject with its error.
   */
  write(content: Content): Promise<void> {
    for (const part of partsOf(content)) this.#add(part);
    if (!this.#sending) {
      this.#sending = this.#send();
      this.#sending.catch(() => undefined); // a promise that nobody awaits must not end the process
    }
    return this.#sending;
  }

  /** Sends what is left, and marks the artifact as complete. */
  async end(): Promise<void> {
    this.#ending = true;
    await this.#sending;
    // A report has at least one part.
    if (this.#begun && !this.#complete) await this.#append([text("")], true);
    this.#complete = true;
  }

  #add(part: Part): void {
    const last = this.#pending.at(-1);
    const joins = part.kind === "text" && last?.kind === "text" && last.metadata === part.metadata;
    if (joins) this.#pending[this.#pending.length - 1] = { ...last, text: last.text + part.text };
    else this.#pending.push(part);
  }

  async #send(): Promise<void> {
    await Promise.resolve(); // what is written in the same turn goes together
    while (this.#pending.length > 0) {
      const parts = this.#pending;
      this.#pending = [];
      const last = this.#ending;
      await this.#append(parts, last);
      this.#begun = true;
      this.#complete = last;
    }
    this.#sending = undefined;
  }
}
