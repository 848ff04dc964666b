import type { ClaimedTask, FrictionOutcome, FrictionReport, WorkReport } from "../api.js";
import type { AgentClient, Sendable, SendOptions } from "../client/agent.js";
import type { FrictionService } from "../client/friction.js";
import type { TaskSnapshot } from "../client/tasks.js";
import { decodeMessage, partsOf, textOf, type Content, type Message, type Part } from "../content.js";
import { ParleyError } from "../errors.js";
import type { Lease } from "./lease.js";
import type { Trace } from "./leases.js";
import { artifactOf, messageOf, type ArtifactOptions } from "./report.js";
import { ArtifactStream } from "./stream.js";

/** Ends a run of a handler that has asked a question; see Task.ask. Do not catch it. */
export class TaskSuspendedError extends ParleyError {
  override name = "TaskSuspendedError";

  constructor() {
    super("the task waits for its sender; the handler runs again when the answer has arrived");
  }
}

/** A task that this worker has a lease for. Reports arrive in the order of the calls. */
export class Task {
  /** The platform's id; the same for every attempt. */
  readonly id: string;
  /** Groups tasks of the sender. */
  readonly contextId: string;
  /** Org, kind and id of the sender, such as acme/user:ada. */
  readonly sender: string;
  /** The sender's id of the task. */
  readonly senderTaskId: string;
  /** From 1; more than 1 if an earlier worker was lost or failed. */
  readonly attempt: number;
  /** How often the task is tried. After a failure in the last attempt it is over. */
  readonly maxAttempts: number;
  /** When the task fails and its lease ends; undefined: never. */
  readonly deadline: Date | undefined;
  /** The latest message of the sender that is not an answer to ask. */
  readonly message: Message;
  /** The whole conversation, oldest first, including message. */
  readonly history: readonly Message[];
  /** Metadata of the sender's latest request that had any. */
  readonly metadata: Readonly<Record<string, unknown>> | undefined;
  /** Media types that the sender accepts; empty: unknown. */
  readonly acceptedOutputModes: readonly string[];
  /** The trace that the task belongs to. */
  readonly trace: Trace;

  readonly #lease: Lease;
  readonly #friction: FrictionService;
  readonly #other: (id: string) => AgentClient;
  readonly #chunks = new Map<string, Part[]>(); // of growing artifacts, by id
  #questions = 0; // that ask was called for in this run

  /** @internal */
  constructor(
    claimed: ClaimedTask,
    lease: Lease,
    { friction, other }: { readonly friction: FrictionService; readonly other: (id: string) => AgentClient },
  ) {
    this.id = claimed.id;
    this.contextId = claimed.context_id;
    this.sender = claimed.sender;
    this.senderTaskId = claimed.sender_task_id;
    this.attempt = claimed.attempt;
    this.maxAttempts = claimed.max_attempts;
    this.deadline = claimed.deadline === undefined ? undefined : new Date(claimed.deadline);
    this.history = claimed.history.map(decodeMessage);
    this.message = requestOf(this.history, questionId(claimed.id, 1)) ?? decodeMessage(claimed.message);
    this.metadata = claimed.metadata ?? undefined;
    this.acceptedOutputModes = claimed.accepted_output_modes;
    this.trace = lease.trace;
    this.#lease = lease;
    this.#friction = friction;
    this.#other = other;
  }

  /** The text of message. */
  get text(): string {
    return textOf(this.message);
  }

  /**
   * Is aborted when the task was canceled, the lease was lost, or the worker is stopping. Its reason says
   * which: a TaskCanceledError, a LeaseLostError or a WorkerStoppingError.
   */
  get signal(): AbortSignal {
    return this.#lease.signal;
  }

  /**
   * Sends a task to another agent, of this agent's org or a public one, as part of this task, and waits for
   * it to rest, by default for a minute. The server refuses calls that go too deep: agents that call each
   * other in a loop come to an end. The key needs the scope svc:a2a:write.
   */
  call(agent: string, message: Sendable, options: SendOptions & { waitSeconds?: number } = {}): Promise<TaskSnapshot> {
    return this.#other(agent).send(message, { waitSeconds: 60, signal: this.signal, ...options, parent: this.id });
  }

  /** Tells the sender how the work proceeds. */
  progress(content: Content): Promise<void> {
    return this.#report({ status: "working", message: messageOf(content) });
  }

  /** Delivers an output. It replaces an earlier one with the same id; append adds to it. */
  artifact(content: Content, options: ArtifactOptions & { id?: string; lastChunk?: boolean } = {}): Promise<void> {
    const parts = partsOf(content);
    if (options.id !== undefined) this.#chunks.set(options.id, parts);
    return this.#report({ artifacts: [artifactOf(parts, options)] });
  }

