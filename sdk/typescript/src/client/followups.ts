import type { Followup, FollowupCreation, FollowupPatch } from "../api.js";
import type { Operations } from "../operations.js";
import type { RequestOptions, Transport } from "../transport.js";
import { Listing } from "./page.js";

/** Works on follow-ups, the work that approved proposals lead to. */
export class FollowupsService {
  readonly #transport: Transport;
  readonly #list: Listing<"list-followups", "followups">;

  constructor(transport: Transport) {
    this.#transport = transport;
    this.#list = new Listing(transport, "list-followups", "followups", "number");
  }

  /** Returns one page of follow-ups, newest first. */
  list(query?: Operations["list-followups"]["query"], options?: RequestOptions) {
    return this.#list.page({}, query, options);
  }

  /** Iterates over the follow-ups of all pages. */
  all(query?: Operations["list-followups"]["query"], options?: RequestOptions) {
    return this.#list.all({}, query, options);
  }

  /** Creates a follow-up by hand. */
  create(followup: FollowupCreation, options?: RequestOptions): Promise<Followup> {
    return this.#transport.call("create-followup", { body: followup }, options);
  }

  /** Returns one follow-up. */
  get(id: string, options?: RequestOptions): Promise<Followup> {
    return this.#transport.call("get-followup", { path: { id } }, options);
  }

  /** Changes a follow-up. An agent that becomes the assignee gets it as a task. */
  update(id: string, patch: FollowupPatch, options?: RequestOptions): Promise<Followup> {
    return this.#transport.call("change-followup", { path: { id }, body: patch }, options);
  }
}
