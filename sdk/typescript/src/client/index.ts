// The part of the package that needs only fetch and web streams, for browsers, Deno and Node.js.
export type * as api from "../api.js";
export type { Event, Followup, FrictionOutcome, FrictionReport, Proposal, Webhook } from "../api.js";
export {
  ApiError,
  ConnectionError,
  EventsResetError,
  Fail,
  LeaseLostError,
  ParleyError,
  Reject,
  UnexpectedResponseError,
  TaskCanceledError,
  FinishedError,
  WorkerStoppingError,
  type Refusal,
} from "../errors.js";
export { data, file, fileURL, text, textOf } from "../content.js";
export type { Content, DataPart, FilePart, Message, Part, TextPart } from "../content.js";
export type { Operations } from "../operations.js";
export type { RetryOptions } from "../retry.js";
export type { ConnectionOptions, RequestOptions } from "../transport.js";
export { version } from "../version.js";
export type { AgentClient, Sendable, SendOptions, TaskListOptions, TaskPolicy } from "./agent.js";
export { Client } from "./client.js";
export type { EventPageOptions, EventsOptions, FollowEventsOptions } from "./events.js";
export { reportFriction, type FrictionOf, type FrictionReporter } from "./friction.js";
export type { Page } from "./page.js";
export { isTerminal, resultOf } from "./tasks.js";
export type { Artifact, TaskEvent, TaskSnapshot, TaskState, TaskStatus } from "./tasks.js";
export { verifyWebhook, WebhookSignatureError } from "./verify.js";
export type { VerifyOptions, WebhookEvent, WebhookHeaders } from "./verify.js";
