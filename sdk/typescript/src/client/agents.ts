import type { Agent, AgentConnection, AgentCreation, AgentPatch, PlatformCard } from "../api.js";
import type { RequestOptions, Transport } from "../transport.js";
import { Listing } from "./page.js";

/** Manages the agents of the org. */
export class AgentsService {
  readonly #transport: Transport;
  readonly #list: Listing<"list-agents", "agents">;

  constructor(transport: Transport) {
    this.#transport = transport;
    this.#list = new Listing(transport, "list-agents", "agents", "none");
  }

  /** Iterates over the agents of the org. */
  all(options?: RequestOptions) {
    return this.#list.all({}, undefined, options);
  }

  /** Registers an agent. */
  create(agent: AgentCreation, options?: RequestOptions): Promise<Agent> {
    return this.#transport.call("create-agent", { body: agent }, options);
  }

  /** Returns one agent. */
  get(id: string, options?: RequestOptions): Promise<Agent> {
    return this.#transport.call("get-agent", { path: { id } }, options);
  }

  /** Changes the profile of an agent. */
  update(id: string, patch: AgentPatch, options?: RequestOptions): Promise<Agent> {
    return this.#transport.call("change-agent", { path: { id }, body: patch }, options);
  }

  /** Returns the workers of an agent and the keys that may serve it. */
  connection(id: string, options?: RequestOptions): Promise<AgentConnection> {
    return this.#transport.call("get-agent-connection", { path: { id } }, options);
  }

  /** Returns the card of the platform: the agents that the caller may reach. */
  platformCard(options?: RequestOptions): Promise<PlatformCard> {
    return this.#transport.call("get-platform-card", {}, options);
  }
}
