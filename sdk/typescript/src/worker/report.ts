import type { WorkerArtifact, WorkerMessage } from "../api.js";
import { encodePart, partsOf, type Content, type Part } from "../content.js";

/** Options of an artifact. */
export interface ArtifactOptions {
  /** Name. */
  name?: string | undefined;
  /** Description. */
  description?: string | undefined;
  /** Type; default: the kind of its first part. */
  type?: string | undefined;
  /** Arbitrary metadata. */
  metadata?: Record<string, unknown> | undefined;
}

/** Returns an artifact in the form of a report. */
export function artifactOf(
  parts: readonly Part[],
  { id, lastChunk, ...rest }: ArtifactOptions & { id?: string; lastChunk?: boolean } = {},
): WorkerArtifact {
  return {
    ...(rest as Partial<WorkerArtifact>),
    parts: parts.map(encodePart) as WorkerArtifact["parts"],
    ...(id === undefined ? {} : { artifact_id: id }),
    ...(lastChunk === true ? { last_chunk: true } : {}),
  };
}

/** Returns a message of the agent in the form of a report. */
export function messageOf(content: Content): WorkerMessage {
  return { parts: partsOf(content).map(encodePart) as WorkerMessage["parts"] };
}
