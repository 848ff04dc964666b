import type { Operations } from "../operations.js";
import type { RequestOptions, Transport } from "../transport.js";

/** One page of a list. */
export interface Page<T> {
  items: T[];
  /** Number of items in all pages, if the server counts them. */
  total: number | undefined;
  /** Cursor of the next page, if the list has cursors and there is one. */
  next: string | undefined;
}

/** How a list is divided into pages. */
type Paging = "cursor" | "number" | "none";

type Member<Response> = Extract<keyof Response, string>;
type ItemOf<Id extends keyof Operations, M> = M extends keyof Operations[Id]["response"]
  ? Operations[Id]["response"][M] extends (infer Item)[]
    ? Item
    : never
  : never;

/** A list of the API: a page of it, or an iterator over all of them. */
export class Listing<Id extends keyof Operations, M extends Member<Operations[Id]["response"]>> {
  readonly #transport: Transport;
  readonly #id: Id;
  readonly #member: M;
  readonly #paging: Paging;

  /** member is the member of the response that has the items. */
  constructor(transport: Transport, id: Id, member: M, paging: Paging) {
    this.#transport = transport;
    this.#id = id;
    this.#member = member;
    this.#paging = paging;
  }

  async page(
    path: Omit<Operations[Id]["path"], "org">,
    query: Operations[Id]["query"] | undefined,
    options: RequestOptions | undefined,
  ): Promise<Page<ItemOf<Id, M>>> {
    const response = await this.#transport.call(this.#id, { path, query }, options);
    const { total, next_cursor } = response as { total?: number; next_cursor?: string | null };
    const items = (response as Record<M, ItemOf<Id, M>[]>)[this.#member];
    return { items, total, next: next_cursor ?? undefined };
  }

  async *all(
    path: Omit<Operations[Id]["path"], "org">,
    query: Operations[Id]["query"] | undefined,
    options: RequestOptions | undefined,
  ): AsyncGenerator<ItemOf<Id, M>, void, undefined> {
    const first = { ...(this.#paging === "none" ? {} : { limit: 100 }), ...query };
    let position: { cursor?: string; page?: number | undefined } = {}; // wins over that of the query
    for (let page = (first as typeof position).page ?? 1, seen = 0; ; page++) {
      const { items, total, next } = await this.page(path, { ...first, ...position }, options);
      yield* items;
      seen += items.length;
      if (this.#paging === "cursor" && next !== undefined) position = { cursor: next, page: undefined };
      else if (this.#paging === "number" && items.length > 0 && seen < (total ?? 0)) position = { page: page + 1 };
      else return;
    }
  }
}
