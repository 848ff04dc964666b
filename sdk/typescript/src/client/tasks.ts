import {
  decodeMessage,
  decodePart,
  textOf,
  type Message,
  type Part,
  type WireMessage,
  type WirePart,
} from "../content.js";

/** The state of a task. */
export type TaskState =
  "submitted" | "working" | "input-required" | "auth-required" | "completed" | "failed" | "rejected" | "canceled";

/** An output of a task. */
export interface Artifact {
  artifactId: string;
  name?: string | undefined;
  description?: string | undefined;
  parts: Part[];
  metadata?: Record<string, unknown> | undefined;
}

/** The state of a task, since when, and the agent's message about it. */
export interface TaskStatus {
  state: TaskState;
  timestamp?: string | undefined;
  message?: Message | undefined;
}

/** A task as its sender sees it, at one time. */
export interface TaskSnapshot {
  /** The sender's id of the task. */
  id: string;
  /** Groups tasks. */
  contextId: string;
  status: TaskStatus;
  artifacts: Artifact[];
  history: Message[];
  metadata?: Record<string, unknown> | undefined;
}

/** A change of a task: a new status, or a new or growing artifact. */
export interface TaskEvent {
  /** Number of the event; see AgentClient.subscribe. */
  id: string;
  taskId: string;
  contextId: string | undefined;
  status: TaskStatus | undefined;
  artifact: Artifact | undefined;
  /** The artifact's parts are added to those of earlier events. */
  append: boolean;
  /** The artifact is complete. */
  lastChunk: boolean;
  /** The task is over or waits for its sender, and the stream ends here. */
  final: boolean;
}

/** Reports whether a task in this state is over. */
export function isTerminal(state: TaskState): boolean {
  return state === "completed" || state === "failed" || state === "rejected" || state === "canceled";
}

/** Returns the text of a task's artifacts, one per line. */
export function resultOf(task: Pick<TaskSnapshot, "artifacts">): string {
  return task.artifacts.map((artifact) => textOf(artifact, "")).join("\n");
}

interface WireStatus {
  state: string;
  timestamp?: string;
  message?: WireMessage | null;
}

interface WireArtifact {
  artifactId: string;
  name?: string;
  description?: string;
  metadata?: Record<string, unknown>;
  parts?: WirePart[];
  append?: boolean;
  lastChunk?: boolean;
}

/** A task as the server sends it, in any version of A2A. */
export interface WireTask {
  id: string;
  contextId: string;
  status: WireStatus;
  artifacts?: WireArtifact[] | null;
  history?: WireMessage[] | null;
  metadata?: Record<string, unknown>;
}

/** An event in the form of the specification's dialect. */
export interface WireEvent {
  id: string;
  contextId?: string;
  status?: WireStatus;
  artifact?: WireArtifact;
  append?: boolean;
  lastChunk?: boolean;
  final?: boolean;
}

export function decodeTask(wire: WireTask): TaskSnapshot {
  return {
    id: wire.id,
    contextId: wire.contextId,
    status: decodeStatus(wire.status),
    artifacts: (wire.artifacts ?? []).map(decodeArtifact),
    history: (wire.history ?? []).map(decodeMessage),
    metadata: wire.metadata,
  };
}

export function decodeEvent(id: string, wire: WireEvent): TaskEvent {
  const { artifact } = wire;
  return {
    id,
    taskId: wire.id,
    contextId: wire.contextId,
    status: wire.status && decodeStatus(wire.status),
    artifact: artifact && decodeArtifact(artifact),
    append: wire.append ?? artifact?.append ?? false,
    lastChunk: wire.lastChunk ?? artifact?.lastChunk ?? false,
    final: wire.final ?? false,
  };
}

function decodeStatus({ state, timestamp, message }: WireStatus): TaskStatus {
  return { state: decodeState(state), timestamp, message: message ? decodeMessage(message) : undefined };
}

/** Version 1.0 of A2A spells working TASK_STATE_WORKING. */
function decodeState(state: string): TaskState {
  return state.replace("TASK_STATE_", "").replaceAll("_", "-").toLowerCase() as TaskState;
}

export function encodeState(state: TaskState): string {
  return `TASK_STATE_${state.replaceAll("-", "_").toUpperCase()}`;
}

function decodeArtifact({ artifactId, name, description, metadata, parts }: WireArtifact): Artifact {
  return { artifactId, name, description, metadata, parts: (parts ?? []).map(decodePart) };
}
