import type { Me, Problem } from "./api.js";
import { ApiError, ConnectionError, ParleyError, UnexpectedResponseError } from "./errors.js";
import { operations, type Operations } from "./operations.js";
import { parseRetryAfter, RetryPolicy, type RetryOptions } from "./retry.js";
import { refusalOfRpc, type RpcErrorBody } from "./rpc.js";
import { version } from "./version.js";

/** The most bytes of a response, decompressed: more than the server sends, and less than would fill the memory. */
const maxResponseBytes = 256 << 20;

/** How to reach a server. */
export interface ConnectionOptions {
  /** URL of the server, such as https://parley.example. */
  url: string | URL | undefined;
  /** API key. Without one, requests have no credentials. */
  key?: string | undefined;
  /** Org to work in; default: that of the key. */
  org?: string | undefined;
  /** Sends the requests; default: the global fetch. */
  fetch?: typeof globalThis.fetch | undefined;
  /** Limit of one attempt, beside the time that the request asks the server to wait; default 30000. */
  timeoutMs?: number | undefined;
  retry?: RetryOptions | undefined;
}

/** Options of one request. */
export interface RequestOptions {
  /** Aborts the request. */
  signal?: AbortSignal | undefined;
  /**
   * Key under which a repetition of the request has no further effect for 24 hours. By default each call
   * has its own, which covers the client's retries; set one to repeat a call safely in another process.
   */
  idempotencyKey?: string | undefined;
  /** Limit of one attempt in milliseconds; default: that of the client. */
  timeoutMs?: number | undefined;
  /** false: send the request once. */
  retry?: boolean | undefined;
  /** Refuse the change (412) unless the record still has this ETag. */
  ifMatch?: string | undefined;
  /** Further headers. */
  headers?: Readonly<Record<string, string>> | undefined;
}

/** @internal A request to the server. */
export interface Call {
  method: string;
  path: string;
  query?: object | undefined;
  body?: unknown;
  headers?: Record<string, string>;
  /** It takes an Idempotency-Key. */
  keyed?: boolean;
  /** A second time does the same as the first. */
  repeatable?: boolean;
  /** How long the request asks the server to wait. */
  waitMs?: number;
}

/** @internal The arguments of an operation of the API. */
export interface CallArguments<Id extends keyof Operations> {
  path?: Omit<Operations[Id]["path"], "org">;
  query?: Operations[Id]["query"] | undefined;
  body?: Operations[Id]["body"];
  waitMs?: number;
}

/** @internal Sends requests: with credentials, a limit of time, and retries where they are safe. */
export class Transport {
  readonly base: string;
  readonly retry: RetryPolicy;
  readonly #key: string | undefined;
  readonly #fetch: typeof globalThis.fetch;
  readonly #timeoutMs: number;
  #org: Promise<string> | undefined;

  constructor(options: ConnectionOptions) {
    this.base = checkedURL(options.url);
    if (options.key !== undefined && /[^!-~]/.test(options.key)) {
      throw new ParleyError("key: has a character that cannot be part of a key");
    }
    this.#key = options.key;
    this.#fetch = options.fetch ?? globalThis.fetch.bind(globalThis);
    this.#timeoutMs = options.timeoutMs ?? 30_000;
    this.retry = new RetryPolicy(options.retry);
    this.#org = options.org === undefined ? undefined : Promise.resolve(options.org);
  }

