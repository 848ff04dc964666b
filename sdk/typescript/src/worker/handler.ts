import type { WorkReport } from "../api.js";
import { data, partsOf, type Content, type Part } from "../content.js";
import { Fail, Reject } from "../errors.js";
import type { Lease } from "./lease.js";
import type { Logger } from "./logger.js";
import { artifactOf, messageOf } from "./report.js";
import { TaskSuspendedError, type Task } from "./task.js";

/** Id of the artifact that a handler makes by iterating. */
const resultId = "result";

// What the sender is told if the handler does not say more.
const failed = "the agent failed";
const rejected = "the agent rejected the task";
const unexpected = "the agent failed in an unexpected way";

/** What a handler may return; see Handler. */
export type HandlerResult =
  Content | AsyncIterable<string | Part> | Readonly<Record<string, unknown>> | null | undefined;

/**
 * Does the work of one task.
 *
 * What it returns completes the task: a text, a part or several parts become its artifact, a plain object
 * becomes a part of data, and an async iterable of texts and parts becomes an artifact that grows while the
 * sender watches, so a handler can be an async generator. A handler that ends the task itself, with
 * complete, reply, fail, reject or ask, returns nothing.
 *
 * Throwing Fail or Reject ends the task with a message for the sender. Any other error fails it too, but
 * the sender, who may be in another org, is not told why; the log has the error.
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
    else if (result !== undefined && result !== null) {
      return { status: "completed", artifacts: [artifactOf(partsOfResult(result))] };
    }
    return { status: "completed" };
  } catch (error) {
    if (error instanceof Fail) return { status: "failed", message: messageOf(error.message || failed) };
    if (error instanceof Reject) return { status: "rejected", message: messageOf(error.message || rejected) };
    const expected = lease.signal.aborted || error instanceof TaskSuspendedError;
    if (!expected) logger.error("the handler failed", { task: task.id, error });
    return { status: "failed", message: messageOf(unexpected) };
  }
}

function isIterable(result: HandlerResult): result is AsyncIterable<string | Part> {
  return typeof result === "object" && result !== null && Symbol.asyncIterator in result;
}

/** Returns the parts of a result. Programs without types may return anything. */
function partsOfResult(result: unknown): Part[] {
  if (typeof result === "string" || isPart(result)) return partsOf(result);
  if (Array.isArray(result) && result.every(isPart)) return result;
  if (isPlainObject(result)) return [data(result)];
  throw new TypeError(
    "a handler returns a text, a part, a list of parts, a plain object, an async iterable of texts and parts, or nothing",
  );
}

function isPart(value: unknown): value is Part {
  return isPlainObject(value) && ["text", "data", "file"].includes(String(value["kind"]));
}

function isPlainObject(value: unknown): value is Record<string, unknown> {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

async function stream(task: Task, chunks: AsyncIterable<string | Part>): Promise<void> {
  const artifact = task.stream(resultId);
  for await (const chunk of chunks) {
    task.signal.throwIfAborted();
    if (chunk !== "") void artifact.write(chunk); // end has its error
  }
  await artifact.end();
}
