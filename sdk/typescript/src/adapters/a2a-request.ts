// Makes the requests that executors of both versions of @a2a-js/sdk expect.
import * as sdk from "@a2a-js/sdk";
import * as server from "@a2a-js/sdk/server";
import { encodePart, encodePartV1, type Message } from "../content.js";
import type { Task } from "../worker/task.js";

/** Returns the request of a task for an executor of version 1.x. */
export function requestV1(task: Task): server.RequestContext {
  const request = sdk.SendMessageRequest.fromJSON({
    message: messageV1(task, task.message),
    configuration: { acceptedOutputModes: task.acceptedOutputModes },
    metadata: task.metadata,
  });
  const context = new server.ServerCallContext({ user: userOf(task) });
  const existing = isContinued(task)
    ? sdk.Task.fromJSON({
        id: task.id,
        contextId: task.contextId,
        status: { state: "TASK_STATE_WORKING" },
        history: task.history.map((message) => messageV1(task, message)),
      })
    : undefined;
  return new server.RequestContext(request, task.id, task.contextId, context, existing);
}

/** Returns the request of a task for an executor of version 0.3. */
export function requestV03(task: Task): unknown {
  const existing = isContinued(task)
    ? {
        kind: "task",
        id: task.id,
        contextId: task.contextId,
        status: { state: "working" },
        history: task.history.map((message) => messageV03(task, message)),
      }
    : undefined;
  const { RequestContext, ServerCallContext } = server as unknown as ServerV03;
  const context = new ServerCallContext(undefined, userOf(task));
  return new RequestContext(messageV03(task, task.message), task.id, task.contextId, existing, undefined, context);
}

/** The classes of version 0.3, whose constructors differ. */
interface ServerV03 {
  RequestContext: new (...args: unknown[]) => unknown;
  ServerCallContext: new (extensions: undefined, user: server.User) => unknown;
}

/** Reports whether the executor has seen the task before: the sender has sent a further message. */
function isContinued(task: Task): boolean {
  return task.history.filter(({ role }) => role === "user").length > 1;
}

function userOf(task: Task): server.User {
  return { isAuthenticated: true, userName: task.sender };
}

function common(task: Task, message: Message): object {
  return {
    messageId: message.messageId ?? crypto.randomUUID(),
    taskId: task.id,
    contextId: task.contextId,
    metadata: message.metadata,
    extensions: message.extensions,
    referenceTaskIds: message.referenceTaskIds,
  };
}

function messageV1(task: Task, message: Message): object {
  const role = message.role === "agent" ? "ROLE_AGENT" : "ROLE_USER";
  return { ...common(task, message), role, parts: message.parts.map(encodePartV1) };
}

function messageV03(task: Task, message: Message): object {
  const parts = message.parts.map((part) => ({ kind: part.kind, ...encodePart(part) }));
  return { ...common(task, message), kind: "message", role: message.role, parts };
}
