import type { WorkReport } from "../api.js";
import { partsOf, type Content, type Part } from "../content.js";
import { reasonOf } from "../errors.js";
import type { Lease } from "./lease.js";
import type { Logger } from "./logger.js";
import { artifactOf, messageOf } from "./report.js";
import { TaskSuspendedError, type Task } from "./task.js";

/** Id of the artifact that a handler makes by iterating. */
const resultId = "result";

/** What a handler may return; see Handler. */
export type HandlerResult = Content | AsyncIterable<string | Part> | undefined;

/**
 * Does the work of one task.
 *
 * What it returns completes the task: a text, a part or several parts become its artifact, and an async
 * iterable of them becomes an artifact that grows while the sender watches, so a handler can be an async
 * generator. Throwing fails the task with the error's message. A handler that ends the task itself, with
 * complete, reply, fail, reject or ask, returns nothing.
 *
 * When a worker is lost, its tasks go to another one, so a handler must be able to run again for the same
 * task.
 */
// eslint-disable-next-line @typescript-eslint/no-invalid-void-type -- handlers that return nothing are usual
export type Handler = (task: Task) => HandlerResult | void | Promise<HandlerResult | void>;

/** Runs a handler. It returns the report of the outcome. */
export async function run(handler: Handler, task: Task, lease: Lease, logger: Logger): Promise<WorkReport> {
  try {
    const result = (await handler(task)) as HandlerResult;
    if (isIterable(result)) await stream(task, result);
    else if (result !== undefined) return { status: "completed", artifacts: [artifactOf(partsOf(result))] };
    return { status: "completed" };
  } catch (error) {
    const expected = lease.signal.aborted || error instanceof TaskSuspendedError;
    if (!expected) logger.error("the handler failed", { task: task.id, error });
    return { status: "failed", message: messageOf(reasonOf(error) || "the agent failed") };
  }
}

function isIterable(result: HandlerResult): result is AsyncIterable<string | Part> {
  return typeof result === "object" && Symbol.asyncIterator in result;
}

async function stream(task: Task, chunks: AsyncIterable<string | Part>): Promise<void> {
  const artifact = task.stream(resultId);
  for await (const chunk of chunks) {
    task.signal.throwIfAborted();
    if (chunk !== "") void artifact.write(chunk); // end has its error
  }
  await artifact.end();
}
