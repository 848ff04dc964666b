import type { Ballot, Proposal, ProposalPatch, ProposalSubmission, VoteResult, VoteWithdrawal } from "../api.js";
import type { Operations } from "../operations.js";
import type { RequestOptions, Transport } from "../transport.js";
import { Listing } from "./page.js";

/** Submits, reads, votes on and decides proposals. */
export class ProposalsService {
  readonly #transport: Transport;
  readonly #list: Listing<"list-proposals", "proposals">;
  readonly #votes: Listing<"list-votes", "votes">;
  readonly #history: Listing<"list-history", "history">;

  constructor(transport: Transport) {
    this.#transport = transport;
    this.#list = new Listing(transport, "list-proposals", "proposals", "cursor");
    this.#votes = new Listing(transport, "list-votes", "votes", "number");
    this.#history = new Listing(transport, "list-history", "history", "number");
  }

  /** Submits a proposal. */
  submit(proposal: ProposalSubmission, options?: RequestOptions): Promise<Proposal> {
    return this.#transport.call("submit-proposal", { body: proposal }, options);
  }

  /** Returns one proposal. */
  get(id: string, options?: RequestOptions): Promise<Proposal> {
    return this.#transport.call("get-proposal", { path: { id } }, options);
  }

  /** Changes the text of a proposal, or its status. */
  update(id: string, patch: ProposalPatch, options?: RequestOptions): Promise<Proposal> {
    return this.#transport.call("change-proposal", { path: { id }, body: patch }, options);
  }

  /** Returns one page of proposals. */
  list(query?: Operations["list-proposals"]["query"], options?: RequestOptions) {
    return this.#list.page({}, query, options);
  }

  /** Iterates over the proposals of all pages. */
  all(query?: Operations["list-proposals"]["query"], options?: RequestOptions) {
    return this.#list.all({}, query, options);
  }

  /** Votes on an open proposal. A second vote replaces the first. */
  vote(id: string, ballot: Ballot, options?: RequestOptions): Promise<VoteResult> {
    return this.#transport.call("cast-vote", { path: { id }, body: ballot }, options);
  }

  /** Withdraws the caller's vote. */
  withdrawVote(id: string, options?: RequestOptions): Promise<VoteWithdrawal> {
    return this.#transport.call("withdraw-vote", { path: { id } }, options);
  }

  /** Iterates over the votes on a proposal. */
  votes(id: string, options?: RequestOptions) {
    return this.#votes.all({ id }, undefined, options);
  }

  /** Iterates over the history of a proposal. */
  history(id: string, options?: RequestOptions) {
    return this.#history.all({ id }, undefined, options);
  }

  /** Returns open proposals that a new one may duplicate. */
  similar(query: Operations["find-similar-proposals"]["query"], options?: RequestOptions) {
    return this.#transport.call("find-similar-proposals", { query }, options);
  }

  /** Decides several proposals in one request; each has its own result. */
  decide(decisions: Operations["decide-proposals"]["body"], options?: RequestOptions) {
    return this.#transport.call("decide-proposals", { body: decisions }, options);
  }

  /** Returns how many proposals there are by status. */
  counts(query?: Operations["count-proposals"]["query"], options?: RequestOptions) {
    return this.#transport.call("count-proposals", { query }, options);
  }
}
