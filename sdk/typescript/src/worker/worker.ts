import { hostname } from "node:os";
import process from "node:process";
import { Client } from "../client/client.js";
import { ParleyError } from "../errors.js";
import { Transport, type ConnectionOptions } from "../transport.js";
import type { Handler } from "./handler.js";
import { Leases } from "./leases.js";
import { consoleLogger, type Logger } from "./logger.js";
import type { DirectMessage } from "./mailbox.js";
import { Shift, type ShiftContext } from "./shift.js";

/** Options of a worker. */
export interface WorkerOptions extends ConnectionOptions {
  /** Id of the agent. */
  agent: string;
  /** How many handlers run at a time; default 1. */
  concurrency?: number | undefined;
  /** Distinguishes the workers of the agent; default: the host name and the process id. */
  name?: string | undefined;
  /**
   * How long a task stays with this worker when the server hears nothing of it, in whole seconds; default
   * 30. The worker extends its leases, so they need not be as long as the work.
   */
  leaseSeconds?: number | undefined;
  /** How long handlers may continue after the worker begins to stop; default 5. */
  graceSeconds?: number | undefined;
  /** Gets direct messages, one at a time in the order of their arrival. */
  onMessage?: ((message: DirectMessage) => unknown) | undefined;
  /** Default: the console. */
  logger?: Logger | undefined;
}

/** Options of a run. */
export interface RunOptions {
  /** Stops the worker. */
  signal?: AbortSignal | undefined;
  /** Signals of the process that stop the worker; default SIGINT and SIGTERM. A second one ends the process. */
  stopOn?: readonly NodeJS.Signals[] | undefined;
}

/**
 * Works for one agent: it claims the agent's tasks, calls a handler for each, and reports the results. The
 * key needs the scope svc:a2a:serve and belongs to the agent itself, or to another principal of its org
 * with the scope agent:<id>.
 */
export class Worker {
  /** Calls the API with the worker's key, which needs the scopes for that. */
  readonly client: Client;
  readonly #context: ShiftContext;
  #stop = new AbortController();
  #running = false;

  constructor(options: WorkerOptions, handler: Handler) {
    const { agent, key, concurrency = 1, leaseSeconds = 30, graceSeconds = 5 } = options;
    require(agent, "agent: is required");
    require(key, "key: is required; make one with parley key create --as agent:<id> --scope svc:a2a:serve");
    require(isWhole(concurrency, 1, 10_000), `concurrency: must be from 1 to 10000; it is ${String(concurrency)}`);
    require(isWhole(leaseSeconds, 1, 3600), `leaseSeconds: must be from 1 to 3600; it is ${String(leaseSeconds)}`);
    const transport = new Transport(options);
    this.client = new Client(transport);
    this.#context = {
      agent,
      handler,
      concurrency,
      leaseSeconds,
      graceSeconds: Math.max(0, graceSeconds),
      name: options.name ?? `${hostname().slice(0, 100)}-${String(process.pid)}`,
      leases: new Leases(transport, agent),
      friction: this.client.friction,
      other: (id) => this.client.agent(id),
      logger: options.logger ?? consoleLogger,
      onMessage: options.onMessage,
    };
  }

  /**
   * Works until it is stopped by stop, the signal, or SIGINT and SIGTERM. Then it claims nothing more and
   * lets handlers finish for the grace period; unfinished tasks go back to the queue, which does not count
   * as an attempt. It rejects if the server refuses the worker permanently: the key is wrong, or the agent
   * does not exist.
   */
  async run({ signal, stopOn = ["SIGINT", "SIGTERM"] }: RunOptions = {}): Promise<void> {
    if (this.#running) throw new ParleyError("the worker runs already");
    this.#running = true;
    const stop = (): void => {
      this.stop();
    };
    if (signal?.aborted) stop();
    signal?.addEventListener("abort", stop, { once: true });
    for (const name of stopOn) process.once(name, stop);
    try {
      await new Shift(this.#context).run(this.#stop.signal);
    } finally {
      signal?.removeEventListener("abort", stop);
      for (const name of stopOn) process.removeListener(name, stop);
      this.#stop = new AbortController();
      this.#running = false;
    }
  }

  /** Stops the worker cleanly, or the next run if there is none yet. Await the promise of run. */
  stop(): void {
    this.#stop.abort();
  }
}

function require(condition: unknown, message: string): asserts condition {
  if (!condition) throw new ParleyError(message);
}

function isWhole(n: number, min: number, max: number): boolean {
  return Number.isInteger(n) && n >= min && n <= max;
}
