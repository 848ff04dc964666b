import type { ClaimedTask, WorkProgress, WorkReport } from "../api.js";
import type { Message } from "../content.js";
import { LeaseLostError, reasonOf, TaskCanceledError, FinishedError, WorkerStoppingError } from "../errors.js";
import { sleep } from "../retry.js";
import { Backoff, isStale, mayHaveArrived } from "./backoff.js";
import { reportTimeoutMs, type Leases, type ReportOptions, type Trace } from "./leases.js";
import type { Logger } from "./logger.js";
import { Mutex } from "./mutex.js";
import { Queue } from "./queue.js";
import { decodeReadable } from "./readable.js";

/** How often the worker asks whether a task was canceled: often enough to notice within two seconds. */
const beatEveryMs = 1500;

/** What a lease needs of its worker. */
export interface LeaseContext {
  readonly leases: Leases;
  readonly leaseSeconds: number;
  readonly logger: Logger;
  /** Delivers a report that ends the lease, together with those of other tasks. */
  deliver(lease: Lease, report: WorkReport, signal?: AbortSignal): Promise<WorkProgress>;
}

/** This worker's lease of one task: it keeps the lease alive and sends the reports in order. */
export class Lease {
  readonly taskId: string;
  readonly token: string;
  readonly trace: Trace;
  /** Further messages of the sender. */
  readonly turns = new Queue<Message>();
  readonly #context: LeaseContext;
  readonly #handler = new AbortController();
  /** Held while a report is sent: reports arrive in order, and no heartbeat overtakes the last one. */
  readonly #reports = new Mutex();
  #seen: number; // of the last response; later messages are delivered again until a response arrives
  #expiresAt: number; // by the local monotonic clock
  #over: Error | undefined;
  #released = false;
  #beat: ReturnType<typeof setTimeout> | undefined;

  constructor(claimed: ClaimedTask, context: LeaseContext) {
    this.taskId = claimed.id;
    this.token = claimed.lease;
    this.trace = { traceparent: claimed.traceparent, tracestate: claimed.tracestate };
    this.#seen = claimed.seen;
    this.#context = context;
    this.#expiresAt = performance.now() + context.leaseSeconds * 1000;
    this.#scheduleBeat();
  }

  /** Is aborted when the task was canceled, the lease was lost, or the worker is stopping; see its reason. */
  get signal(): AbortSignal {
    return this.#handler.signal;
  }

  /** Why the lease is over; undefined: it is not. */
  get over(): Error | undefined {
    return this.#over;
  }

  /** Ends the handler because the worker stops. The lease stays, so that the task can be handed back. */
  interrupt(): void {
    this.#handler.abort(new WorkerStoppingError());
  }

