import type { DirectMessage as WireDirectMessage } from "../api.js";
import { decodeMessage, type Message } from "../content.js";

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

  /** Returns the messages to acknowledge next, as many as a request may. */
  unacknowledged(): string[] {
    return [...this.#unacknowledged].slice(0, maxAcknowledged);
  }

  /** Processes the response to a request that acknowledged some messages. It returns those that are new. */
  receive(acknowledged: readonly string[], messages: readonly WireDirectMessage[]): DirectMessage[] {
    for (const id of acknowledged) this.#unacknowledged.delete(id);
    const fresh = messages.filter(({ id }) => !this.#seen.has(id));
    for (const { id } of fresh) {
      this.#unacknowledged.add(id);
      this.#seen.add(id);
    }
    for (const id of this.#seen) {
      if (this.#seen.size <= keptIds) break;
      this.#seen.delete(id);
    }
    return fresh.map((wire) => ({ ...wire, message: decodeMessage(wire.message) }));
  }
}
