import type { Agent, AgentCallers, AgentConnection, AgentCreation, AgentPatch, PlatformCard } from "../api.js";
import type { Operations } from "../operations.js";
import type { RequestOptions, Transport } from "../transport.js";
import { Listing } from "./page.js";

/** Manages the agents of the org. */
export class AgentsService {
  readonly #transport: Transport;
  readonly #list: Listing<"list-agents", "agents">;
  readonly #found: Listing<"find-agents", "agents">;
  readonly #usage: Listing<"get-usage", "usage">;

  constructor(transport: Transport) {
    this.#transport = transport;
    this.#list = new Listing(transport, "list-agents", "agents", "none");
    this.#found = new Listing(transport, "find-agents", "agents", "cursor");
    this.#usage = new Listing(transport, "get-usage", "usage", "cursor");
  }

  /** Iterates over the agents of the org. */
  all(options?: RequestOptions) {
    return this.#list.all({}, undefined, options);
  }

  /**
   * Iterates over the agents that the key may reach, of its org and public ones of others, the best matches
   * first.
   */
  find(query: Operations["find-agents"]["query"] = {}, options?: RequestOptions) {
    return this.#found.all({}, query, options);
  }

  /** Iterates over what the key's org has used of the quotas of other orgs' agents. */
  usage(options?: RequestOptions) {
    return this.#usage.all({}, undefined, options);
  }

  /** Returns what other orgs have used of the quota of an agent of the org. */
  callers(id: string, options?: RequestOptions): Promise<AgentCallers> {
    return this.#transport.call("get-agent-usage", { path: { id } }, options);
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
