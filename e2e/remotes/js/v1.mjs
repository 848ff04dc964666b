// A remote agent on the official JavaScript server, for the tests of relays:
//
//     node v1.mjs PORT RELEASE
//
// See ../python/v1.py.
import { existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { Role, TaskState } from "@a2a-js/sdk";
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from "@a2a-js/sdk/server";
import { agentCardHandler, jsonRpcHandler, UserBuilder } from "@a2a-js/sdk/server/express";
import express from "express";

const [port, release] = process.argv.slice(2);

const text = (value) => ({ content: { $case: "text", value }, filename: "", mediaType: "", metadata: undefined });
const now = () => new Date().toISOString();
const canceled = new Set();

const actor = {
  async execute(context, bus) {
    const { taskId, contextId, userMessage } = context;
    console.log("got " + userMessage.messageId);
    const said = userMessage.parts[0].content.value;
    let [verb, ...rest] = said.split(" ");
    let what = rest.join(" ");
    if (context.task) {
      [verb, what] = ["say", said];
    }
    const says = (value) => ({
      messageId: crypto.randomUUID(), contextId, taskId, role: Role.ROLE_AGENT, parts: [text(value)], metadata: undefined,
      extensions: [], referenceTaskIds: [],
    });
    const status = (state, message) => bus.publish(AgentEvent.statusUpdate({
      taskId, contextId, status: { state, message, timestamp: now() }, metadata: undefined,
    }));
    const artifact = (parts, append, lastChunk, name) => bus.publish(AgentEvent.artifactUpdate({
      taskId, contextId, append, lastChunk, metadata: undefined,
      artifact: { artifactId: "a", name, description: "", parts, metadata: undefined, extensions: [] },
    }));
    bus.publish(AgentEvent.task(context.task ?? {
      id: taskId, contextId, status: { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp: now() },
      artifacts: [], history: [userMessage], metadata: undefined,
    }));
    status(TaskState.TASK_STATE_WORKING, says("working on " + what));
    if (verb === "ask") {
      status(TaskState.TASK_STATE_INPUT_REQUIRED, says(what));
      bus.finished();
      return;
    }
    while (verb === "wait" && !existsSync(release)) {
      if (canceled.has(taskId)) {
        bus.finished();
        return;
      }
      await sleep(50);
    }
    if (verb === "file") {
      const raw = { ...text(""), content: { $case: "raw", value: Buffer.from(what.repeat(1000)) } };
      artifact([{ ...raw, filename: "result.bin", mediaType: "application/octet-stream" }], false, true, "file");
    } else {
      artifact([text(what)], false, false, "result");
      artifact([text("!")], true, true, "result");
    }
    status(TaskState.TASK_STATE_COMPLETED, undefined);
    bus.finished();
  },

  async cancelTask(taskId, bus) {
    console.log("canceled " + taskId);
    canceled.add(taskId);
    bus.publish(AgentEvent.statusUpdate({
      taskId, contextId: "", status: { state: TaskState.TASK_STATE_CANCELED, message: undefined, timestamp: now() },
      metadata: undefined,
    }));
    bus.finished();
  },
};

const card = {
  name: "Remote", description: "Plays a remote agent.", version: "1.2.3", provider: undefined, documentationUrl: "",
  iconUrl: "", capabilities: { streaming: true, pushNotifications: false, extensions: [], extendedAgentCard: false },
  securitySchemes: {}, securityRequirements: [], signatures: [],
  defaultInputModes: ["text/plain"], defaultOutputModes: ["text/plain"],
  skills: [{
    id: "play", name: "Play", description: "Plays.", tags: ["theatre"], examples: [], inputModes: [], outputModes: [],
    securityRequirements: [],
  }],
  supportedInterfaces: [
    { url: `http://127.0.0.1:${port}/`, protocolBinding: "JSONRPC", protocolVersion: "1.0", tenant: "" },
  ],
};
const handler = new DefaultRequestHandler(card, new InMemoryTaskStore(), actor);
const app = express();
app.use("/.well-known/agent-card.json", agentCardHandler({ agentCardProvider: handler }));
app.use("/", jsonRpcHandler({ requestHandler: handler, userBuilder: UserBuilder.noAuthentication }));
app.listen(Number(port), "127.0.0.1");
