import type { Key, KeyCreation, KeyRotation, KeyWithSecret } from "../api.js";
import type { Operations } from "../operations.js";
import type { RequestOptions, Transport } from "../transport.js";
import { Listing } from "./page.js";

/** Manages the API keys of the org, for admins. */
export class KeysService {
  readonly #transport: Transport;
  readonly #list: Listing<"list-keys", "keys">;

  constructor(transport: Transport) {
    this.#transport = transport;
    this.#list = new Listing(transport, "list-keys", "keys", "cursor");
  }

  /** Iterates over the keys of all pages. */
  all(query?: Operations["list-keys"]["query"], options?: RequestOptions) {
    return this.#list.all({}, query, options);
  }

  /** Creates a key. Its secret is not shown again. */
  create(key: KeyCreation, options?: RequestOptions): Promise<KeyWithSecret> {
    return this.#transport.call("create-key", { body: key }, options);
  }

  /** Returns one key, without its secret. */
  get(id: string, options?: RequestOptions): Promise<Key> {
    return this.#transport.call("get-key", { path: { id } }, options);
  }

  /** Replaces the secret of a key. Until the overlap ends, both work. */
  rotate(id: string, rotation: KeyRotation = {}, options?: RequestOptions): Promise<KeyWithSecret> {
    return this.#transport.call("rotate-key", { path: { id }, body: rotation }, options);
  }

  /** Revokes a key. */
  revoke(id: string, options?: RequestOptions): Promise<Key> {
    return this.#transport.call("revoke-key", { path: { id } }, options);
  }
}
