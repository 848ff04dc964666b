import type { Event, EventPage, Problem } from "../api.js";
import { ApiError, ConnectionError, EventsResetError } from "../errors.js";
import { jsonOf, openStream, type ServerSentEvent } from "../sse.js";
import { fill, type Call, type RequestOptions, type Transport } from "../transport.js";
import { endedEarly, Reconnector } from "./resume.js";

/** Selects events. What is left out does not filter. */
export interface EventsOptions extends RequestOptions {
  /** Number of the last known event. Without it, fromNow and since, the oldest event comes first. */
  after?: number | undefined;
  /** Begin with the next event. */
  fromNow?: boolean | undefined;
  /** Begin with the first event at this time or later. */
  since?: Date | undefined;
  /** Types of events, such as proposal.submitted. */
  types?: readonly Event["type"][] | undefined;
  /** Kind and id of a record, such as proposal:prop-01k5…. */
  subject?: string | undefined;
}

/** Options of one page of events. */
export interface EventPageOptions extends EventsOptions {
  /** Size of the page; default 50, at most 100. */
  limit?: number | undefined;
  /** Wait for an event up to this time, at most a minute, if there is none. */
  waitSeconds?: number | undefined;
}

/** Options of a subscription to events. */
export interface FollowEventsOptions extends EventsOptions {
  /**
   * Called when events after the last known one are no longer kept. Then the iterator continues with the
   * oldest event. Without it, the iterator throws an EventsResetError.
   */
  onReset?: (() => void) | undefined;
}

function queryOf({ after, fromNow, since, types, subject }: EventsOptions): Record<string, unknown> {
  return { after, since: fromNow ? "now" : since?.toISOString(), types: types?.join(","), subject };
}

/** Returns one page of the org's events. */
export async function eventPage(transport: Transport, options: EventPageOptions): Promise<EventPage> {
  const { limit, waitSeconds = 0 } = options;
  const call: Call = {
    method: "GET",
    path: fill("/api/v1/orgs/{org}/events", { org: await transport.org() }),
    query: { ...queryOf(options), limit },
    repeatable: true,
    waitMs: waitSeconds * 1000,
  };
  if (waitSeconds > 0) call.headers = { Prefer: `wait=${String(waitSeconds)}` };
  return transport.json(call, options);
}

/** Follows the events of an org over as many connections as necessary. */
export class EventFollower {
  readonly #transport: Transport;
  readonly #options: FollowEventsOptions;
  #last: number | undefined; // of the server

  constructor(transport: Transport, options: FollowEventsOptions) {
    this.#transport = transport;
    this.#options = options;
  }

  async *run(): AsyncGenerator<Event, never, undefined> {
    const reconnector = new Reconnector(this.#transport.retry, this.#options.signal, Infinity);
    for (;;) {
      const before = this.#last;
      const began = performance.now();
      let error: unknown = endedEarly(this.#transport.base);
      try {
        yield* this.#connect();
      } catch (failure) {
        error = failure;
      }
      // An org may be silent for long. A connection that lasted was of use.
      const worked = this.#last !== before || performance.now() - began > this.#transport.retry.maxWaitMs;
      await reconnector.pause({ error, worked, repeatable: true });
    }
  }

  /** Iterates over the events of one connection. */
  async *#connect(): AsyncGenerator<Event, void, undefined> {
    const path = fill("/api/v1/orgs/{org}/events", { org: await this.#transport.org() });
    const call: Call = { method: "GET", path, query: queryOf(this.#options) };
    if (this.#last !== undefined) call.headers = { "Last-Event-ID": String(this.#last) };
    for await (const event of openStream(this.#transport, call, this.#options)) {
      if (event.name === "error") throw this.#refusal(event);
      if (this.#advance(event) && event.data !== undefined) yield jsonOf(event) as Event;
    }
  }

  /** Reports whether an event is new, and notes its position. */
  #advance(event: ServerSentEvent): boolean {
    if (!/^\d+$/.test(event.id)) return false; // not an event of the log
    const id = Number(event.id);
    const reset = event.name === "reset";
    if (!reset && this.#last !== undefined && id <= this.#last) return false; // it came before
    this.#last = id;
    if (reset && !this.#options.onReset) throw new EventsResetError();
    if (reset) this.#options.onReset?.();
    return !reset;
  }

  /** Returns the error that ends a stream. After one of the server the client connects again. */
  #refusal(event: ServerSentEvent): Error {
    const error = ApiError.ofProblem(jsonOf(event) as Problem);
    return error.status >= 500 ? new ConnectionError(this.#transport.base, error) : error;
  }
}
