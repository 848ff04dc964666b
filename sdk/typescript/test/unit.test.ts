import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, it } from "node:test";
import { Client, verifyWebhook, version, WebhookSignatureError } from "@parley/sdk";
import { decodePart, encodePart, encodePartV1, text, textOf, type Part } from "../dist/content.js";
import { ApiError, ConnectionError, reasonOf, UnexpectedResponseError } from "../dist/errors.js";
import { parseRetryAfter, RetryPolicy } from "../dist/retry.js";
import { jsonOf, parseEvents } from "../dist/sse.js";
import { refusalOf } from "../dist/transport.js";
import { Mailbox } from "../dist/worker/mailbox.js";
import { ArtifactStream } from "../dist/worker/stream.js";
import { quiet } from "./server.js";

it("has the version of its manifest", async () => {
  const manifest = JSON.parse(await readFile(new URL("../package.json", import.meta.url), "utf8")) as object;
  assert.equal("version" in manifest && manifest.version, version);
});

it("the reason of an error is a text, whatever was thrown", () => {
  const broken = Object.defineProperty(new Error(), "message", {
    get: () => {
      throw new TypeError("no message");
    },
  });
  for (const thrown of [Object.create(null), broken, Symbol("x"), undefined, { toString: null }]) {
    assert.match(reasonOf(thrown), /./);
  }
});

for (const body of ["null", "7", '{"error":null}', "<html>"]) {
  it(`the refusal of a proxy has its status: ${body}`, async () => {
    assert.equal((await refusalOf(new Response(body, { status: 502 }))).status, 502);
  });
}

describe("parseEvents", () => {
  async function* chunks(...texts: string[]): AsyncGenerator<string> {
    for (const chunk of texts) yield await Promise.resolve(chunk);
  }
  async function parse(...texts: string[]) {
    const events = [];
    for await (const event of parseEvents(chunks(...texts))) events.push(event);
    return events;
  }

  for (const [name, texts] of Object.entries({
    "in one chunk": ["id: 7\nevent: x\ndata: a\ndata: b\n\n"],
    "split within lines": ["id: 7\neve", "nt: x\ndata:", " a\nda", "ta: b\n", "\n"],
    "with CR LF, split between them": ["id: 7\r", "\nevent: x\r\ndata: a\r\ndata: b\r\n\r", "\n"],
    "with comments": [": hello\n\nid: 7\n: x\nevent: x\ndata: a\ndata: b\n\n"],
    "with an unfinished event": ["id: 7\nevent: x\ndata: a\ndata: b\n\nid: 8\ndata: lost"],
  })) {
    it(name, async () => {
      assert.deepEqual(await parse(...texts), [{ id: "7", name: "x", data: "a\nb" }]);
    });
  }

  it("reports a position without data", async () => {
    assert.deepEqual(await parse("id: 9\n\n"), [{ id: "9", name: "", data: undefined }]);
  });

  it("ends a line at a CR without waiting for more", async () => {
    assert.deepEqual(await parse("data: a\r\r", "", "\ndata: b\r", "\r"), [
      { id: "", name: "", data: "a" },
      { id: "", name: "", data: "b" },
    ]);
  });

  it("reads each chunk of a long event once", async () => {
    const began = performance.now();
    const [event] = await parse("data: ", ...Array<string>(512).fill("x".repeat(16 << 10)), "\n\n");
    assert.equal(event?.data?.length, 8 << 20);
    assert.ok(performance.now() - began < 2000); // about 20 ms; with a second look at each chunk 10 s
  });

  for (const [name, end] of [
    ["a line", ""],
    ["an event", "\ndata: "],
  ] as const) {
    it(`refuses ${name} that does not end`, async () => {
      const endless = parse("data: ", ...Array<string>(65).fill("x".repeat(1 << 20) + end));
      await assert.rejects(endless, UnexpectedResponseError);
    });
  }
});

it("the data of an event must be an object", () => {
  assert.deepEqual(jsonOf({ id: "1", name: "", data: '{"a":1}' }), { a: 1 });
  for (const data of ["", "nonsense", "null", "7", undefined]) {
    assert.throws(() => jsonOf({ id: "1", name: "", data }), UnexpectedResponseError);
  }
});

it("a client reads no more than 256 MiB of a response", async () => {
  let canceled = false;
  const body = new ReadableStream({
    start: (controller) => {
      controller.enqueue(new Uint8Array((256 << 20) + 1));
    },
    cancel: () => {
      canceled = true;
    },
  });
  const fetch = () => Promise.resolve(new Response(body));
  await assert.rejects(new Client({ url: "http://x", fetch }).me(), UnexpectedResponseError);
  assert.ok(canceled);
});

