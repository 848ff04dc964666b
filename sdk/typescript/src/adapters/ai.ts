// Runs agents of the Vercel AI SDK (package ai, versions 5 and newer) as workers. The types describe the
// parts of the package that are used, so that it need not be installed to compile a program without it.
import { textOf, type Message } from "../content.js";
import type { Handler } from "../worker/handler.js";
import type { Task } from "../worker/task.js";

/** A message for a model. */
export interface ModelMessage {
  role: "user" | "assistant";
  content: string;
}

/** The options of a call of a model or an agent. */
export interface ModelCall {
  /** The conversation, oldest first. */
  messages: ModelMessage[];
  /** Is aborted when the task is canceled. */
  abortSignal: AbortSignal;
}

/** What streamText and the stream method of agents return. */
export interface ModelStream {
  readonly fullStream: AsyncIterable<StreamPart>;
}

/** A part of a stream; see TextStreamPart of the package ai. */
export interface StreamPart {
  readonly type: string;
  readonly text?: string;
  readonly toolName?: string;
  readonly error?: unknown;
}

/** An agent of the AI SDK, such as a ToolLoopAgent. */
export interface StreamingAgent {
  stream(call: ModelCall): PromiseLike<ModelStream>;
}

/** Calls a model, such as (task, call) => streamText({ model, ...call }). */
export type ModelCaller = (task: Task, call: ModelCall) => ModelStream | PromiseLike<ModelStream>;

/**
 * Returns a handler that runs an agent, or calls a model. The text becomes an artifact that grows while
 * the sender watches; calls of tools become status messages.
 */
export function aiHandler(agent: StreamingAgent | ModelCaller): Handler {
  return async function* (task) {
    const call: ModelCall = { messages: conversation(task.history), abortSignal: task.signal };
    const stream = await (typeof agent === "function" ? agent(task, call) : agent.stream(call));
    for await (const part of stream.fullStream) {
      switch (part.type) {
        case "text-delta":
          yield part.text ?? "";
          break;
        case "tool-call":
          await task.progress(`Calling ${part.toolName ?? "a tool"}`);
          break;
        case "error":
          throw part.error instanceof Error ? part.error : new Error(String(part.error));
        case "abort":
          task.signal.throwIfAborted();
      }
    }
  };
}

/** Returns the messages of a task for a model. Messages without text are left out. */
export function conversation(history: readonly Message[]): ModelMessage[] {
  return history.flatMap((message) => {
    const content = textOf(message);
    return content === "" ? [] : [{ role: message.role === "agent" ? "assistant" : "user", content }];
  });
}
