import assert from "node:assert/strict";
import { after, before, describe, it, type TestContext } from "node:test";
import {
  ApiError,
  data,
  Fail,
  LeaseLostError,
  resultOf,
  textOf,
  type AgentClient,
  type Handler,
  type WorkerOptions,
} from "@parley/sdk";
import { drain, Server, startWorker, until } from "./server.js";

describe("calls and policies", () => {
  let server: Server;
  let agents = 0;
  const cleanups: (() => Promise<void> | void)[] = [];
  before(async () => {
    server = await Server.start({ after: (f) => cleanups.push(f as () => Promise<void>) });
  });
  after(async () => {
    for (const cleanup of cleanups) await cleanup();
  });

  /** Makes an agent that may call others, with a worker. */
  async function employ(
    t: TestContext,
    handler: Handler,
    options: Partial<WorkerOptions> = {},
  ): Promise<{ agent: AgentClient; id: string }> {
    const id = `agent-${String(++agents)}`;
    const key = await server.agent(id, "svc:a2a:write");
    startWorker(t, { url: server.url, key, agent: id, ...options }, handler);
    return { agent: server.client.agent(id), id };
  }

  /** The depth of the chain of calls in the metadata of a task. */
  function depthOf(metadata: Readonly<Record<string, unknown>> | undefined): number {
    const chain = metadata?.["parley.dev/chain"] as { depth: number } | undefined;
    return chain?.depth ?? 0;
  }

  it("calls another agent as part of the task", async (t) => {
    const back = await employ(t, ({ text, sender, contextId, metadata = {} }) =>
      data({ text, sender, contextId, metadata }),
    );
    const front = await employ(t, async (task) => {
      const options = { metadata: { order: 7 }, contextId: "orders" };
      const called = await task.call(back.id, task.text, options);
      assert.equal(called.status.state, "completed");
      return called.artifacts[0]?.parts;
    });
    const task = await front.agent.send("hello", { waitSeconds: 30 });
    const [part] = task.artifacts[0]?.parts ?? [];
    assert.ok(part?.kind === "data", JSON.stringify(task.status));
    assert.deepEqual(part.data, {
      text: "hello",
      sender: `main/agent:${front.id}`,
      contextId: "orders",
      metadata: { order: 7, "parley.dev/chain": { depth: 1, agents: [front.id] } },
    });
  });

  it("ends a loop of calls", async (t) => {
    const self = await employ(
      t,
      async (task) => {
        try {
          return resultOf(await task.call(self.id, "again"));
        } catch (error) {
          if (!(error instanceof ApiError)) throw error;
          return `${error.code} at depth ${String(depthOf(task.metadata))}`;
        }
      },
      { concurrency: 16 },
    );
    const task = await self.agent.send("start", { waitSeconds: 40 });
    assert.equal(resultOf(task), "chain.too_deep at depth 8");
  });

  it("does not repeat a call with an id in a second attempt", async (t) => {
    let paid = 0;
    const back = await employ(t, () => `paid ${String(++paid)}`);
    const front = await employ(t, async (task) => {
      const called = await task.call(back.id, "pay", { id: `${task.id}-pay` });
      if (task.attempt === 1) throw new Fail("lost the receipt");
      return `${resultOf(called)} in attempt ${String(task.attempt)} of ${String(task.maxAttempts)}`;
    });
    const policy = { retry: { maxAttempts: 4, backoffSeconds: 0, on: ["failed" as const] } };
    const task = await front.agent.send("go", { policy, waitSeconds: 30 });
    assert.equal(resultOf(task), "paid 1 in attempt 2 of 4");
  });

  it("ends the handler and the task at the deadline", async (t) => {
    let reason: unknown;
    let deadline: Date | undefined;
    const { agent } = await employ(t, async (task) => {
      deadline = task.deadline;
      await new Promise<void>((resolve) => {
        task.signal.addEventListener("abort", () => {
          resolve();
        });
      });
      reason = task.signal.reason;
    });
    const at = new Date(Date.now() + 2000);
    const { status } = await agent.send("go", { policy: { deadline: at }, waitSeconds: 30 });
    assert.equal(status.state, "failed");
    assert.match(textOf(status.message), /^The deadline /);
    await until("the handler has ended", () => reason !== undefined);
    assert.ok(reason instanceof LeaseLostError, String(reason));
    assert.deepEqual(deadline, at);
  });

  it("names the wrong part of a policy", async (t) => {
    const { agent } = await employ(t, () => undefined);
    await assert.rejects(agent.send("go", { policy: { timeoutSeconds: 0 } }), (error) => {
      assert.ok(error instanceof ApiError);
      assert.match(JSON.stringify(error.fields), /timeout_seconds/);
      return true;
    });
  });

  it("sends a failed task again", async (t) => {
    const { agent } = await employ(t, ({ text, metadata = {} }) => {
      if (!("parley.dev/rerun_of" in metadata)) throw new Fail("no");
      return `${text}, again`;
    });
    const failed = await agent.send("go", { id: "job-1", waitSeconds: 30 });
    assert.equal(failed.status.state, "failed");
    const idempotencyKey = `again-${String(agents)}`;
    const first = await agent.rerun("job-1", { idempotencyKey });
    const same = await agent.rerun("job-1", { idempotencyKey });
    assert.deepEqual([first.id, same.uid], ["job-1.2", first.uid]);
    await drain(agent.subscribe("job-1.2"));
    const task = await agent.get("job-1.2");
    assert.equal(resultOf(task), "go, again");
    await assert.rejects(agent.rerun("job-1.2"), { code: "task.not_rerunnable" });
  });
});
