import type { Claim, ClaimedTask, ClaimRequest, WorkReport } from "../api.js";
import type { AgentClient } from "../client/agent.js";
import type { FrictionService } from "../client/friction.js";
import { reasonOf, TaskCanceledError } from "../errors.js";
import { sleep } from "../retry.js";
import { Backoff } from "./backoff.js";
import { Exchanges } from "./exchanges.js";
import { run, type Handler } from "./handler.js";
import { Lease } from "./lease.js";
import type { Leases } from "./leases.js";
import type { Logger } from "./logger.js";
import { Mailbox, type DirectMessage } from "./mailbox.js";
import { Queue } from "./queue.js";
import { messageOf } from "./report.js";
import { Slots } from "./slots.js";
import { Task } from "./task.js";

const claimWaitSeconds = 20;
/** How long a claim that brings nothing takes at least, so that a server that does not wait is not flooded. */
const shortestClaimMs = 1000;
/**
 * How long the worker must be full before it asks for direct messages alone, which also tells the server
 * that it is still alive.
 */
const fullMs = 1000;
/** How long a handler may take to notice that its signal was aborted. */
const stuckMs = 5000;

/** What a run of a worker needs. */
export interface ShiftContext {
  readonly agent: string;
  readonly name: string;
  readonly concurrency: number;
  readonly leaseSeconds: number;
  readonly graceSeconds: number;
  readonly leases: Leases;
  readonly logger: Logger;
  readonly handler: Handler;
  readonly friction: FrictionService;
  readonly other: (id: string) => AgentClient; // another agent
  readonly onMessage: ((message: DirectMessage) => unknown) | undefined;
}

/** One run of a worker: it claims tasks, runs their handlers, and stops cleanly. */
export class Shift {
  readonly #context: ShiftContext;
  readonly #slots: Slots;
  readonly #exchanges: Exchanges;
  readonly #mailbox: Mailbox;
  readonly #inbox = new Queue<DirectMessage>();
  readonly #handlers = new Set<Promise<void>>();
  readonly #over = new AbortController(); // ends what is in flight
  #stopping = false;