  /** Returns the org that the client works in. Unless it was given, the first call asks the server. */
  org(): Promise<string> {
    this.#org ??= this.#ownOrg().catch((error: unknown) => {
      this.#org = undefined; // ask again next time
      throw error;
    });
    return this.#org;
  }

  async #ownOrg(): Promise<string> {
    const me = await this.json<Partial<Me> | null>({ method: "GET", path: "/api/v1/me", repeatable: true });
    if (!me?.org) throw new UnexpectedResponseError(`${this.base} names no org for the key; is it a Parley server?`);
    return me.org;
  }

  /** Calls an operation of the API. */
  async call<Id extends keyof Operations>(
    id: Id,
    args: CallArguments<Id> = {},
    options: RequestOptions = {},
  ): Promise<Operations[Id]["response"]> {
    const { method, path, keyed } = operations[id];
    const names: Record<string, string | undefined> = { ...args.path };
    if (path.includes("{org}")) names["org"] = await this.org();
    return this.json(
      {
        method,
        path: fill(path, names),
        query: args.query,
        body: args.body,
        keyed,
        repeatable: method === "GET" || method === "PUT",
        waitMs: args.waitMs ?? 0,
      },
      options,
    );
  }

  /** Sends a request, repeats it if that is safe and may help, and decodes the response. */
  async json<T>(call: Call, options: RequestOptions = {}): Promise<T> {
    const attempts = options.retry === false ? 1 : this.retry.attempts;
    const key = options.idempotencyKey ?? (call.keyed && attempts > 1 ? `js-${crypto.randomUUID()}` : undefined);
    const repeatable = call.repeatable === true || (call.keyed === true && key !== undefined);
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#attempt<T>(call, key, options);
      } catch (error) {
        options.signal?.throwIfAborted();
        const wait = attempt < attempts ? this.retry.pauseAfter(error, attempt, repeatable) : undefined;
        if (wait === undefined) throw error;
        await this.retry.pause(error, wait, attempt, options.signal);
      }
    }
  }

  async #attempt<T>(call: Call, key: string | undefined, options: RequestOptions): Promise<T> {
    const limit = (options.timeoutMs ?? this.#timeoutMs) + (call.waitMs ?? 0);
    return withTimeout(limit, options.signal, async (signal) => {
      const response = await this.send(call, { ...options, signal, idempotencyKey: key });
      if (!response.ok) throw await refusalOf(response);
      if (response.status === 204) return undefined as T;
      return await this.#read(async () => JSON.parse(await textOf(response)) as T);
    });
  }

  /** Sends a request once, and returns the response with its body unread. */
  async send(call: Call, options: RequestOptions): Promise<Response> {
    const headers: Record<string, string> = {
      Accept: "application/json, application/problem+json",
      ...call.headers,
      ...options.headers,
    };
    if (typeof document === "undefined") headers["User-Agent"] = `parley-js/${version}`;
    if (this.#key) headers["Authorization"] = `Bearer ${this.#key}`;
    if (call.body !== undefined) headers["Content-Type"] = "application/json";
    if (options.idempotencyKey !== undefined) headers["Idempotency-Key"] = options.idempotencyKey;
    if (options.ifMatch !== undefined) headers["If-Match"] = options.ifMatch;
    const body = call.body === undefined ? null : JSON.stringify(call.body);
    return this.#read(() =>
      this.#fetch(this.base + call.path + queryString(call.query), {
        method: call.method,
        headers,
        body,
        signal: options.signal ?? null,
        redirect: "manual", // so that the key cannot leave the server
      }),
    );
  }

  /** Runs a step of a request, and turns a failure into a ConnectionError. */
  async #read<T>(step: () => Promise<T>): Promise<T> {
    try {
      return await step();
    } catch (error) {
      if (error instanceof SyntaxError) {
        throw new UnexpectedResponseError(`the response of ${this.base} is not JSON; is it a Parley server?`);
      }
      if (error instanceof UnexpectedResponseError) throw error;
      throw new ConnectionError(this.base, error);
    }
  }
}

function checkedURL(url: string | URL | undefined): string {
  const text = String(url ?? "");
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) {
    throw new ParleyError(`url: must start with http:// or https:// and name a host; it is ${JSON.stringify(text)}`);
  }
  return text.replace(/\/+$/, "");
}

/** @internal Fills the names of a path in. */
export function fill(path: string, names: Readonly<Record<string, string | undefined>>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = names[name];
    if (!value) throw new ParleyError(`${name}: must not be empty`);
    return encodeURIComponent(value);
  });
}

function queryString(query: object | undefined): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    if (value !== undefined) params.set(name, String(value));
  }
  const text = params.toString();
  return text && `?${text}`;
}

/** Returns the body of a response. */
async function textOf(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  const pieces: string[] = [];
  let length = 0;
  for (;;) {
    const chunk = await reader?.read();
    if (!chunk || chunk.done) return pieces.join("") + decoder.decode();
    length += chunk.value.length;
    if (length > maxResponseBytes) {
      await reader?.cancel();
      throw new UnexpectedResponseError(`the response is longer than ${String(maxResponseBytes)} bytes`);
    }
    pieces.push(decoder.decode(chunk.value, { stream: true }));
  }
}

/** @internal Returns the refusal in a response: a problem document, a JSON-RPC error, or anything else. */
export async function refusalOf(response: Response): Promise<ApiError> {
  const body = refusalBody(await textOf(response).catch(() => ""));
  const own = {
    status: response.status,
    requestId: response.headers.get("X-Request-Id") ?? undefined,
    retryAfterMs: parseRetryAfter(response.headers.get("Retry-After")),
  };
  if (body.error && typeof body.error === "object") return refusalOfRpc(body.error, own);
  return new ApiError({
    ...own,
    code: body.code,
    detail: body.detail ?? response.statusText,
    fields: body.errors,
    allowed: body.allowed,
    scope: body.scope,
    requestId: body.request_id ?? own.requestId,
  });
}

type RefusalBody = Partial<Problem> & { error?: RpcErrorBody | null };

/** Parses the body of a refusal. It is empty if it is not an object: a proxy may respond with anything. */
function refusalBody(text: string): RefusalBody {
  try {
    return (JSON.parse(text) as RefusalBody | null) ?? {};
  } catch {
    return {};
  }
}

/** @internal Runs a function with a signal that is aborted by another signal, or when the time is over. */
export async function withTimeout<T>(
  ms: number,
  outer: AbortSignal | undefined,
  run: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  outer?.throwIfAborted();
  const controller = new AbortController();
  const abort = (): void => {
    controller.abort(outer?.reason);
  };
  const timer = setTimeout(() => {
    controller.abort(new DOMException(`no response within ${String(ms / 1000)} s`, "TimeoutError"));
  }, ms);
  outer?.addEventListener("abort", abort, { once: true });
  try {
    return await run(controller.signal);
  } finally {
    clearTimeout(timer);
    outer?.removeEventListener("abort", abort);
  }
}
