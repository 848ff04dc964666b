import assert from "node:assert/strict";
import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import {
  ApiError,
  Client,
  ConnectionError,
  EventsResetError,
  reportFriction,
  resultOf,
  textOf,
  verifyWebhook,
  type api,
  type Event,
} from "@parley/sdk";
import { startProxy } from "./proxy.js";
import { Server, startWorker, until } from "./server.js";

const proposal = {
  title: "Retry failed deliveries",
  category: "reliability",
  problem: "A delivery that fails once is lost.",
  suggested_fix: "Retry with growing pauses.",
} satisfies api.ProposalSubmission;

describe("Client", () => {
  let server: Server;
  let client: Client;
  const cleanups: (() => Promise<void> | void)[] = [];
  before(async () => {
    server = await Server.start({ after: (f) => cleanups.push(f as () => Promise<void>) });
    client = server.client;
  });
  after(async () => {
    for (const cleanup of cleanups) await cleanup();
  });

  it("takes a proposal from submission to its follow-up", async () => {
    const { id } = await client.proposals.submit(proposal);
    const vote = await client.proposals.vote(id, { vote: "for", comment: "We need this." });
    assert.equal(vote.votes_for, 1);
    await client.proposals.update(id, { status: "approved" });
    const approved = await client.proposals.get(id);
    const followup = await client.followups.update(approved.followup_id ?? "", { status: "in_progress" });
    assert.equal(followup.proposal_id, id);
    const kinds = [];
    for await (const entry of client.proposals.history(id)) kinds.push(entry.kind);
    assert.deepEqual(kinds.sort(), ["status_changed", "submitted", "voted"]);
  });

  it("iterates over all pages", async () => {
    const titles = Array.from({ length: 103 }, (_, i) => `Page ${String(i)}`);
    for (const title of titles) await client.proposals.submit({ ...proposal, title });
    const seen = new Set<string>();
    for await (const { title } of client.proposals.all({ status: "open", sort: "oldest" })) seen.add(title);
    for (const title of titles) assert.ok(seen.has(title), title);
    const page = await client.proposals.list({ limit: 10 });
    assert.equal(page.items.length, 10);
    assert.ok((page.total ?? 0) >= 103 && page.next !== undefined);
  });

  it("explains refusals", async () => {
    await assert.rejects(client.proposals.get("prop-00000000000000000000000000"), (error) => {
      assert.ok(error instanceof ApiError);
      assert.equal(error.status, 404);
      assert.ok(error.code && error.detail && error.requestId);
      return true;
    });
    await assert.rejects(client.proposals.submit({ ...proposal, title: "" }), (error) => {
      assert.ok(error instanceof ApiError);
      assert.deepEqual(
        error.fields.map(({ pointer }) => pointer),
        ["/title"],
      );
      return true;
    });
    await assert.rejects(client.proposals.get(""), /id: must not be empty/);
    await assert.rejects(client.agent("nobody").send("hi"), ApiError);
  });

  it("submits once although the response is lost", async (t) => {
    let lost = 0;
    const url = await startProxy(t, server.url, (method) => (method === "POST" && lost++ < 2 ? "response" : undefined));
    const retries: unknown[] = [];
    const lossy = new Client({
      url,
      key: server.key,
      retry: { minWaitMs: 1, onRetry: ({ error }) => retries.push(error) },
    });
    const { id } = await lossy.proposals.submit({ ...proposal, title: "Only once" });
    const found = await client.proposals.list({ q: "Only once" });
    assert.deepEqual(
      found.items.map((item) => item.id),
      [id],
    );
    assert.equal(retries.length, 2);
    assert.ok(retries.every((error) => error instanceof ConnectionError));
  });

  it("gives up when it may not retry", async (t) => {
    const url = await startProxy(t, server.url, () => "response");
    await assert.rejects(new Client({ url, key: server.key }).me({ retry: false }), ConnectionError);
    const stopped = AbortSignal.abort(new Error("enough"));
    await assert.rejects(client.me({ signal: stopped }), /enough/);
    await assert.rejects(
      new Client({ url, key: server.key, timeoutMs: 0, retry: { attempts: 1 } }).me(),
      ConnectionError,
    );
  });

  it("follows a task over broken connections", async (t) => {
    const key = await server.agent("slow");
    startWorker(t, { url: server.url, key, agent: "slow" }, async function* () {
      for (let i = 1; i <= 10; i++) {
        yield `${String(i)};`;
        await new Promise((resolve) => setTimeout(resolve, 30));
      }
    });
    let streams = 0;
    const url = await startProxy(t, server.url, (_, __, body) => {
      if (!body.includes("ubscribe")) return undefined;
      return streams++ < 4 ? "cut" : undefined;
    });
    const agent = new Client({ url, key: server.key, retry: { minWaitMs: 10 } }).agent("slow");
    let text = "";
    let last = 0;
    for await (const event of agent.stream("count")) {
      assert.ok(Number(event.id) > last, "an event came twice");
      last = Number(event.id);
      if (event.artifact) text = event.append ? text + textOf(event.artifact, "") : textOf(event.artifact, "");
    }
    assert.equal(text, "1;2;3;4;5;6;7;8;9;10;");
    assert.ok(streams > 1, "no connection was cut");
  });

  it("lists and cancels the caller's tasks", async () => {
    await server.agent("idle");
    const agent = client.agent("idle");
    const sent = await Promise.all([1, 2, 3].map((n) => agent.send(`task ${String(n)}`)));
    const first = sent[0]?.id ?? "";
    assert.equal((await agent.cancel(first)).status.state, "canceled");
    const open = [];
    for await (const task of agent.all({ state: "submitted", limit: 1 })) open.push(task.id);
    assert.deepEqual(open.sort(), sent.slice(1).map(({ id }) => id).sort()); // prettier-ignore
    assert.equal((await agent.card()).name, "idle");
  });

  it("follows events across a restart of the server", async (t) => {
    const own = await Server.start(t);
    const stop = new AbortController();
    const seen: Event[] = [];
    const before = await own.client.proposals.submit(proposal);
    const following = (async () => {
      const events = own.client.followEvents({ types: ["proposal.submitted"], signal: stop.signal });
      for await (const event of events) seen.push(event);
    })();
    await until("the first event", () => seen.length === 1);
    await own.restart();
    const later = await own.client.proposals.submit({ ...proposal, title: "Later" });
    await until("the second event", () => seen.length === 2);
    stop.abort(new Error("enough"));
    await assert.rejects(following, /enough/);
    assert.deepEqual(
      seen.map(({ subject }) => subject),
      [`proposal:${before.id}`, `proposal:${later.id}`],
    );
    const page = await own.client.events({ after: seen[0]?.seq, types: ["proposal.submitted"] });
    assert.equal(page.events.length, 1);
  });

  it("files a proposal with the third failure of a wrapped function", async () => {
    const friction = {
      fingerprint: "rates:timeout",
      title: "Rates time out",
      category: "reliability",
      problem: "The rates service does not respond in time.",
    } as const;
    const fetchRates = reportFriction(client, friction, (day: string): string => {
      throw new Error(`no rates for ${day}`);
    });
    for (const day of ["Monday", "Tuesday", "Friday"]) await assert.rejects(fetchRates(day), new RegExp(day));
    const { proposal_id, evidence } = await client.friction.get("rates:timeout");
    assert.equal((await client.proposals.get(proposal_id ?? "")).title, "Rates time out");
    assert.match(evidence.map((one) => one.evidence).join(), /Error: no rates for Tuesday/);
    assert.equal(await reportFriction(client, friction, (n: number) => n + 1)(1), 2);
  });

  it("sends only evidence that the server takes", async () => {
    for (const [fingerprint, message] of [
      ["evidence:long", "é".repeat(4000)],
      ["evidence:color", "\x1b[31mred\x1b[0m"],
    ] as const) {
      const friction = { fingerprint, title: fingerprint, category: "process", problem: "It fails." } as const;
      const fails = reportFriction(client, friction, () => Promise.reject(new Error(message)));
      await assert.rejects(fails());
      const { evidence } = await client.friction.get(fingerprint);
      assert.match(evidence.map((one) => one.evidence).join(), /^Error: (é{2044}|\ufffd\[31mred\ufffd\[0m)$/);
    }
  });

  it("iterates over all pages from a given one", async () => {
    for (const title of ["Page one", "Page two"]) await client.proposals.submit({ ...proposal, title });
    const { total = 0 } = await client.proposals.list();
    const ids = new Set<string>();
    let seen = 0;
    for await (const { id } of client.proposals.all({ limit: 1, page: 1 })) {
      ids.add(id);
      if (++seen > total) break;
    }
    assert.deepEqual([seen, ids.size], [total, total]);
  });

  it("says that events are no longer kept", async (t) => {
    const url = await startProxy(
      t,
      server.url,
      () => undefined,
      (path) =>
        path.includes("/events") ? { type: "text/event-stream", body: "id: 5\nevent: reset\ndata: {}\n\n" } : undefined,
    );
    const proxied = new Client({ url, key: server.key });
    await assert.rejects(proxied.followEvents({ after: 1 }).next(), EventsResetError);
    const stop = new AbortController();
    const onReset = () => {
      stop.abort(new Error("was told"));
    };
    await assert.rejects(proxied.followEvents({ after: 1, onReset, signal: stop.signal }).next(), /was told/);
  });

  it("receives verified webhooks", async (t) => {
    let secret = "";
    const types: string[] = [];
    const receiver = createServer((request, response) => {
      void (async () => {
        let body = "";
        for await (const chunk of request) body += String(chunk);
        types.push((await verifyWebhook(body, request.headers, secret)).type);
        response.writeHead(204).end();
      })();
    });
    receiver.listen(0, "127.0.0.1");
    await once(receiver, "listening");
    t.after(() => receiver.close());
    const url = `http://127.0.0.1:${String((receiver.address() as AddressInfo).port)}/`;
    const webhook = await client.webhooks.create({ url, types: ["proposal.submitted"] });
    ({ secret } = webhook);
    const ping = await client.webhooks.ping(webhook.id);
    assert.equal(ping.outcome, "delivered");
    await client.proposals.submit({ ...proposal, title: "Tell me" });
    await until("the delivery", () => types.includes("proposal.submitted"));
    await client.webhooks.delete(webhook.id);
  });

  it("sends direct messages, and calls any operation", async (t) => {
    const key = await server.agent("quiet");
    const texts: string[] = [];
    const options = { url: server.url, key, agent: "quiet" };
    startWorker(t, { ...options, onMessage: ({ message }) => texts.push(textOf(message)) }, () => "done");
    await client.agent("quiet").message("psst");
    await until("the message", () => texts[0] === "psst");
    assert.equal(resultOf(await client.agent("quiet").send("go", { waitSeconds: 30 })), "done");
    const { settings } = { settings: await client.call("get-friction-settings") };
    assert.equal(settings.threshold, 3);
  });
});
