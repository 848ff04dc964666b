export * from "./client/index.js";
export type { Handler, HandlerResult } from "./worker/handler.js";
export type { Trace } from "./worker/leases.js";
export type { Logger } from "./worker/logger.js";
export type { DirectMessage } from "./worker/mailbox.js";
export type { ArtifactOptions } from "./worker/report.js";
export type { ArtifactStream } from "./worker/stream.js";
export { Task, TaskSuspendedError } from "./worker/task.js";
export { Worker, type RunOptions, type WorkerOptions } from "./worker/worker.js";