  /**
   * Delivers a further chunk of an output: it is added to those of earlier calls in this run of the
   * handler. The first chunk restarts the artifact, so that a second attempt does not continue the text of
   * a lost one.
   */
  append(id: string, content: Content, options: ArtifactOptions & { lastChunk?: boolean } = {}): Promise<void> {
    const parts = partsOf(content);
    const earlier = this.#chunks.get(id);
    this.#chunks.set(id, [...(earlier ?? []), ...parts]);
    return this.#lease.report(
      false,
      (unsure) => {
        // Appending again could duplicate the chunk; send the whole artifact instead.
        const whole = unsure && earlier !== undefined;
        const chunk = artifactOf(whole ? [...earlier, ...parts] : parts, { ...options, id });
        if (earlier !== undefined && !whole) chunk.append = true;
        return { artifacts: [chunk] };
      },
      this.signal,
    );
  }

  /** Returns an artifact that grows as it is written to. */
  stream(id: string, options: ArtifactOptions = {}): ArtifactStream {
    return new ArtifactStream((parts, lastChunk) => this.append(id, parts, { ...options, lastChunk }));
  }

  /** Completes the task. The content, if any, becomes its last artifact, and message its last status message. */
  complete(content?: Content, { message, ...options }: ArtifactOptions & { message?: Content } = {}): Promise<void> {
    const report: WorkReport = { status: "completed" };
    if (content !== undefined) report.artifacts = [artifactOf(partsOf(content), options)];
    if (message !== undefined) report.message = messageOf(message);
    return this.#end(report);
  }

  /**
   * Completes the task with a message as the whole result. A client of A2A that waits for the task gets
   * the message instead of the task.
   */
  reply(content: Content): Promise<void> {
    return this.#end({ status: "completed", message: messageOf(content), reply: true });
  }

  /** Ends the task as failed. */
  fail(reason: Content): Promise<void> {
    return this.#end({ status: "failed", message: messageOf(reason) });
  }

  /** Ends the task as rejected: the agent does not do such tasks. */
  reject(reason: Content): Promise<void> {
    return this.#end({ status: "rejected", message: messageOf(reason) });
  }

  /**
   * Asks the sender a question and returns the answer.
   *
   * The task waits without a worker. When the answer has arrived, the handler runs again from its
   * beginning with the same message, maybe in another process, and the same call returns the answer at
   * once. So ask before side effects, and do not catch the TaskSuspendedError that ends the first run.
   * Several questions are told apart by their order.
   */
  async ask(question: Content): Promise<Message> {
    const messageId = questionId(this.id, ++this.#questions);
    const answer = this.#answerTo(messageId);
    if (answer) return answer;
    await this.#end({ status: "input-required", message: { ...messageOf(question), messageId } });
    throw new TaskSuspendedError();
  }

  /** Asks the sender for input and ends this run of the handler. It runs again when the input has arrived. */
  requireInput(question: Content): Promise<void> {
    return this.#end({ status: "input-required", message: messageOf(question) });
  }

  /** Tells the sender which authorization the agent needs, and ends this run of the handler like requireInput. */
  requireAuth(what: Content): Promise<void> {
    return this.#end({ status: "auth-required", message: messageOf(what) });
  }

  /** Iterates over further messages that the sender sends while the handler runs. */
  async *turns(): AsyncGenerator<Message, void, undefined> {
    yield* this.#lease.turns;
  }

  /**
   * Reports what got in the agent's way; see FrictionService.report. The task is the occurrence, unless
   * the report has one: a second attempt of the same task counts once.
   */
  friction(report: FrictionReport): Promise<FrictionOutcome> {
    return this.#friction.report({ occurrence: this.id, ...report });
  }

  /** Returns the first message of the sender after a question, if it was asked. */
  #answerTo(messageId: string): Message | undefined {
    const asked = this.history.findIndex((message) => message.messageId === messageId);
    return asked < 0 ? undefined : this.history.find(({ role }, i) => i > asked && role === "user");
  }

  #report(report: WorkReport): Promise<void> {
    return this.#lease.report(false, () => report, this.signal);
  }

  #end(report: WorkReport): Promise<void> {
    return this.#lease.report(true, () => report, this.signal);
  }
}

/** Returns the id of the message that asks a question; the same in each run of the handler. */
function questionId(task: string, number: number): string {
  return `${task}-question-${String(number)}`;
}

/** Returns the sender's latest message before the first question, if it was asked. */
function requestOf(history: readonly Message[], firstQuestion: string): Message | undefined {
  const asked = history.findIndex(({ messageId }) => messageId === firstQuestion);
  return history.slice(0, Math.max(0, asked)).findLast(({ role }) => role === "user");
}