describe("RetryPolicy", () => {
  const policy = new RetryPolicy({ minWaitMs: 100, maxWaitMs: 1000, maxRetryAfterMs: 5000 });
  const refusal = (status: number, code?: string, retryAfterMs?: number) =>
    new ApiError({ status, code, retryAfterMs });
  const refused = Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
  const reset = Object.assign(new Error("reset"), { code: "ECONNRESET" });

  for (const [name, error, repeatable, again] of [
    ["busy", refusal(503, "server.busy"), false, true],
    ["a busy proxy", refusal(503), false, false],
    ["a busy proxy", refusal(503), true, true],
    ["too many requests", refusal(429, "limit.rate"), false, true],
    ["a bad gateway", refusal(502), false, false],
    ["a bad gateway", refusal(502), true, true],
    ["an error of the server", refusal(500, "server.error"), true, false],
    ["an invalid request", refusal(422, "request.invalid"), true, false],
    ["a long Retry-After", refusal(429, "limit.rate", 6000), true, false],
    ["no connection", new ConnectionError("s", new TypeError("fetch failed", { cause: refused })), false, true],
    ["a lost response", new ConnectionError("s", new TypeError("fetch failed", { cause: reset })), false, false],
    ["a lost response", new ConnectionError("s", new TypeError("fetch failed", { cause: reset })), true, true],
    ["a bug", new TypeError("x is undefined"), true, false],
  ] as const) {
    it(`${again ? "repeats" : "does not repeat"} a ${repeatable ? "" : "non-"}repeatable request after ${name}`, () => {
      assert.equal(policy.pauseAfter(error, 1, repeatable) !== undefined, again);
    });
  }

  it("waits longer and longer, and as long as the server asks", () => {
    const wait = (attempt: number, retryAfterMs = 0) =>
      policy.pauseAfter(refusal(503, "server.busy", retryAfterMs), attempt, true) ?? NaN;
    for (let i = 0; i < 100; i++) {
      assert.ok(wait(1) >= 50 && wait(1) <= 150);
      assert.ok(wait(3) >= 200 && wait(3) <= 600);
      assert.ok(wait(50) >= 500 && wait(50) <= 1500);
    }
    assert.equal(wait(1, 4000), 4000);
  });

  it("reads Retry-After", () => {
    assert.equal(parseRetryAfter("7"), 7000);
    assert.equal(parseRetryAfter("Thu, 01 Jan 1970 00:00:09 GMT", 4000), 5000);
    assert.equal(parseRetryAfter("Thu, 01 Jan 1970 00:00:01 GMT", 4000), 0);
    assert.equal(parseRetryAfter("soon"), 0);
    assert.equal(parseRetryAfter(null), 0);
  });
});

describe("parts", () => {
  const parts: Part[] = [
    { kind: "text", text: "a", mediaType: "text/markdown", metadata: { n: 1 } },
    { kind: "data", data: [1, null, "x"], mediaType: "application/json" },
    { kind: "file", name: "f", mediaType: "text/plain", bytes: new Uint8Array([0, 127, 255]), url: undefined },
    { kind: "file", name: "f", mediaType: "text/plain", bytes: undefined, url: "https://example.com/f" },
  ];
  for (const [name, encode] of Object.entries({ "the specification": encodePart, "A2A 1.0": encodePartV1 })) {
    it(`survive the form of ${name}`, () => {
      const wire = JSON.parse(JSON.stringify(parts.map(encode))) as Parameters<typeof decodePart>[0][];
      assert.deepEqual(wire.map(decodePart), parts);
    });
  }

  it("have no NUL and no lone surrogates in their text", () => {
    assert.deepEqual(encodePart(text("a\0b\ud800c")), { type: "text", text: "ab\ufffdc" });
  });
});

it("an artifact stream that nobody awaits keeps its failure for the next call", async () => {
  const failure = new Error("canceled");
  const stream = new ArtifactStream(() => Promise.reject(failure));
  void stream.write("a"); // an unhandled rejection would fail this test
  await new Promise(setImmediate);
  void stream.write("b");
  await assert.rejects(stream.write("c"), failure);
  await assert.rejects(stream.end(), failure);
});

describe("the end of an artifact stream", () => {
  async function sent(write: (stream: ArtifactStream) => Promise<void> | undefined): Promise<string[]> {
    const chunks: string[] = [];
    const stream = new ArtifactStream((parts, last) => {
      chunks.push(`${textOf({ parts })}${last ? " (last)" : ""}`);
      return Promise.resolve();
    });
    const written = write(stream);
    if (written) await written;
    await stream.end();
    return chunks;
  }

  it("marks the last chunk", async () => {
    assert.deepEqual(await sent((stream) => void stream.write("a")), ["a (last)"]);
  });
  it("is an empty chunk if all others were sent", async () => {
    assert.deepEqual(await sent((stream) => stream.write("a")), ["a", " (last)"]);
  });
  it("sends nothing if nothing was written", async () => {
    assert.deepEqual(await sent(() => undefined), []);
  });
});

