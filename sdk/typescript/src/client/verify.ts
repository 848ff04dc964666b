import type { Event } from "../api.js";
import { fromBase64 } from "../content.js";
import { ParleyError } from "../errors.js";

/** A webhook request is not from the server, or too old. */
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
  const text = typeof body === "string" ? body : new TextDecoder().decode(body);
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${text}`);
  const signatures = header(headers, "webhook-signature")
    .split(" ")
    .flatMap((value) => (value.startsWith("v1,") ? [decoded(value.slice(3))] : []));
  for (const one of [secret].flat()) {
    const key = await hmacKey(one);
    for (const signature of signatures) {
      // verify compares in constant time.
      if (await crypto.subtle.verify("HMAC", key, signature, signed)) return JSON.parse(text) as T;
    }
  }
  throw new WebhookSignatureError("no signature matches");
}

function header(headers: WebhookHeaders, name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : headers[name];
  if (typeof value !== "string") throw new WebhookSignatureError(`the header ${name} is missing`);
  return value;
}

function hmacKey(secret: string): Promise<CryptoKey> {
  const bytes = decoded(secret.replace(/^whsec_/, ""));
  if (bytes.length === 0) throw new WebhookSignatureError("the secret is not one of a webhook: whsec_…");
  return crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
}

/** Returns the bytes of base64, or none if it is not valid. */
function decoded(value: string): Uint8Array<ArrayBuffer> {
  try {
    return fromBase64(value);
  } catch {
    return new Uint8Array();
  }
}
