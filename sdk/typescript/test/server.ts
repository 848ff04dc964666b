import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, Worker, type Handler, type Logger, type WorkerOptions } from "@parley/sdk";

/** The parley program that the tests run. */
const program = process.env["PARLEY"] ?? "parley";

/** How long a condition may take to hold. */
const patienceMs = 60_000;

/** Waits until a condition holds. */
export async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  const end = Date.now() + patienceMs;
  while (!(await holds())) {
    assert.ok(Date.now() < end, `timeout: ${what}`);
    await sleep(10);
  }
}

/** Waits for the end of a stream. */
export async function drain(stream: AsyncIterable<unknown>): Promise<void> {
  const iterator = stream[Symbol.asyncIterator]();
  while (!(await iterator.next()).done);
}

/** A server of its own, with an admin's client. */
export class Server {
  url = "";
  key = "";
  readonly #data: string;
  #process: ChildProcess | undefined;

  private constructor(data: string) {
    this.#data = data;
  }

  static async start(t: { after: TestContext["after"] }): Promise<Server> {
    const data = await mkdtemp(join(tmpdir(), "parley-js-"));
    const server = new Server(data);
    t.after(async () => {
      await server.kill();
      await rm(data, { recursive: true, force: true });
    });
    await server.#serve("127.0.0.1:0");
    return server;
  }

  get client(): Client {
    return new Client({ url: this.url, key: this.key });
  }

  /** Ends the server without any warning. */
  async kill(): Promise<void> {
    const process = this.#process;
    if (process?.exitCode !== null || process.signalCode !== null) return;
    process.kill("SIGKILL");
    await once(process, "exit");
  }

  /** Starts the server again, at the same address. */
  async restart(): Promise<void> {
    await this.kill();
    await this.#serve(new URL(this.url).host);
  }

  /** Creates an agent and returns a key of it. */
  async agent(id: string, ...scopes: string[]): Promise<string> {
    await this.client.agents.create({ id, name: id });
    const { secret } = await this.client.keys.create({
      principal: `agent:${id}`,
      scopes: ["svc:a2a:serve", ...scopes],
    });
    return secret;
  }

  async #serve(listen: string): Promise<void> {
    const args = [
      "serve",
      "--listen",
      listen,
      "--data",
      this.#data,
      "--rate-limit",
      "0",
      "--outbound-allow",
      "127.0.0.1",
    ];
    const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"] });
    this.#process = child;
    let said = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (said += chunk.toString()));
    await until("the server is ready", async () => {
      assert.equal(child.exitCode, null, said);
      const url = /(http:\/\/[^\s"/]+)[\s"/]/.exec(said)?.[1];
      if (url === undefined) return false;
      this.url = url;
      return fetch(`${url}/readyz`).then(
        (response) => response.ok,
        () => false,
      );
    });
    this.key ||= /parley_[0-9A-Za-z]{36}/.exec(said)?.[0] ?? "";
  }
}

/** Discards the worker's log. */
export const quiet: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

/** Runs a worker until the test ends. */
export function startWorker(
  t: TestContext,
  options: WorkerOptions,
  handler: Handler,
): { worker: Worker; stopped: Promise<void> } {
  const worker = new Worker({ graceSeconds: 0, logger: quiet, ...options }, handler);
  const stopped = worker.run({ stopOn: [] });
  t.after(async () => {
    worker.stop();
    await stopped.catch(() => undefined);
  });
  return { worker, stopped };
}
