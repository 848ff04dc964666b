// Runs an AgentExecutor of the official A2A SDK for JavaScript (@a2a-js/sdk, versions 0.3 and 1.x) as a
// worker: Parley takes the place of the SDK's server.
import * as sdk from "@a2a-js/sdk";
import * as server from "@a2a-js/sdk/server";
import { decodePart, type Part, type WireMessage, type WirePart } from "../content.js";
import type { Handler } from "../worker/handler.js";
import { Queue } from "../worker/queue.js";
import type { Task } from "../worker/task.js";
import { requestV03, requestV1 } from "./a2a-request.js";

/** The part of an AgentExecutor that versions 0.3 and 1.x have in common. */
export interface Executor {
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- the types of the versions differ
  execute(requestContext: any, eventBus: any): Promise<void>;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- as above
  cancelTask(taskId: string, eventBus: any): Promise<void>;
}

/** Returns a handler that runs an executor. */
export function executorHandler(executor: Executor): Handler {
  return async (task) => {
    const bus = new server.DefaultExecutionEventBus();
    const events = new Queue<Change>();
    const publish = (event: unknown): void => {
      events.put(decode(event));
    };
    bus.on("event", publish);
    bus.on("finished", () => {
      events.close();
    });
    const cancel = (): void => {
      events.close();
      void ended(() => executor.cancelTask(task.id, bus));
    };
    task.signal.addEventListener("abort", cancel, { once: true });
    try {
      const request = isV1 ? requestV1(task) : requestV03(task);
      const executed = executor.execute(request, bus).finally(() => {
        events.close();
      });
      void ended(() => executed); // it may fail after a cancellation, when nothing awaits it
      await apply(task, events);
      task.signal.throwIfAborted();
      await executed;
    } finally {
      task.signal.removeEventListener("abort", cancel);
      bus.removeAllListeners();
    }
  };
}

/** Waits for the end of an action, whether it succeeds or fails. */
async function ended(action: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch {
    // The task is over.
  }
}

/** Version 0.3 has no wrappers of events. */
const isV1 = "AgentEvent" in server;

/** An event of an executor, in the form of either version. */
interface Change {
  message?: WireMessage;
  status?: { state: string; message?: WireMessage | null };
  artifact?: WireArtifact;
  artifacts?: WireArtifact[];
  append?: boolean;
  lastChunk?: boolean;
}

interface WireArtifact {
  artifactId: string;
  name?: string;
  description?: string;
  metadata?: Record<string, unknown>;
  parts?: WirePart[];
}

/** Version 1.x publishes messages of protobuf, whose JSON form is that of the protocol. */
function decode(event: unknown): Change {
  if (!isV1) {
    const change = event as Change & { kind: string };
    return change.kind === "message" ? { message: change as unknown as WireMessage } : change;
  }
  const { kind, data } = event as server.AgentExecutionEvent;
  const payload = { $case: kind, value: data } as NonNullable<sdk.StreamResponse["payload"]>;
  const json = sdk.StreamResponse.toJSON({ payload }) as Record<string, Change>;
  return kind === "message" ? { message: json["message"] as WireMessage } : (json[kind] ?? {});
}

/** Reports the events of an executor until it has ended the task. */
async function apply(task: Task, events: AsyncIterable<Change>): Promise<void> {
  for await (const change of events) {
    if (change.message) {
      await task.reply(partsOf(change.message));
      return;
    }
    for (const artifact of change.artifacts ?? []) await deliver(task, artifact, change);
    if (change.artifact) await deliver(task, change.artifact, change);
    if (change.status && (await applyStatus(task, change.status))) return;
  }
}

async function deliver(task: Task, artifact: WireArtifact, { append, lastChunk }: Change): Promise<void> {
  const { artifactId: id, parts, name, description, metadata } = artifact;
  const options = { name, description, metadata, lastChunk: lastChunk === true };
  const content = (parts ?? []).map(decodePart);
  await (append ? task.append(id, content, options) : task.artifact(content, { ...options, id }));
}

/** Reports a status. It returns whether the status ends the run of the handler. */
async function applyStatus(task: Task, { state, message }: NonNullable<Change["status"]>): Promise<boolean> {
  const said = message ? partsOf(message) : undefined;
  switch (state.replace("TASK_STATE_", "").toLowerCase().replaceAll("_", "-")) {
    case "completed":
      await task.complete(undefined, said ? { message: said } : {});
      return true;
    case "failed":
      await task.fail(said ?? "the agent failed");
      return true;
    case "rejected":
      await task.reject(said ?? "the agent rejected the task");
      return true;
    case "canceled":
      await task.fail(said ?? "the agent canceled the task");
      return true;
    case "input-required":
      await task.requireInput(said ?? "The agent needs input.");
      return true;
    case "auth-required":
      await task.requireAuth(said ?? "The agent needs an authorization.");
      return true;
    default:
      if (said) await task.progress(said);
      return false;
  }
}

function partsOf(message: WireMessage): Part[] {
  return (message.parts ?? []).map(decodePart);
}