it("an artifact stream joins what is written while a report is on its way", async () => {
  const sent: string[] = [];
  let release: () => void = () => undefined;
  const stream = new ArtifactStream(async (written, last) => {
    sent.push(written.map((part) => (part.kind === "text" ? part.text : part.kind)).join("|"));
    if (!last) await new Promise<void>((resolve) => (release = resolve));
  });
  void stream.write("a");
  await Promise.resolve().then(() => undefined);
  for (const content of ["b", "c", { kind: "data", data: 1 } as const, "d"]) void stream.write(content);
  release();
  await new Promise(setImmediate);
  release();
  await stream.end();
  assert.deepEqual(sent, ["a", "bc|data|d", ""]);
});

it("a mailbox acknowledges as many messages at a time as a request may", () => {
  const mailbox = new Mailbox(quiet);
  const ids = Array.from({ length: 1500 }, (_, i) => String(i));
  const messages = ids.map((id) => ({
    id,
    from: "acme/user:ada",
    at: "",
    message: { role: "user" as const, parts: [] },
  }));
  mailbox.receive([], messages);
  const acknowledged = mailbox.unacknowledged();
  assert.equal(acknowledged.length, 1000);
  mailbox.receive(acknowledged, []);
  assert.deepEqual(mailbox.unacknowledged(), ids.slice(1000));
});

describe("verifyWebhook", () => {
  const secret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDazfpGYVfAJk=";
  const body = '{"type":"proposal.submitted","subject":"proposal:prop-1"}';
  const now = new Date("2026-11-16T18:00:00Z");
  const timestamp = String(now.getTime() / 1000);

  async function sign(key: string, content: string | Uint8Array = body): Promise<string> {
    const bytes = Buffer.from(key.slice("whsec_".length), "base64");
    const imported = await crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    const signed = await crypto.subtle.sign(
      "HMAC",
      imported,
      Buffer.concat([Buffer.from(`evt-1.${timestamp}.`), Buffer.from(content)]),
    );
    return `v1,${Buffer.from(signed).toString("base64")}`;
  }
  const headers = async (key = secret) => ({
    "webhook-id": "evt-1",
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,b2xk v1a,bm90IGNoZWNrZWQ= ${await sign(key)}`,
  });

  it("returns the event of a signed request", async () => {
    assert.equal((await verifyWebhook(body, await headers(), secret, { now })).subject, "proposal:prop-1");
    const bytes = new TextEncoder().encode(body);
    assert.equal(
      (await verifyWebhook(bytes, new Headers(await headers()), secret, { now })).type,
      "proposal.submitted",
    );
  });

  it("accepts either secret during a rotation", async () => {
    const old = "whsec_AAAAsBQIhrscChlQIMV+b5sSYspob7oDazfpGYVfAJk=";
    await verifyWebhook(body, await headers(old), [secret, old], { now });
    await verifyWebhook(body, await headers(), ["", secret], { now });
  });

  it("finds headers in any case", async () => {
    const entries = Object.entries(await headers()).map(([name, value]) => [name.toUpperCase(), value]);
    await verifyWebhook(body, Object.fromEntries(entries) as Record<string, string>, secret, { now });
  });

  it("checks the bytes of the body as they arrived", async () => {
    const bytes = new TextEncoder().encode(`\ufeff${body}`);
    const signed = { ...(await headers()), "webhook-signature": await sign(secret, bytes) };
    assert.equal((await verifyWebhook(bytes, signed, secret, { now })).type, "proposal.submitted");
  });

  it("refuses a signed body that is not JSON", async () => {
    const signed = { ...(await headers()), "webhook-signature": await sign(secret, "nonsense") };
    await assert.rejects(verifyWebhook("nonsense", signed, secret, { now }), WebhookSignatureError);
  });

  for (const [name, change] of Object.entries({
    "a changed body": { body: body.replace("prop-1", "prop-2") },
    "an old request": { now: new Date(now.getTime() + 301_000) },
    "a request of the future": { now: new Date(now.getTime() - 301_000) },
    "another secret": { secret: "whsec_AAAAsBQIhrscChlQIMV+b5sSYspob7oDazfpGYVfAJk=" },
    "an empty secret": { secret: "" },
    "no signature": { headers: { "webhook-id": "evt-1", "webhook-timestamp": timestamp } },
    "no time": { headers: { "webhook-id": "evt-1", "webhook-timestamp": "soon", "webhook-signature": "v1," } },
  })) {
    it(`refuses ${name}`, async () => {
      const call = { body, headers: await headers(), secret, now, ...change };
      await assert.rejects(
        verifyWebhook(call.body, call.headers, call.secret, { now: call.now }),
        WebhookSignatureError,
      );
    });
  }
});
