import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it, type TestContext } from "node:test";
import { Role, SendMessageRequest, TaskState, taskStateToJSON, type Message } from "@a2a-js/sdk";
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } from "@a2a-js/sdk/client";
import { AgentEvent, type AgentExecutor, type ExecutionEventBus, type RequestContext } from "@a2a-js/sdk/server";
import { executorHandler } from "@parley/sdk/a2a";
import * as old from "a2a-js-sdk-0.3/client";
import ts from "typescript";
import { Server, startWorker, until } from "./server.js";

const root = new URL("..", import.meta.url);

/** Returns a fetch that sends a key. */
function withKey(key: string): typeof fetch {
  return (input, init) => {
    const headers = new Headers(init?.headers);
    headers.set("Authorization", `Bearer ${key}`);
    return fetch(input, { ...init, headers });
  };
}

/** Counts down, as an agent of the SDK does: a task, statuses, an artifact that grows, a question. */
class Countdown implements AgentExecutor {
  canceled = "";

  async execute(request: RequestContext, bus: ExecutionEventBus): Promise<void> {
    const { taskId, contextId, userMessage, task } = request;
    const ids = { taskId, contextId, metadata: undefined };
    const status = (state: TaskState, text?: string) => {
      const timestamp = new Date().toISOString();
      const message = text === undefined ? undefined : agentMessage(request, text);
      bus.publish(AgentEvent.statusUpdate({ ...ids, status: { state, message, timestamp } }));
    };
    const history = [userMessage];
    const begun = { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp: undefined };
    bus.publish(
      AgentEvent.task(task ?? { id: taskId, contextId, status: begun, artifacts: [], history, metadata: {} }),
    );
    status(TaskState.TASK_STATE_WORKING, `for ${request.context.user?.userName ?? "nobody"}`);
    const content = userMessage.parts[0]?.content;
    const from = content?.$case === "text" ? Number(content.value) : NaN;
    if (Number.isNaN(from)) {
      status(TaskState.TASK_STATE_INPUT_REQUIRED, "From which number?");
      return;
    }
    for (let n = from; n > 0; n--) {
      if (this.canceled === taskId) return;
      const parts = [part(`${String(n)} `)];
      const artifact = {
        artifactId: "count",
        name: "Count",
        description: "",
        parts,
        metadata: undefined,
        extensions: [],
      };
      bus.publish(AgentEvent.artifactUpdate({ ...ids, artifact, append: n < from, lastChunk: n === 1 }));
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    status(TaskState.TASK_STATE_COMPLETED);
    bus.finished();
  }

  cancelTask = (taskId: string): Promise<void> => {
    this.canceled = taskId;
    return Promise.resolve();
  };
}

function part(text: string): Message["parts"][number] {
  return { content: { $case: "text", value: text }, metadata: undefined, filename: "", mediaType: "" };
}

function agentMessage({ taskId, contextId }: RequestContext, text: string): Message {
  const ids = { messageId: crypto.randomUUID(), taskId, contextId };
  return {
    ...ids,
    role: Role.ROLE_AGENT,
    parts: [part(text)],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
}

it("runs an executor of version 1.x, which answers the official client", async (t) => {
  const server = await Server.start(t);
  const executor = new Countdown();
  const key = await server.agent("countdown");
  startWorker(t, { url: server.url, key, agent: "countdown", concurrency: 4 }, executorHandler(executor));
  const fetchImpl = withKey(server.key);
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ fetchImpl })],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
  });
  const client = await factory.createFromUrl(`${server.url}/a2a/countdown/`);
  const send = async (text: string, taskId = "") => {
    const message = { messageId: crypto.randomUUID(), role: "ROLE_USER", taskId, parts: [{ text }] };
    const seen = { id: taskId, text: "", chunks: 0, states: [] as string[] };
    for await (const { payload } of client.sendMessageStream(SendMessageRequest.fromJSON({ message }))) {
      if (payload?.$case === "task") seen.id = payload.value.id;
      if (payload?.$case === "statusUpdate")
        seen.states.push(taskStateToJSON(payload.value.status?.state ?? TaskState.UNRECOGNIZED));
      for (const { content } of payload?.$case === "artifactUpdate" ? (payload.value.artifact?.parts ?? []) : []) {
        if (content?.$case === "text") seen.text += content.value;
        seen.chunks++;
      }
    }
    return seen;
  };

  const counted = await send("5");
  assert.equal(counted.text, "5 4 3 2 1 ");
  assert.ok(counted.chunks >= 3, `${String(counted.chunks)} chunks`);
  assert.equal(counted.states.at(-1), "TASK_STATE_COMPLETED");

  const asked = await send("down");
  assert.equal(asked.states.at(-1), "TASK_STATE_INPUT_REQUIRED");
  assert.equal((await send("2", asked.id)).text, "2 1 ");

  const agent = server.client.agent("countdown");
  const { id } = await agent.send("10000");
  await until("the count has begun", async () => (await agent.get(id)).artifacts.length > 0);
  await agent.cancel(id);
  await until("the executor was told", () => executor.canceled !== "");
});

