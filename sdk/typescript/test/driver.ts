// The driver of the conformance suite: a worker that obeys the text of its tasks. sdk/conformance/README.md
// is its contract.
import { setTimeout as sleep } from "node:timers/promises";
import {
  ApiError,
  file,
  LeaseLostError,
  TaskCanceledError,
  textOf,
  Worker,
  WorkerStoppingError,
  type Content,
  type Logger,
  type Task,
} from "@parley/sdk";

const env = process.env;

function say(event: string, details: object = {}): void {
  process.stdout.write(`${JSON.stringify({ event, ...details })}\n`);
}

/** Carries out the command in the first message of a task. */
async function obey(task: Task): Promise<Content | undefined> {
  const [command, rest] = cut(textOf(task.history[0]));
  switch (command) {
    case "echo":
      return rest;
    case "sleep": {
      const [pause, word] = cut(rest);
      await wait(task, pause);
      return word;
    }
    case "grow":
      return grow(task, rest);
    case "status":
      return status(task, rest.split(" "));
    case "ask":
      return textOf(await task.ask(rest));
    case "listen":
      return listen(task);
    case "fail":
      await task.fail(rest);
      return undefined;
    case "reject":
      await task.reject(rest);
      return undefined;
    case "crash":
      throw new TypeError("told to crash");
    case "file":
      await task.artifact(
        task.message.parts.filter((part) => part.kind === "file"),
        { id: "file" },
      );
      return undefined;
    case "make": {
      const [size, name] = cut(rest);
      const bytes = Uint8Array.from({ length: Number(size) }, (_, i) => i % 251);
      await task.artifact(file(name, "application/octet-stream", bytes), { id: "file" });
      return undefined;
    }
    case "friction":
      return friction(task, rest);
    default:
      throw new Error(`unknown command ${command}`);
  }
}

/** Splits a text at its first space. */
function cut(text: string): [string, string] {
  const space = text.indexOf(" ");
  return space < 0 ? [text, ""] : [text.slice(0, space), text.slice(space + 1)];
}

/** Waits for some milliseconds, or until the handler is interrupted. */
async function wait(task: Task, milliseconds: string): Promise<void> {
  try {
    await sleep(Number(milliseconds), undefined, { signal: task.signal });
  } catch {
    task.signal.throwIfAborted();
  }
}

async function grow(task: Task, rest: string): Promise<undefined> {
  const [count, pause] = cut(rest);
  for (let i = 1; i <= Number(count); i++) {
    await wait(task, pause);
    await task.append("log", `${String(i)};`, { lastChunk: i === Number(count) });
  }
}

async function status(task: Task, [pause = "", ...words]: string[]): Promise<string> {
  for (const word of words) {
    await wait(task, pause);
    await task.progress(word);
  }
  return "done";
}

async function listen(task: Task): Promise<string> {
  const messages = task.history.filter(({ role }) => role === "user");
  if (messages.length > 1) return task.text; // it arrived before this attempt
  for await (const turn of task.turns()) return textOf(turn);
  task.signal.throwIfAborted();
  return "no message";
}

async function friction(task: Task, key: string): Promise<string> {
  const { counted } = await task.friction({
    fingerprint: key,
    title: `Friction ${key}`,
    category: "performance",
    problem: "It is slow.",
  });
  return counted ? "counted" : "not counted";
}

/** Returns why the worker interrupted the handler, if it did. */
function interruption(error: unknown): string | undefined {
  if (error instanceof TaskCanceledError) return "canceled";
  if (error instanceof LeaseLostError) return "lease-lost";
  return error instanceof WorkerStoppingError ? "stopping" : undefined;
}

async function handle(task: Task): Promise<Content | undefined> {
  const run = { task: task.id, attempt: task.attempt };
  say("start", run);
  try {
    const result = await obey(task);
    say("end", run);
    return result;
  } catch (error) {
    const reason = interruption(error);
    if (reason === undefined) say("end", run);
    else say("interrupted", { ...run, reason });
    throw error;
  }
}

const log = (message: string, details?: object): void => {
  console.error(message, details ?? "");
};
const logger: Logger = { debug: log, info: log, warn: log, error: log };

const worker = new Worker(
  {
    url: env["PARLEY_SERVER"],
    key: env["PARLEY_KEY"],
    agent: env["AGENT"] ?? "",
    concurrency: Number(env["CONCURRENCY"]),
    name: env["WORKER"],
    leaseSeconds: env["LEASE"] === undefined ? undefined : Number(env["LEASE"]),
    graceSeconds: env["GRACE"] === undefined ? undefined : Number(env["GRACE"]) / 1000,
    onMessage: ({ message }) => {
      say("message", { text: textOf(message) });
    },
    logger,
  },
  handle,
);
say("ready");
try {
  await worker.run();
  say("stopped");
} catch (error) {
  if (!(error instanceof ApiError)) throw error;
  say("refused", { status: error.status });
  process.exitCode = 1;
}