  /** Ends the heartbeats. */
  release(): void {
    this.#released = true;
    clearTimeout(this.#beat);
  }

  /**
   * Sends a report, and repeats it while the lease lasts. make gets whether an earlier attempt may have
   * arrived. ends means that the report ends the lease: then a stale lease after such an attempt means
   * that it did arrive.
   */
  report(ends: boolean, make: (unsure: boolean) => WorkReport, signal?: AbortSignal): Promise<void> {
    return this.#reports.run(async () => {
      const backoff = new Backoff();
      let unsure = false;
      for (;;) {
        this.#throwIfOver();
        signal?.throwIfAborted();
        try {
          await this.#send(ends, make(unsure), signal);
        } catch (error) {
          if (!(isStale(error) && ends && unsure)) {
            await this.#recover(error, backoff, signal);
            unsure ||= mayHaveArrived(error);
            continue;
          }
        }
        if (ends) this.#close(new FinishedError()); // no effect if the response was "canceled"
        if (!(this.#over instanceof FinishedError)) this.#throwIfOver();
        return;
      }
    });
  }

  /** Returns the task to the queue. */
  async giveBack(): Promise<void> {
    if (this.#over) return;
    const { leases, logger } = this.#context;
    try {
      await leases.giveBack(this.token);
      logger.info("handed a task back to the queue", { task: this.taskId });
    } catch (error) {
      if (!isStale(error)) {
        logger.warn("could not hand a task back; it returns when its lease expires", {
          task: this.taskId,
          error: reasonOf(error),
        });
      }
    }
    this.#close(new WorkerStoppingError());
  }

  #throwIfOver(): void {
    if (this.#over) throw this.#over;
  }

  /** Waits before the next attempt. It throws if none can help, or if the lease would be over. */
  async #recover(error: unknown, backoff: Backoff, signal?: AbortSignal): Promise<void> {
    if (isStale(error)) {
      this.#close(new LeaseLostError(error));
      this.#throwIfOver();
    }
    signal?.throwIfAborted();
    const wait = backoff.next(error);
    if (wait === undefined) throw error;
    if (performance.now() + wait > this.#expiresAt) {
      this.#close(new LeaseLostError(error));
      this.#throwIfOver();
    }
    this.#context.logger.warn("a report failed; trying again", {
      task: this.taskId,
      inMs: Math.round(wait),
      error: reasonOf(error),
    });
    await sleep(wait, signal);
  }

  /** Sends one report and processes the response. */
  async #send(ends: boolean, report: WorkReport, signal?: AbortSignal): Promise<void> {
    const began = performance.now(); // the server counts from a later time
    const extension = ends ? undefined : this.#extension();
    const body: WorkReport = { ...report, seen: this.#seen };
    if (extension !== undefined) body.extend_seconds = extension;
    const { leases } = this.#context;
    const progress = ends
      ? await this.#context.deliver(this, body, signal)
      : await leases.report(this.token, body, this.#optionsOf(report), signal);
    if (extension !== undefined) this.#expiresAt = began + extension * 1000;
    this.turns.put(...decodeReadable(progress.messages, this.#context.logger, { task: this.taskId }));
    this.#seen = progress.seen;
    if (progress.canceled) this.#close(new TaskCanceledError());
  }

  /**
   * A report waits no longer than the lease lasts, after which the handler must not continue. A heartbeat is
   * short, so that a hung one delays no report, and not part of the trace, which it would fill.
   */
  #optionsOf(report: WorkReport): ReportOptions {
    if (report.status !== undefined || report.artifacts !== undefined) {
      const left = Math.max(1000, this.#expiresAt - performance.now());
      return { trace: this.trace, timeoutMs: Math.min(reportTimeoutMs, left) };
    }
    return { timeoutMs: Math.max(1000, Math.min(5000, this.#context.leaseSeconds * 500)) };
  }

  /** By how much to extend the lease now. Extending is a write, so it happens when half of it has passed. */
  #extension(): number | undefined {
    const { leaseSeconds } = this.#context;
    return this.#expiresAt - performance.now() > leaseSeconds * 500 ? undefined : leaseSeconds;
  }

  /** Marks the lease as over and ends the handler, unless the handler finished the task. */
  #close(why: Error): void {
    if (this.#over) return;
    this.#over = why;
    this.release();
    this.turns.close();
    if (why instanceof FinishedError) return;
    this.#context.logger.debug("stopped working on a task", { task: this.taskId, why: why.message });
    this.#handler.abort(why);
  }

  #scheduleBeat(): void {
    const every = Math.min(beatEveryMs, this.#context.leaseSeconds * 250);
    this.#beat = setTimeout(() => void this.#sendBeat(), every * (0.9 + Math.random() / 10));
  }

  /** Keeps the lease alive and receives cancellations and further messages. */
  async #sendBeat(): Promise<void> {
    if (!this.#reports.busy) {
      try {
        await this.#reports.run(() => this.#send(false, {}));
      } catch (error) {
        this.#beatFailed(error);
      }
    }
    if (!this.#released) this.#scheduleBeat();
  }

  #beatFailed(error: unknown): void {
    if (isStale(error) || performance.now() > this.#expiresAt) this.#close(new LeaseLostError(error));
    else this.#context.logger.warn("a heartbeat failed", { task: this.taskId, error: reasonOf(error) });
  }
}
