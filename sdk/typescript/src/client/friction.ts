import type { FrictionOutcome, FrictionRecord, FrictionReport, FrictionSettings } from "../api.js";
import type { Operations } from "../operations.js";
import type { RequestOptions, Transport } from "../transport.js";
import { Listing } from "./page.js";

/** What friction can be reported to: a client, or the task of a worker. */
export interface FrictionReporter {
  readonly friction:
    | ((report: FrictionReport) => Promise<FrictionOutcome>)
    | { report(report: FrictionReport): Promise<FrictionOutcome> };
}

/** Reports and reads friction: what gets in the way of work. */
export class FrictionService {
  readonly #transport: Transport;
  readonly #list: Listing<"list-friction", "friction">;

  constructor(transport: Transport) {
    this.#transport = transport;
    this.#list = new Listing(transport, "list-friction", "friction", "cursor");
  }

  /**
   * Reports an occurrence. Call it each time with the same fingerprint: the report that reaches the org's
   * threshold (default three) files a proposal with the collected evidence.
   */
  report(report: FrictionReport, options?: RequestOptions): Promise<FrictionOutcome> {
    return this.#transport.call("report-friction", { body: report }, options);
  }

  /** Returns one page of frictions, the latest first. */
  list(query?: Operations["list-friction"]["query"], options?: RequestOptions) {
    return this.#list.page({}, query, options);
  }

  /** Iterates over the frictions of all pages. */
  all(options?: RequestOptions) {
    return this.#list.all({}, undefined, options);
  }

  /** Returns one friction with its evidence. */
  get(fingerprint: string, options?: RequestOptions): Promise<FrictionRecord> {
    return this.#transport.call("get-friction", { path: { fingerprint } }, options);
  }

  /** Returns how many reports file a proposal. */
  settings(options?: RequestOptions): Promise<FrictionSettings> {
    return this.#transport.call("get-friction-settings", {}, options);
  }

  /** Sets how many reports file a proposal; 0: never. */
  setSettings(settings: { threshold: number }, options?: RequestOptions): Promise<FrictionSettings> {
    return this.#transport.call("set-friction-settings", { body: settings }, options);
  }
}

/** A friction to report when a function fails. */
export type FrictionOf = Omit<FrictionReport, "evidence"> | ((error: unknown) => FrictionReport);

/**
 * Wraps a function: when it fails, the failure is reported as friction, with the error as its evidence,
 * and thrown again. The third report files a proposal by itself; of one task only the first counts. A report that fails is not thrown.
 */
export function reportFriction<Arguments extends unknown[], Result>(
  reporter: FrictionReporter,
  friction: FrictionOf,
  run: (...args: Arguments) => Result | Promise<Result>,
): (...args: Arguments) => Promise<Result> {
  return async (...args) => {
    try {
      return await run(...args);
    } catch (error) {
      const report = typeof friction === "function" ? friction(error) : { ...friction, evidence: evidenceOf(error) };
      const sent =
        typeof reporter.friction === "function" ? reporter.friction(report) : reporter.friction.report(report);
      await sent.catch((failure: unknown) => {
        console.warn("could not report friction", failure);
      });
      throw error;
    }
  };
}

/** How many bytes of evidence the server takes. */
const maxEvidence = 4096;

/** Returns what went wrong as text that the server takes: short enough, and without control characters. */
export function evidenceOf(error: unknown): string {
  const said = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const clean = said.replace(/(?![\n\t])\p{Cc}/gu, "\ufffd");
  const bytes = new Uint8Array(maxEvidence);
  const { written } = new TextEncoder().encodeInto(clean, bytes); // whole characters only
  return new TextDecoder().decode(bytes.subarray(0, written));
}
