import type { A2AMessage, A2APart } from "./api.js";

/** A piece of a message or an artifact. Make one with text, data, file or fileURL. */
export type Part = TextPart | DataPart | FilePart;

interface PartBase {
  /** Media type, if known. */
  mediaType?: string | undefined;
  /** Arbitrary metadata. */
  metadata?: Record<string, unknown> | undefined;
}

export interface TextPart extends PartBase {
  kind: "text";
  text: string;
}

export interface DataPart extends PartBase {
  kind: "data";
  /** Any JSON value. */
  data: unknown;
}

/** A file: its content or its URL. */
export interface FilePart extends PartBase {
  kind: "file";
  name?: string | undefined;
  bytes?: Uint8Array | undefined;
  url?: string | undefined;
}

/** One turn of a conversation. */
export interface Message {
  /** user: the sender of the task. */
  role: "user" | "agent";
  parts: Part[];
  messageId?: string | undefined;
  referenceTaskIds?: string[] | undefined;
  extensions?: string[] | undefined;
  metadata?: Record<string, unknown> | undefined;
}

/** What the methods of this package take as content: a text, a part, or several parts. */
export type Content = string | Part | readonly Part[];

/** Returns a part of text. */
export function text(value: string): TextPart {
  return { kind: "text", text: value };
}

/** Returns a part of structured data. */
export function data(value: unknown): DataPart {
  return { kind: "data", data: value };
}

/** Returns a part that holds a file. */
export function file(name: string, mediaType: string, bytes: Uint8Array): FilePart {
  return { kind: "file", name, mediaType, bytes };
}

/** Returns a part that refers to a file by its URL. */
export function fileURL(name: string, mediaType: string, url: string): FilePart {
  return { kind: "file", name, mediaType, url };
}

/** Returns the text parts of a message or an artifact, joined. */
export function textOf(content: { parts: readonly Part[] } | undefined, separator = "\n"): string {
  return (content?.parts ?? []).flatMap((part) => (part.kind === "text" ? [part.text] : [])).join(separator);
}

/** Returns content as a list of parts. */
export function partsOf(content: Content): Part[] {
  if (typeof content === "string") return [text(content)];
  return "kind" in content ? [content] : [...content];
}

/** A part as the server sends it, in any version of A2A. */
export interface WirePart extends A2APart {
  raw?: string;
  url?: string;
  filename?: string;
}

/** A message as the server sends it, in any version of A2A. */
export interface WireMessage extends Omit<A2AMessage, "role" | "parts"> {
  role?: string;
  parts?: WirePart[];
  referenceTaskIds?: string[];
  extensions?: string[];
}

/** The members that a part has in common with its encoded form. */
function common(part: { mediaType?: string | undefined; metadata?: Record<string, unknown> | undefined }): PartBase {
  return {
    ...(part.mediaType === undefined ? {} : { mediaType: part.mediaType }),
    ...(part.metadata === undefined ? {} : { metadata: part.metadata }),
  };
}

export function decodePart(wire: WirePart): Part {
  if (wire.text !== undefined) return { kind: "text", text: wire.text, ...common(wire) };
  if (wire.data !== undefined) return { kind: "data", data: wire.data, ...common(wire) };
  const content = wire.file?.bytes ?? wire.raw;
  return {
    kind: "file",
    ...common({ ...wire, mediaType: wire.file?.mimeType ?? wire.mediaType }),
    name: wire.file?.name ?? wire.filename,
    url: wire.file?.uri ?? wire.url,
    bytes: content === undefined ? undefined : fromBase64(content),
  };
}

export function decodeMessage(wire: WireMessage): Message {
  const { role, parts, ...rest } = wire;
  return {
    ...rest,
    role: role?.toLowerCase().endsWith("agent") ? "agent" : "user",
    parts: (parts ?? []).map(decodePart),
  };
}

/** Returns a part in the form of reports and of the specification's dialect. */
export function encodePart(part: Part): EncodedPart {
  switch (part.kind) {
    case "text":
      // The server refuses NUL and lone surrogates, which are not text.
      return { type: "text", text: part.text.replaceAll("\0", "").toWellFormed(), ...common(part) };
    case "data":
      return { type: "data", data: part.data, ...common(part) };
    case "file": {
      const { name, metadata, mediaType, bytes, url } = part;
      const content = bytes === undefined ? { uri: url ?? "" } : { bytes: toBase64(bytes) };
      return { type: "file", file: { name, mimeType: mediaType, ...content }, ...common({ metadata }) };
    }
  }
}

/** Returns a part in the form of version 1.0 of A2A. */
export function encodePartV1(part: Part): object {
  const { mediaType, metadata } = part;
  switch (part.kind) {
    case "text":
      return { text: part.text, mediaType, metadata };
    case "data":
      return { data: part.data, mediaType, metadata };
    case "file": {
      const content = part.bytes === undefined ? { url: part.url } : { raw: toBase64(part.bytes) };
      return { ...content, filename: part.name, mediaType, metadata };
    }
  }
}

/** A part as the SDK sends it. */
export type EncodedPart = PartBase &
  (
    | { type: "text"; text: string }
    | { type: "data"; data: unknown }
    | { type: "file"; file: { name?: string | undefined; mimeType?: string | undefined; bytes?: string; uri?: string } }
  );

export function encodeMessage(
  message: Omit<Message, "role">,
): Omit<Message, "parts" | "role"> & { parts: EncodedPart[] } {
  return { ...message, parts: message.parts.map(encodePart) };
}

function toBase64(bytes: Uint8Array): string {
  let binary = "";
  const step = 0x8000; // limits the arguments of one call
  for (let i = 0; i < bytes.length; i += step) binary += String.fromCharCode(...bytes.subarray(i, i + step));
  return btoa(binary);
}

export function fromBase64(encoded: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0));
}
