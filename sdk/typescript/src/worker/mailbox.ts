import type { DirectMessage as WireDirectMessage } from "../api.js";
import type { Message } from "../content.js";
import type { Logger } from "./logger.js";
import { decodeReadable } from "./readable.js";

/** A message to the agent that is not a task: the sender expects no response, and none can be sent. */
export interface DirectMessage {
  id: string;
  /** Org, kind and id of the sender, such as acme/user:ada. */
  from: string;
  message: Message;
  /** When it was sent. */
  at: string;
}

/** How many messages are remembered to recognize a second delivery. */
const keptIds = 1000;
/** How many messages a request may acknowledge. */
const maxAcknowledged = 1000;

/**
 * Keeps which direct messages have been received. Several requests may deliver the same one until a
 * request has acknowledged it.
 */
export class Mailbox {
  readonly #unacknowledged = new Set<string>();
  readonly #seen = new Set<string>(); // in order of arrival
  readonly #logger: Logger;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Returns the messages to acknowledge next, as many as a request may. */
  unacknowledged(): string[] {
    return [...this.#unacknowledged].slice(0, maxAcknowledged);
  }

  /**
   * Processes the response to a request that acknowledged some messages. It returns those that are new.
   * One that cannot be read is acknowledged too, or it would come again with each response.
   */
  receive(acknowledged: readonly string[], messages: readonly WireDirectMessage[]): DirectMessage[] {
    for (const id of acknowledged) this.#unacknowledged.delete(id);
    const fresh = messages.filter((wire: WireDirectMessage | null) => wire?.id && !this.#seen.has(wire.id));
    for (const { id } of fresh) {
      this.#unacknowledged.add(id);
      this.#seen.add(id);
    }
    for (const id of this.#seen) {
      if (this.#seen.size <= keptIds) break;
      this.#seen.delete(id);
    }
    return fresh.flatMap((wire) =>
      decodeReadable([wire.message], this.#logger, { message: wire.id }).map((message) => ({ ...wire, message })),
    );
  }
}
