import { partsOf, type Content, type Part } from "../content.js";

/**
 * An artifact that grows chunk by chunk, such as the tokens of a model. What is written while a report is
 * on its way goes with the next one, so that a fast source makes few requests.
 */
export class ArtifactStream {
  readonly #append: (parts: Part[], last: boolean) => Promise<void>;
  #pending: Part[] = [];
  #sending: Promise<void> | undefined;

  /** @internal */
  constructor(append: (parts: Part[], last: boolean) => Promise<void>) {
    this.#append = append;
  }

  /** Adds content. The promise is settled when the sender can see it. */
  write(content: Content): Promise<void> {
    for (const part of partsOf(content)) this.#add(part);
    this.#sending ??= this.#send().finally(() => {
      this.#sending = undefined;
    });
    return this.#sending;
  }

  /** Sends what is left, and marks the artifact as complete. */
  async end(): Promise<void> {
    await this.#sending;
    if (this.#pending.length > 0) await this.#append(this.#take(), true);
  }

  #add(part: Part): void {
    const last = this.#pending.at(-1);
    const joins = part.kind === "text" && last?.kind === "text" && last.metadata === part.metadata;
    if (joins) this.#pending[this.#pending.length - 1] = { ...last, text: last.text + part.text };
    else this.#pending.push(part);
  }

  async #send(): Promise<void> {
    await Promise.resolve(); // what is written in the same turn goes together
    while (this.#pending.length > 0) await this.#append(this.#take(), false);
  }

  #take(): Part[] {
    const parts = this.#pending;
    this.#pending = [];
    return parts;
  }
}
