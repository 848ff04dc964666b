import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, describe, it, type TestContext } from "node:test";
import {
  ApiError,
  data,
  Fail,
  file,
  isTerminal,
  LeaseLostError,
  ParleyError,
  Reject,
  resultOf,
  TaskCanceledError,
  FinishedError,
  textOf,
  Worker,
  WorkerStoppingError,
  type AgentClient,
  type DirectMessage,
  type Handler,
  type TaskSnapshot,
  type WorkerOptions,
} from "@parley/sdk";
import { startProxy } from "./proxy.js";
import { drain, quiet, Server, startWorker, until } from "./server.js";

describe("Worker", () => {
  let server: Server;
  let agents = 0;
  const cleanups: (() => Promise<void> | void)[] = [];
  before(async () => {
    server = await Server.start({ after: (f) => cleanups.push(f as () => Promise<void>) });
  });
  after(async () => {
    for (const cleanup of cleanups) await cleanup();
  });

  /** Makes an agent with a worker. */
  async function employ(
    t: TestContext,
    handler: Handler,
    options: Partial<WorkerOptions> = {},
  ): Promise<{ agent: AgentClient; key: string; id: string; worker: Worker; stopped: Promise<void> }> {
    const id = `agent-${String(++agents)}`;
    const key = await server.agent(id, "svc:tasks:write");
    const running = startWorker(t, { url: server.url, key, agent: id, ...options }, handler);
    return { agent: server.client.agent(id), key, id, ...running };
  }

  /** Sends a task and waits until it rests. */
  async function ask(agent: AgentClient, text: string): Promise<TaskSnapshot> {
    const task = await agent.send(text);
    await drain(agent.subscribe(task.id));
    return agent.get(task.id);
  }

  it("completes a task with what the handler returns", async (t) => {
    const { agent } = await employ(t, (task) => `You said: ${task.text}`);
    const task = await ask(agent, "hello");
    assert.equal(task.status.state, "completed");
    assert.equal(resultOf(task), "You said: hello");
  });

  it("delivers parts of all kinds", async (t) => {
    const bytes = new Uint8Array([0, 1, 254, 255]);
    const { agent } = await employ(t, () => [data({ n: 1 }), file("a.bin", "application/octet-stream", bytes)]);
    const [numbers, binary] = (await ask(agent, "go")).artifacts[0]?.parts ?? [];
    assert.ok(numbers?.kind === "data" && binary?.kind === "file");
    assert.deepEqual(numbers.data, { n: 1 });
    assert.deepEqual(binary.bytes, bytes);
    assert.equal(binary.name, "a.bin");
  });

  it("receives files", async (t) => {
    const { agent } = await employ(t, ({ message: { parts } }) => {
      const [part] = parts;
      return part?.kind === "file" ? new TextDecoder().decode(part.bytes) : "no file";
    });
    const sent = await agent.send(file("a.txt", "text/plain", new TextEncoder().encode("content")), {
      waitSeconds: 30,
    });
    assert.equal(resultOf(sent), "content");
  });

  for (const [name, error, state, told] of [
    ["fails the task with Fail", new Fail("no such order"), "failed", "no such order"],
    ["rejects the task with Reject", new Reject("not mine"), "rejected", "not mine"],
    ["hides an unexpected error", new Error("password: x"), "failed", "the agent failed in an unexpected way"],
  ] as const) {
    it(name, async (t) => {
      const { agent } = await employ(t, () => Promise.reject(error));
      const { status } = await ask(agent, "go");
      assert.equal(status.state, state);
      assert.equal(textOf(status.message), told);
    });
  }

  it("completes a task with a plain object as data, and with null as nothing", async (t) => {
    const { agent } = await employ(t, (task) => (task.text === "nothing" ? null : { kind: "order", n: 1 }));
    const [part] = (await ask(agent, "order")).artifacts[0]?.parts ?? [];
    assert.ok(part?.kind === "data");
    assert.deepEqual(part.data, { kind: "order", n: 1 });
    const { status, artifacts } = await ask(agent, "nothing");
    assert.equal(status.state, "completed");
    assert.deepEqual(artifacts, []);
  });

  it("names the allowed results in the log of another one", async (t) => {
    const logged: string[] = [];
    const error = (_: string, details?: object) => logged.push(String(details && "error" in details && details.error));
    const { agent } = await employ(t, () => 42 as unknown as string, { logger: { ...quiet, error } });
    assert.equal((await ask(agent, "go")).status.state, "failed");
    assert.match(logged.join(), /a handler returns a text, a part/);
  });

  it("does not run after a stop before it", async (t) => {
    const key = await server.agent("stopped");
    const worker = new Worker({ url: server.url, key, agent: "stopped", logger: quiet }, () => undefined);
    t.after(() => {
      worker.stop();
    });
    worker.stop();
    await worker.run({ stopOn: [] });
  });

  it("logs the failure of a handler", async (t) => {
    const failure = new TypeError("order is undefined");
    const logged: unknown[] = [];
    const error = (_: string, details?: object) => logged.push(details && "error" in details && details.error);
    const { agent } = await employ(t, () => Promise.reject(failure), { logger: { ...quiet, error } });
    await ask(agent, "go");
    assert.deepEqual(logged, [failure]);
  });

  it("fails a task whose result cannot be encoded", async (t) => {
    const { agent } = await employ(t, () => data({ n: 1n }));
    const task = await ask(agent, "go");
    assert.equal(task.status.state, "failed");
    assert.match(textOf(task.status.message), /^the result could not be sent: .*BigInt/);
  });

  it("fails a task whose result the server refuses", async (t) => {
    const { agent } = await employ(t, () => "x".repeat(40 << 20));
    const task = await ask(agent, "go");
    assert.equal(task.status.state, "failed");
    assert.match(textOf(task.status.message), /^the result could not be sent: the server responded with 413/);
  });

  it("works with a server that does not know exchanges", async (t) => {
    let exchanges = 0;
    const url = await startProxy(
      t,
      server.url,
      () => undefined,
      (path) => {
        if (!path.endsWith("/work")) return undefined;
        exchanges++;
        return { status: 404, type: "text/plain", body: "not found" };
      },
    );
    const { agent } = await employ(t, (task) => task.text, { url, concurrency: 2 });
    assert.equal(resultOf(await ask(agent, "one")), "one");
    assert.equal(resultOf(await ask(agent, "two")), "two");
    assert.equal(exchanges, 1);
  });

  it("streams the artifact of an async generator", async (t) => {
    const { agent } = await employ(t, async function* (task) {
      for (const word of task.text.split(" ")) yield `${word} `;
      await task.progress("almost done");
    });
    let chunks = "";
    let appended = false;
    let complete = false;
    for await (const event of agent.stream("one two three")) {
      if (event.artifact) chunks += textOf(event.artifact, "");
      appended ||= event.append;
      complete ||= event.lastChunk;
    }
    assert.equal(chunks, "one two three ");
    assert.ok(appended, "the artifact did not grow");
    assert.ok(complete, "the artifact has no last chunk");
  });

  it("asks a question, and runs again with the answer", async (t) => {
    const runs: number[] = [];
    const { agent } = await employ(t, async (task) => {
      const run = runs.push(task.history.length);
      const again = run > 2 ? " Again" : ""; // a model asks in other words in each run
      const city = await task.ask(`Which city?${again}`);
      const day = await task.ask("Which day?");
      return `${task.text}: ${textOf(city)} on ${textOf(day)}`;
    });
    const task = await ask(agent, "book a room");
    assert.equal(task.status.state, "input-required");
    assert.equal(textOf(task.status.message), "Which city?");
    const again = await agent.send("Oslo", { id: task.id, waitSeconds: 30 });
    assert.equal(textOf(again.status.message), "Which day?");
    const done = await agent.send("Monday", { id: task.id, waitSeconds: 30 });
    assert.equal(resultOf(done), "book a room: Oslo on Monday");
    assert.equal(runs.length, 3);
  });

  it("rejects and replies", async (t) => {
    const { agent } = await employ(t, (task) =>
      task.text === "no" ? task.reject("not mine") : task.reply("a message"),
    );
    assert.equal((await ask(agent, "no")).status.state, "rejected");
    const replied = await ask(agent, "yes");
    assert.equal(replied.status.state, "completed");
    assert.equal(textOf(replied.status.message), "a message");
  });

  it("passes further messages of the sender on", async (t) => {
    const { agent } = await employ(t, async (task) => {
      for await (const turn of task.turns()) return `then ${textOf(turn)}`;
      return "none";
    });
    const task = await agent.send("first");
    await until("the task is at work", async () => (await agent.get(task.id)).status.state === "working");
    await agent.send("second", { id: task.id });
    await drain(agent.subscribe(task.id));
    assert.equal(resultOf(await agent.get(task.id)), "then second");
  });

  it("aborts the signal of a canceled task within two seconds", async (t) => {
    let canceledAt = 0;
    let why: unknown;
    const { agent } = await employ(t, async (task) => {
      await once(task.signal, "abort");
      why = task.signal.reason;
      canceledAt = Date.now();
    });
    const task = await agent.send("stay");
    await until("the task is at work", async () => (await agent.get(task.id)).status.state === "working");
    const before = Date.now();
    await agent.cancel(task.id);
    await until("the handler was told", () => canceledAt > 0);
    assert.ok(canceledAt - before < 2500, `took ${String(canceledAt - before)} ms`);
    assert.ok(why instanceof TaskCanceledError);
  });

  it("refuses a second result", async (t) => {
    let refusal: unknown;
    const { agent } = await employ(t, async (task) => {
      await task.complete("first");
      await task.complete("second").catch((error: unknown) => (refusal = error));
    });
    assert.equal(resultOf(await ask(agent, "go")), "first");
    await until("the second result is refused", () => refusal instanceof FinishedError);
  });

  it("runs as many handlers at a time as its concurrency", async (t) => {
    let running = 0;
    let most = 0;
    let allRun: () => void = () => undefined;
    const full = new Promise<void>((resolve) => {
      allRun = resolve;
    });
    const { agent } = await employ(
      t,
      async () => {
        most = Math.max(most, ++running);
        if (running === 4) allRun();
        await full;
        await new Promise((resolve) => setTimeout(resolve, 20)); // a fifth one could start
        running--;
      },
      { concurrency: 4 },
    );
    const tasks = await Promise.all(Array.from({ length: 20 }, () => agent.send("go")));
    await until("all tasks are completed", async () => {
      const states = await Promise.all(tasks.map(({ id }) => agent.get(id)));
      return states.every(({ status }) => status.state === "completed");
    });
    assert.equal(most, 4);
  });

  it("keeps the lease of a long task", async (t) => {
    let runs = 0;
    const { agent } = await employ(
      t,
      async () => {
        runs++;
        await new Promise((resolve) => setTimeout(resolve, 2500));
        return "done";
      },
      { leaseSeconds: 1 },
    );
    assert.equal(resultOf(await ask(agent, "go")), "done");
    assert.equal(runs, 1);
  });

  it("loses the lease when the server cannot be reached for its length", async (t) => {
    let down = false;
    let why: unknown;
    const url = await startProxy(t, server.url, () => (down ? "request" : undefined));
    const { agent } = await employ(
      t,
      async (task) => {
        if (task.attempt > 1) return "second attempt";
        down = true;
        await once(task.signal, "abort");
        why = task.signal.reason;
        down = false;
        return "too late";
      },
      { url, leaseSeconds: 1 },
    );
    assert.equal(resultOf(await ask(agent, "go")), "second attempt");
    assert.ok(why instanceof LeaseLostError);
  });

  it("hands unfinished tasks back when it stops", async (t) => {
    let why: unknown;
    let begun = false;
    const { agent, worker, stopped, key, id } = await employ(t, async (task) => {
      begun = true;
      await once(task.signal, "abort");
      why = task.signal.reason;
    });
    const task = await agent.send("stay");
    await until("the handler has begun", () => begun);
    worker.stop();
    await stopped;
    assert.ok(why instanceof WorkerStoppingError);
    startWorker(t, { url: server.url, key, agent: id }, ({ attempt }) => `attempt ${String(attempt)}`);
    await drain(agent.subscribe(task.id));
    assert.equal(resultOf(await agent.get(task.id)), "attempt 1");
  });

  it("completes each task once although responses are lost", async (t) => {
    let reports = 0;
    const url = await startProxy(t, server.url, (_, path) => {
      if (!/\/(work|leases)/.test(path)) return undefined;
      return (["response", undefined, "request", undefined] as const)[reports++ % 4];
    });
    const runs = new Map<string, number>();
    const { agent } = await employ(
      t,
      async (task) => {
        runs.set(task.id, (runs.get(task.id) ?? 0) + 1);
        await task.append("log", "one ");
        await task.append("log", "two ");
        await task.append("log", "three");
      },
      { url, concurrency: 3, leaseSeconds: 5 }, // tasks of a lost response come back when their lease expires
    );
    const tasks = await Promise.all(Array.from({ length: 6 }, () => agent.send("go")));
    for (const { id } of tasks) {
      await drain(agent.subscribe(id));
      const { status, artifacts } = await agent.get(id);
      assert.equal(status.state, "completed");
      assert.equal(artifacts.map((artifact) => textOf(artifact, "")).join(), "one two three");
    }
    assert.deepEqual([...runs.values()], [1, 1, 1, 1, 1, 1]);
  });

  for (const body of ["<html>maintenance</html>", "null", "{}", "[]", '{"tasks":[],"messages":null}']) {
    it(`goes on after a response of a proxy: ${body}`, async (t) => {
      const strange = new Set<string>(); // each first request to a path gets it
      const url = await startProxy(
        t,
        server.url,
        () => undefined,
        (path) => {
          const kind = path.split("/").at(-1) ?? "";
          if (strange.has(kind)) return undefined;
          strange.add(kind);
          return { type: "application/json", body };
        },
      );
      const { agent } = await employ(t, (task) => task.text, { url });
      assert.equal(resultOf(await ask(agent, "hello")), "hello");
      assert.deepEqual([...strange], ["claim", "work"]);
    });
  }

  it("pauses after a claim that brings nothing at once", async (t) => {
    const claims: number[] = [];
    const url = await startProxy(
      t,
      server.url,
      () => undefined,
      (path) => {
        if (!path.endsWith("/claim")) return undefined;
        claims.push(performance.now());
        return { type: "application/json", body: '{"tasks":[],"messages":[]}' };
      },
    );
    await employ(t, () => undefined, { url });
    await until("three claims", () => claims.length >= 3);
    const [first = 0, , third = 0] = claims;
    assert.ok(third - first > 1800);
  });

  it("works on the good tasks and messages of a claim with broken ones", async (t) => {
    const message = { role: "user", parts: [{ type: "text", text: "hello" }] };
    const broken = { role: "user", parts: [{ type: "file", file: { bytes: "?" } }] };
    const task = (id: string, change: object) => ({
      ...{ id, lease: `lease-${id}`, attempt: 1, seen: 1, sender: "acme/user:ada", message, history: [message] },
      ...change,
    });
    const claim = {
      tasks: [null, task("1", { lease: undefined }), task("2", { history: 5 }), task("3", {})],
      messages: [null, { id: "1", message: null }, { id: "2", message: broken }, { id: "3", message }],
    };
    let claims = 0;
    const acknowledged: string[] = [];
    const reported: unknown[] = [];
    const url = await startProxy(
      t,
      server.url,
      () => undefined,
      (path, body) => {
        const json = (value: object) => ({ type: "application/json", body: JSON.stringify(value) });
        if (path.endsWith("/claim")) {
          acknowledged.push(...(JSON.parse(body) as { ack: string[] }).ack);
          return json(claims++ === 0 ? claim : { tasks: [], messages: [] });
        }
        if (!path.endsWith("/work")) return undefined;
        const { reports } = JSON.parse(body) as { reports: { lease: string }[] };
        reported.push(...reports.map(({ lease }) => lease));
        const progress = { seen: 2, canceled: false, messages: [] };
        return json({ reports: reports.map(() => ({ progress })), tasks: [], messages: [] });
      },
    );
    const errors: string[] = [];
    const messages: string[] = [];
    await employ(t, (task) => task.text, {
      url,
      concurrency: 4,
      logger: { ...quiet, error: (text) => errors.push(text) },
      onMessage: ({ id }) => messages.push(id),
    });
    await until("the good task is done", () => reported.length > 0 && acknowledged.length >= 3);
    assert.deepEqual(reported, ["lease-3"]);
    assert.deepEqual(messages, ["3"]);
    assert.deepEqual(acknowledged, ["1", "2", "3"]);
    assert.deepEqual(errors.sort(), [
      "dropped a message that cannot be read",
      "dropped a message that cannot be read",
      "gave a task up; it returns when its lease expires",
      "received a task without an id or a lease",
    ]);
  });

  it("fails a task whose result throws something that has no text", async (t) => {
    const { agent } = await employ(t, () => ({
      toJSON: () => {
        throw Object.create(null) as Error;
      },
    }));
    const { status } = await ask(agent, "go");
    assert.equal(status.state, "failed");
    assert.equal(textOf(status.message), "the result could not be sent: an error that has no text");
  });

  it("ends when the server refuses it permanently", async (t) => {
    const { stopped } = startWorker(t, { url: server.url, key: "parley_wrong", agent: "nobody" }, () => undefined);
    await assert.rejects(stopped, (error) => error instanceof ApiError && error.status === 401);
  });

  it("refuses an invalid configuration", () => {
    const make = (options: Partial<WorkerOptions>) => () =>
      new Worker({ url: server.url, key: "k", agent: "a", logger: quiet, ...options }, () => undefined);
    assert.throws(make({ agent: "" }), /agent: is required/);
    assert.throws(make({ key: "" }), /key: is required/);
    assert.throws(make({ concurrency: 0 }), /concurrency: must be from 1/);
    assert.throws(make({ leaseSeconds: 0.5 }), /leaseSeconds/);
    assert.throws(make({ url: "parley.example" }), ParleyError);
  });

  it("receives direct messages once", async (t) => {
    const received: DirectMessage[] = [];
    const { agent } = await employ(t, () => undefined, { onMessage: (message) => received.push(message) });
    await agent.message("good morning");
    await agent.message("good night");
    await until("both messages", () => received.length === 2);
    await ask(agent, "a task");
    assert.deepEqual(
      received.map(({ message }) => textOf(message)),
      ["good morning", "good night"],
    );
  });

  it("files a proposal with the third friction of its tasks", async (t) => {
    const { agent, id } = await employ(t, async (task) => {
      const { count } = await task.friction({
        fingerprint: `${id}:units`,
        title: "Orders lack units",
        category: "process",
        problem: "An order without units cannot be priced.",
        evidence: task.text,
      });
      return String(count);
    });
    for (const count of ["1", "2", "3"]) assert.equal(resultOf(await ask(agent, "5 of tea")), count);
    const { proposal_id } = await server.client.friction.get(`${id}:units`);
    assert.equal((await server.client.proposals.get(proposal_id ?? "")).submitted_by, `agent:${id}`);
  });

  it("continues after the server was killed", async (t) => {
    const own = await Server.start(t);
    const key = await own.agent("phoenix");
    let release: () => void = () => undefined;
    const working = new Promise<void>((begun) => {
      startWorker(t, { url: own.url, key, agent: "phoenix", concurrency: 2 }, async (task) => {
        if (task.text !== "long") return "short";
        await new Promise<void>((resolve) => {
          release = resolve;
          begun();
        });
        return "survived";
      });
    });
    const agent = own.client.agent("phoenix");
    const task = await agent.send("long");
    const events = agent.subscribe(task.id);
    await working;
    await own.restart();
    release();
    await drain(events);
    assert.equal(resultOf(await agent.get(task.id)), "survived");
    assert.equal(resultOf(await ask(agent, "short")), "short");
  });

  it("stops on SIGTERM and hands its task back", async () => {
    const key = await server.agent("sigterm");
    const script = `
      import { Worker } from "@parley/sdk";
      const options = { url: process.env.URL, key: process.env.KEY, agent: "sigterm", graceSeconds: 0 };
      const worker = new Worker(options, async (task) => {
        console.log("begun");
        await new Promise((resolve) => task.signal.addEventListener("abort", resolve));
      });
      await worker.run();
      console.log("ended");`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
      env: { ...process.env, URL: server.url, KEY: key },
      stdio: ["ignore", "pipe", "inherit"],
    });
    let said = "";
    child.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
    const task = await server.client.agent("sigterm").send("stay");
    await until("the handler has begun", () => said.includes("begun"));
    child.kill("SIGTERM");
    const [code] = (await once(child, "exit")) as [number];
    assert.equal(code, 0);
    assert.match(said, /handed a task back[^]*ended/);
    const { status } = await server.client.agent("sigterm").get(task.id);
    assert.ok(!isTerminal(status.state));
  });
});
