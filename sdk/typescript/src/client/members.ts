import type { Member, MemberCreation, MemberPatch } from "../api.js";
import type { Operations } from "../operations.js";
import type { RequestOptions, Transport } from "../transport.js";
import { Listing } from "./page.js";

/** Manages the users and services of the org, for admins. */
export class MembersService {
  readonly #transport: Transport;
  readonly #list: Listing<"list-members", "members">;

  constructor(transport: Transport) {
    this.#transport = transport;
    this.#list = new Listing(transport, "list-members", "members", "cursor");
  }

  /** Iterates over the members of all pages. */
  all(query?: Operations["list-members"]["query"], options?: RequestOptions) {
    return this.#list.all({}, query, options);
  }

  /** Adds a user or a service. */
  create(member: MemberCreation, options?: RequestOptions): Promise<Member> {
    return this.#transport.call("create-member", { body: member }, options);
  }

  /** Returns one member by kind and id, such as user:ada. */
  get(ref: string, options?: RequestOptions): Promise<Member> {
    return this.#transport.call("get-member", { path: { ref } }, options);
  }

  /** Changes the name or the rights of a member. */
  update(ref: string, patch: MemberPatch, options?: RequestOptions): Promise<Member> {
    return this.#transport.call("change-member", { path: { ref }, body: patch }, options);
  }
}
