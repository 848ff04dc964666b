import type { Event } from "../api.js";
import { fromBase64 } from "../content.js";
import { ParleyError } from "../errors.js";

/** A webhook request is not from the server, or too old, or its body is not JSON. */
export class WebhookSignatureError extends ParleyError {
  override name = "WebhookSignatureError";
}

/** The headers of a request: those of fetch, or those of Node.js. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | string[] | undefined>>;

/** Options of verifyWebhook. */
export interface VerifyOptions {
  /** How far the time of the request may differ from now; default 300. */
  toleranceSeconds?: number | undefined;
  /** The current time. */
  now?: Date | undefined;
}

/** The body of a delivery of the format standard. */
export type WebhookEvent = Pick<Event, "type" | "subject" | "actor" | "seq" | "version" | "data"> & {
  /** When it happened. */
  timestamp: string;
};

/**
 * Verifies a delivery of a webhook (Standard Webhooks, HMAC-SHA256) and returns the event. body is the
 * body of the request as it arrived. During a rotation pass both secrets. Deliveries can be repeated:
 * compare the header webhook-id with those that were processed.
 */
export async function verifyWebhook<T = WebhookEvent>(
  body: string | Uint8Array,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  { toleranceSeconds = 300, now = new Date() }: VerifyOptions = {},
): Promise<T> {
  const id = header(headers, "webhook-id");
  const timestamp = header(headers, "webhook-timestamp");
  const age = now.getTime() / 1000 - Number(timestamp);
  if (!(Math.abs(age) <= toleranceSeconds)) throw new WebhookSignatureError("the request is too old, or too new");
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const signed = concat(new TextEncoder().encode(`${id}.${timestamp}.`), bytes);
  const signatures = header(headers, "webhook-signature")
    .split(" ")
    .flatMap((value) => (value.startsWith("v1,") ? [decoded(value.slice(3))] : []));
  for (const key of await hmacKeys([secret].flat())) {
    for (const signature of signatures) {
      // verify compares in constant time.
      if (await crypto.subtle.verify("HMAC", key, signature, signed)) return parse(bytes) as T;
    }
  }
  throw new WebhookSignatureError("no signature matches");
}

function header(headers: WebhookHeaders, name: string): string {
  const value =
    headers instanceof Headers
      ? headers.get(name)
      : Object.entries(headers).find(([own]) => own.toLowerCase() === name)?.[1];
  if (typeof value !== "string") throw new WebhookSignatureError(`the header ${name} is missing`);
  return value;
}

/** Returns the keys of secrets. An empty secret, such as an unset second one, has none. */
function hmacKeys(secrets: readonly string[]): Promise<CryptoKey[]> {
  const keys = secrets.map((secret) => decoded(secret.replace(/^whsec_/, ""))).filter(({ length }) => length > 0);
  if (keys.length === 0) throw new WebhookSignatureError("the secret is not one of a webhook: whsec_…");
  return Promise.all(
    keys.map((key) => crypto.subtle.importKey("raw", key, { name: "HMAC", hash: "SHA-256" }, false, ["verify"])),
  );
}

function parse(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(body));
  } catch {
    throw new WebhookSignatureError("the body is not JSON");
  }
}

function concat(a: Uint8Array, b: Uint8Array): Uint8Array<ArrayBuffer> {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}

/** Returns the bytes of base64, or none if it is not valid. */
function decoded(value: string): Uint8Array<ArrayBuffer> {
  try {
    return fromBase64(value);
  } catch {
    return new Uint8Array();
  }
}
