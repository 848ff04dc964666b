import assert from "node:assert/strict";
import { it } from "node:test";
import { aiHandler } from "@parley/sdk/ai";
import { resultOf, textOf } from "@parley/sdk";
import { simulateReadableStream, streamText, tool, ToolLoopAgent } from "ai";
import { MockLanguageModelV3 } from "ai/test";
import { z } from "zod";
import { drain, Server, startWorker } from "./server.js";

type StreamPart =
  Awaited<ReturnType<MockLanguageModelV3["doStream"]>>["stream"] extends ReadableStream<infer Part> ? Part : never;

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 1, text: 1, reasoning: undefined },
};

/** Returns the stream of a model that says some words. */
function words(...texts: string[]): StreamPart[] {
  return [
    { type: "text-start", id: "1" },
    ...texts.map((delta): StreamPart => ({ type: "text-delta", id: "1", delta })),
    { type: "text-end", id: "1" },
    { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage },
  ];
}

/** A model that streams one response after the other. */
function modelOf(...responses: StreamPart[][]): MockLanguageModelV3 {
  return new MockLanguageModelV3({
    doStream: responses.map((chunks) => ({ stream: simulateReadableStream({ chunks, chunkDelayInMs: 30 }) })),
  });
}

it("streams the text of a model", async (t) => {
  const server = await Server.start(t);
  const model = modelOf(words("Hello", ", ", "Ada", "."));
  const handler = aiHandler((_, call) => streamText({ model, ...call }));
  startWorker(t, { url: server.url, key: await server.agent("poet"), agent: "poet" }, handler);
  let text = "";
  let chunks = 0;
  for await (const { artifact } of server.client.agent("poet").stream("I am Ada")) {
    if (!artifact) continue;
    text += textOf(artifact, "");
    chunks++;
  }
  assert.equal(text, "Hello, Ada.");
  assert.ok(chunks >= 2, "the text did not grow");
  assert.deepEqual(model.doStreamCalls[0]?.prompt.at(-1)?.content, [{ type: "text", text: "I am Ada" }]);
});

it("runs an agent with tools", async (t) => {
  const server = await Server.start(t);
  const called: StreamPart[] = [
    { type: "tool-call", toolCallId: "c1", toolName: "price", input: '{"goods":"tea"}' },
    { type: "finish", finishReason: { unified: "tool-calls", raw: "tool_calls" }, usage },
  ];
  const price = tool({
    description: "Returns the price of goods",
    inputSchema: z.object({ goods: z.string() }),
    execute: ({ goods }) => `${goods}: 30 €`,
  });
  const agent = new ToolLoopAgent({ model: modelOf(called, words("Tea is ", "30 €.")), tools: { price } });
  startWorker(t, { url: server.url, key: await server.agent("clerk"), agent: "clerk" }, aiHandler(agent));
  const clerk = server.client.agent("clerk");
  const statuses: string[] = [];
  const stream = clerk.stream("What is the price of tea?");
  let id = "";
  for await (const event of stream) {
    id = event.taskId;
    if (event.status?.message) statuses.push(textOf(event.status.message));
  }
  assert.deepEqual(statuses, ["Calling price"]);
  assert.equal(resultOf(await clerk.get(id)), "Tea is 30 €.");
});

it("fails the task when the model fails", async (t) => {
  const server = await Server.start(t);
  const model = new MockLanguageModelV3({ doStream: () => Promise.reject(new Error("out of tokens")) });
  const handler = aiHandler((_, call) => streamText({ model, ...call, maxRetries: 0, onError: () => undefined }));
  startWorker(t, { url: server.url, key: await server.agent("broke"), agent: "broke" }, handler);
  const agent = server.client.agent("broke");
  const { id } = await agent.send("go");
  await drain(agent.subscribe(id));
  const { status } = await agent.get(id);
  assert.equal(status.state, "failed");
  assert.equal(textOf(status.message), "the agent failed in an unexpected way");
});
