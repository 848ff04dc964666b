import type { Webhook, WebhookCreation, WebhookDelivery, WebhookPatch, WebhookWithSecret } from "../api.js";
import type { Operations } from "../operations.js";
import type { RequestOptions, Transport } from "../transport.js";
import { Listing } from "./page.js";

/** Manages the URLs to which the events of the org are sent, for admins. See verifyWebhook for receivers. */
export class WebhooksService {
  readonly #transport: Transport;
  readonly #list: Listing<"list-webhooks", "webhooks">;
  readonly #deliveries: Listing<"list-webhook-deliveries", "deliveries">;

  constructor(transport: Transport) {
    this.#transport = transport;
    this.#list = new Listing(transport, "list-webhooks", "webhooks", "none");
    this.#deliveries = new Listing(transport, "list-webhook-deliveries", "deliveries", "none");
  }

  /** Iterates over the webhooks, newest first. */
  all(options?: RequestOptions) {
    return this.#list.all({}, undefined, options);
  }

  /** Creates a webhook. It gets the events that happen from now on. Its secret is not shown again. */
  create(webhook: WebhookCreation, options?: RequestOptions): Promise<WebhookWithSecret> {
    return this.#transport.call("create-webhook", { body: webhook }, options);
  }

  /** Returns one webhook. */
  get(id: string, options?: RequestOptions): Promise<Webhook> {
    return this.#transport.call("get-webhook", { path: { id } }, options);
  }

  /** Changes, pauses or resumes a webhook. */
  update(id: string, patch: WebhookPatch, options?: RequestOptions): Promise<Webhook> {
    return this.#transport.call("change-webhook", { path: { id }, body: patch }, options);
  }

  /** Deletes a webhook. */
  delete(id: string, options?: RequestOptions): Promise<Webhook> {
    return this.#transport.call("delete-webhook", { path: { id } }, options);
  }

  /** Replaces the secret of a webhook. Until the overlap ends, both secrets sign. */
  rotate(id: string, rotation: Operations["rotate-webhook"]["body"] = {}, options?: RequestOptions) {
    return this.#transport.call("rotate-webhook", { path: { id }, body: rotation }, options);
  }

  /** Iterates over the last deliveries of a webhook, newest first. */
  deliveries(id: string, options?: RequestOptions) {
    return this.#deliveries.all({ id }, { limit: 100 }, options);
  }

  /** Sends a test event to a webhook and returns the outcome. A failed delivery is no error. */
  ping(id: string, options?: RequestOptions): Promise<WebhookDelivery> {
    return this.#transport.call("ping-webhook", { path: { id } }, options);
  }

  /** Sends events to a webhook again: one event, or all since a time. */
  redeliver(id: string, what: Operations["redeliver-webhook"]["body"], options?: RequestOptions) {
    return this.#transport.call("redeliver-webhook", { path: { id }, body: what }, options);
  }
}