it("survives an executor that fails after it was canceled", async (t) => {
  const server = await Server.start(t);
  let failed = false;
  let cancel: () => void = () => undefined;
  const executor = {
    execute: async () => {
      await new Promise<void>((resolve) => (cancel = resolve));
      failed = true;
      throw new Error("canceled"); // an unhandled rejection would fail this test
    },
    cancelTask: () => {
      cancel();
      throw new Error("nothing to cancel");
    },
  };
  const key = await server.agent("fragile");
  startWorker(t, { url: server.url, key, agent: "fragile" }, executorHandler(executor));
  const agent = server.client.agent("fragile");
  const { id } = await agent.send("go");
  await until("the task is at work", async () => (await agent.get(id)).status.state === "working");
  await agent.cancel(id);
  await until("the executor has failed", () => failed);
  await new Promise(setImmediate);
});

/** Runs a worker in a folder of its own, where version 0.3 of the SDK is installed, with an executor of its README. */
async function startOldWorker(t: TestContext, server: Server, agent: string, executor: string): Promise<void> {
  const readme = await readFile(new URL("node_modules/a2a-js-sdk-0.3/README.md", root), "utf8");
  const source = new RegExp(`^class ${executor} [^]*?^}$`, "m").exec(readme)?.[0] ?? "";
  assert.notEqual(source, "", `the README has no ${executor}`);
  const { outputText } = ts.transpileModule(source, { compilerOptions: { target: ts.ScriptTarget.ES2022 } });
  const dir = await mkdtemp(join(tmpdir(), "parley-a2a-"));
  const modules = join(dir, "node_modules");
  await mkdir(join(modules, "@a2a-js"), { recursive: true });
  await symlink(new URL("node_modules/a2a-js-sdk-0.3", root), join(modules, "@a2a-js/sdk"));
  for (const name of ["dist", "package.json"]) {
    await cp(new URL(name, root), join(modules, "@parley/sdk", name), { recursive: true });
  }
  const script = `
    import { randomUUID as uuidv4 } from "node:crypto";
    import { Worker } from "@parley/sdk";
    import { executorHandler } from "@parley/sdk/a2a";
    ${outputText}
    const { URL: url, KEY: key } = process.env;
    await new Worker({ url, key, agent: "${agent}" }, executorHandler(new ${executor}())).run();`;
  await writeFile(join(dir, "worker.mjs"), script);
  const env = { ...process.env, URL: server.url, KEY: await server.agent(agent) };
  const child = spawn(process.execPath, ["worker.mjs"], { cwd: dir, env, stdio: ["ignore", "ignore", "inherit"] });
  t.after(async () => {
    child.kill("SIGKILL");
    await rm(dir, { recursive: true, force: true });
  });
}

it("runs the unchanged executors of the README of version 0.3", async (t) => {
  const server = await Server.start(t);
  for (const name of ["Streaming", "Hello", "Cancellable"]) {
    await startOldWorker(t, server, name.toLowerCase(), `${name}Executor`);
  }
  const fetchImpl = withKey(server.key);
  const factory = new old.ClientFactory({
    transports: [new old.JsonRpcTransportFactory({ fetchImpl })],
    cardResolver: new old.DefaultAgentCardResolver({ fetchImpl }),
  });
  const call = async (agent: string) => {
    const client = await factory.createFromUrl(`${server.url}/a2a/${agent}/`);
    const parts = [{ kind: "text" as const, text: "go" }];
    const message = { kind: "message" as const, messageId: crypto.randomUUID(), role: "user" as const, parts };
    return client.sendMessageStream({ message });
  };

  const texts: string[] = [];
  const states: string[] = [];
  for await (const event of await call("streaming")) {
    if (event.kind === "status-update") states.push(event.status.state);
    for (const one of event.kind === "artifact-update" ? event.artifact.parts : []) {
      if (one.kind === "text") texts.push(one.text);
    }
  }
  assert.deepEqual(texts, ["First result."]);
  assert.equal(states.at(-1), "completed");

  const agent = server.client.agent("hello");
  const { id } = await agent.send("go");
  await until("the agent has replied", async () => (await agent.get(id)).status.state === "completed");
  const [reply] = (await agent.get(id)).status.message?.parts ?? [];
  assert.ok(reply?.kind === "text");
  assert.equal(reply.text, "Hello, world!");

  const slow = server.client.agent("cancellable");
  const task = await slow.send("go");
  await until("the task is at work", async () => (await slow.get(task.id)).status.state === "working");
  assert.equal((await slow.cancel(task.id)).status.state, "canceled");
});