  constructor(context: ShiftContext) {
    this.#context = context;
    this.#slots = new Slots(context.concurrency);
    this.#mailbox = new Mailbox(context.logger);
    this.#exchanges = new Exchanges({
      leases: context.leases,
      slots: this.#slots,
      logger: context.logger,
      signal: this.#over.signal,
      claimRequest: (max, waitSeconds) => this.#claimRequest(max, waitSeconds),
      received: (response, claim) => {
        this.#receive(response, claim);
      },
    });
  }

  /** Works until the signal is aborted. It rejects if the server refuses the worker permanently. */
  async run(signal: AbortSignal): Promise<void> {
    const { logger, agent, name, concurrency } = this.#context;
    const reading = this.#readMessages();
    logger.info("working", { agent, worker: name, concurrency });
    try {
      await this.#claimLoop(signal);
    } finally {
      this.#stopping = true;
      this.#slots.close();
      this.#inbox.close();
      await this.#drain(reading);
      this.#over.abort();
      await this.#acknowledge();
      logger.info("stopped", { agent, worker: name });
    }
  }

  async #claimLoop(signal: AbortSignal): Promise<void> {
    const backoff = new Backoff();
    const stopped = (): boolean => signal.aborted;
    while (!stopped()) {
      await this.#awaitRoom(signal);
      if (stopped()) return;
      const room = this.#slots.reserve();
      try {
        await this.#claim(room, signal);
        backoff.reset();
      } catch (error) {
        if (stopped()) return; // the server notices that the response was not received
        const wait = backoff.next(error);
        if (wait === undefined) throw error;
        this.#context.logger.warn("a claim failed; trying again", { inMs: Math.round(wait), error: reasonOf(error) });
        await sleep(wait, signal).catch(() => undefined);
      } finally {
        this.#slots.release(room);
      }
    }
  }

  /** Waits for a free slot, or until the server has not heard of this worker for a while. */
  async #awaitRoom(signal: AbortSignal): Promise<void> {
    let wait = fullMs;
    while (this.#slots.free <= 0 && !signal.aborted && wait > 0) {
      const freed = await untilOrAfter(wait, signal, (either) => this.#slots.whenFree(either));
      if (!freed) wait = fullMs - this.#exchanges.outbox.idleMs;
    }
  }

  /** Asks for work. Without a free slot it asks for direct messages, until there is one. */
  async #claim(room: number, signal: AbortSignal): Promise<void> {
    const request = this.#claimRequest(room, claimWaitSeconds);
    const began = performance.now();
    const asked = new AbortController();
    const abort = (): void => {
      asked.abort();
    };
    signal.addEventListener("abort", abort, { once: true });
    if (room <= 0) void this.#slots.whenFree(asked.signal).then(abort);
    try {
      const received = this.#receive(await this.#context.leases.claim(request, asked.signal), request);
      const early = shortestClaimMs - (performance.now() - began);
      if (received === 0 && early > 0) await sleep(early, asked.signal);
    } catch (error) {
      const onPurpose = room <= 0 && asked.signal.aborted && !signal.aborted;
      if (!onPurpose) throw error; // otherwise the acknowledgements go with the next claim
    } finally {
      signal.removeEventListener("abort", abort);
      asked.abort();
    }
  }

  #claimRequest(max: number, waitSeconds: number): ClaimRequest {
    const { name, leaseSeconds, concurrency } = this.#context;
    return {
      worker: name,
      max,
      wait_seconds: waitSeconds,
      lease_seconds: leaseSeconds,
      capacity: concurrency,
      ack: this.#mailbox.unacknowledged(),
    };
  }

  /** Takes what a claim brought. It returns how many tasks and messages are new. */
  #receive(claim: Claim, request: ClaimRequest): number {
    const messages = this.#mailbox.receive(request.ack ?? [], claim.messages);
    this.#inbox.put(...messages);
    const tasks = claim.tasks.filter((task: Partial<ClaimedTask> | null) => task?.id && task.lease);
    if (tasks.length < claim.tasks.length) this.#context.logger.error("received a task without an id or a lease");
    for (const task of tasks) this.#begin(task);
    return messages.length + tasks.length;
  }

  #begin(claimed: ClaimedTask): void {
    const lease = new Lease(claimed, {
      leases: this.#context.leases,
      leaseSeconds: this.#context.leaseSeconds,
      logger: this.#context.logger,
      deliver: (...args) => this.#exchanges.deliver(...args),
    });
    const work = (this.#stopping ? lease.giveBack() : this.#work(claimed, lease))
      .catch((error: unknown) => {
        this.#context.logger.error("gave a task up; it returns when its lease expires", { task: claimed.id, error });
      })
      .finally(() => this.#handlers.delete(work));
    this.#handlers.add(work);
  }

  async #work(claimed: ClaimedTask, lease: Lease): Promise<void> {
    this.#slots.hold(lease);
    try {
      this.#context.logger.debug("claimed", { task: claimed.id, attempt: claimed.attempt });
      const task = new Task(claimed, lease, this.#context);
      let report: WorkReport | undefined;
      await this.#slots.run(async () => {
        report = await run(this.#context.handler, task, lease, this.#context.logger);
      }, lease.signal);
      if (lease.signal.aborted)
        await lease.giveBack(); // no effect if the lease is over
      else if (report) await this.#settle(lease, report);
    } finally {
      lease.release();
      this.#slots.forget(lease);
    }
  }

  /**
   * Reports the outcome of a handler, unless it has ended the task itself. That is worth trying while the
   * lease lasts, even if the worker begins to stop. If the outcome cannot be sent, the task fails.
   */
  async #settle(lease: Lease, report: WorkReport): Promise<void> {
    let next = report;
    while (!lease.over) {
      const current = next;
      try {
        await lease.report(true, () => current);
      } catch (error) {
        if (error instanceof TaskCanceledError) return;
        this.#context.logger.error("could not report the result of a task", { task: lease.taskId, error });
        if (current !== report) return;
        next = { status: "failed", message: messageOf(`the result could not be sent: ${reasonOf(error)}`) };
      }
    }
  }

  /** Lets handlers finish, then aborts their signals, then stops waiting. */
  async #drain(reading: Promise<void>): Promise<void> {
    const ended = async (): Promise<void> => {
      while (this.#handlers.size > 0) await Promise.all(this.#handlers);
      await reading;
    };
    if (await within(this.#context.graceSeconds * 1000, ended())) return;
    for (const lease of this.#slots.held) lease.interrupt();
    if (await within(stuckMs, ended())) return;
    await Promise.all(
      this.#slots.held.map((lease) => {
        this.#context.logger.error("a handler ignores its signal; its task goes back to the queue", {
          task: lease.taskId,
        });
        return lease.giveBack();
      }),
    );
  }

  /** Acknowledges the last direct messages. */
  async #acknowledge(): Promise<void> {
    if (this.#mailbox.unacknowledged().length === 0) return;
    try {
      await this.#context.leases.claim(this.#claimRequest(0, 0));
    } catch (error) {
      this.#context.logger.warn("could not acknowledge direct messages; they will be delivered again", {
        error: reasonOf(error),
      });
    }
  }

  async #readMessages(): Promise<void> {
    const { onMessage, logger } = this.#context;
    for await (const message of this.#inbox) {
      if (!onMessage) {
        logger.warn("dropped a direct message: onMessage is not set", { message: message.id, from: message.from });
        continue;
      }
      try {
        await onMessage(message);
      } catch (error) {
        logger.error("onMessage failed", { message: message.id, error });
      }
    }
  }
}

/** Reports whether a promise is settled within a time. */
async function within(ms: number, promise: Promise<unknown>): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(resolve, ms, false);
  });
  try {
    return await Promise.race([promise.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** Waits for a condition until a time has passed. It reports whether the condition holds. */
async function untilOrAfter(
  ms: number,
  signal: AbortSignal,
  wait: (signal: AbortSignal) => Promise<void>,
): Promise<boolean> {
  const late = new AbortController();
  const abort = (): void => {
    late.abort();
  };
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await within(ms, wait(late.signal));
  } finally {
    abort();
    signal.removeEventListener("abort", abort);
  }
}
