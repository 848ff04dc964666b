import type { Event, EventPage, Me, ServerStatus } from "../api.js";
import type { Operations } from "../operations.js";
import { Transport, type CallArguments, type ConnectionOptions, type RequestOptions } from "../transport.js";
import { AgentClient } from "./agent.js";
import { AgentsService } from "./agents.js";
import { EventFollower, eventPage, type EventPageOptions, type FollowEventsOptions } from "./events.js";
import { FollowupsService } from "./followups.js";
import { FrictionService, type FrictionReporter } from "./friction.js";
import { KeysService } from "./keys.js";
import { MembersService } from "./members.js";
import { ProposalsService } from "./proposals.js";
import { WebhooksService } from "./webhooks.js";

/** Calls a server. Its members group the operations by resource. */
export class Client implements FrictionReporter {
  readonly proposals: ProposalsService;
  readonly followups: FollowupsService;
  readonly friction: FrictionService;
  readonly agents: AgentsService;
  readonly members: MembersService;
  readonly keys: KeysService;
  readonly webhooks: WebhooksService;
  readonly #transport: Transport;

  /** Sends no request. */
  constructor(options: ConnectionOptions | Transport) {
    const transport = options instanceof Transport ? options : new Transport(options);
    this.#transport = transport;
    this.proposals = new ProposalsService(transport);
    this.followups = new FollowupsService(transport);
    this.friction = new FrictionService(transport);
    this.agents = new AgentsService(transport);
    this.members = new MembersService(transport);
    this.keys = new KeysService(transport);
    this.webhooks = new WebhooksService(transport);
  }

  /** Returns a client for an agent of the key's org, or for a public one. */
  agent(id: string): AgentClient {
    return new AgentClient(this.#transport, id);
  }

  /** Returns the principal of the key, and its permissions. */
  me(options?: RequestOptions): Promise<Me> {
    return this.#transport.call("get-me", {}, options);
  }

  /** Returns the org that the client works in. Unless it was given, the first call asks the server. */
  org(): Promise<string> {
    return this.#transport.org();
  }

  /** Reports whether the server can serve requests. It needs no key. */
  ready(options?: RequestOptions): Promise<ServerStatus> {
    return this.#transport.call("get-readiness", {}, options);
  }

  /** Returns one page of the org's events, oldest first. The key needs the scope svc:tasks:read. */
  events(options: EventPageOptions = {}): Promise<EventPage> {
    return eventPage(this.#transport, options);
  }

  /**
   * Iterates over the events of the org, and then over new ones as they happen, until the signal is
   * aborted. It survives broken connections and restarts of the server, however long they take: each event
   * comes once and in order. The key needs the scope svc:tasks:read.
   */
  followEvents(options: FollowEventsOptions = {}): AsyncGenerator<Event, never, undefined> {
    return new EventFollower(this.#transport, options).run();
  }

  /** Calls any operation of the API by its id in the OpenAPI document, such as create-invitation. */
  call<Id extends keyof Operations>(
    id: Id,
    args?: CallArguments<Id>,
    options?: RequestOptions,
  ): Promise<Operations[Id]["response"]> {
    return this.#transport.call(id, args, options);
  }
}
