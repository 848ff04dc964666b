import { ConnectionError, UnexpectedResponseError } from "./errors.js";
import { refusalOf, type Call, type RequestOptions, type Transport } from "./transport.js";

/** A server-sent event. One without data only sets the position of the stream. */
export interface ServerSentEvent {
  id: string;
  name: string;
  data: string | undefined;
}

/**
 * How long a stream may be silent. The server sends a comment every 15 seconds, so the connection is
 * broken after three missing ones.
 */
const silenceMs = 45_000;

/** The most characters of one event: more than the server sends, and less than would fill the memory. */
const maxEventLength = 64 << 20;

/** Opens a stream and iterates over its events, over one connection. */
export async function* openStream(
  transport: Transport,
  call: Call,
  options: RequestOptions,
): AsyncGenerator<ServerSentEvent, void, undefined> {
  const controller = new AbortController();
  const abort = (): void => {
    controller.abort(options.signal?.reason);
  };
  options.signal?.throwIfAborted();
  options.signal?.addEventListener("abort", abort, { once: true });
  const watchdog = new Watchdog(() => {
    controller.abort(new DOMException(`the stream was silent for ${String(silenceMs / 1000)} s`, "TimeoutError"));
  });
  try {
    const headers = { ...call.headers, Accept: "text/event-stream, application/json;q=0.9" };
    const response = await transport.send({ ...call, headers }, { ...options, signal: controller.signal });
    if (!response.ok || !response.headers.get("Content-Type")?.startsWith("text/event-stream")) {
      throw await notStream(response);
    }
    yield* parseEvents(chunks(transport.base, response, watchdog));
  } finally {
    watchdog.stop();
    options.signal?.removeEventListener("abort", abort);
    controller.abort(); // closes the connection if the caller has enough
  }
}

async function notStream(response: Response): Promise<Error> {
  const refusal = await refusalOf(response);
  const isRefusal = !response.ok || refusal.rpcCode !== undefined;
  return isRefusal ? refusal : new UnexpectedResponseError("the response of the server is not an event stream");
}

/** Iterates over the text of a response as it arrives. */
async function* chunks(server: string, response: Response, watchdog: Watchdog): AsyncGenerator<string> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  try {
    for (;;) {
      const chunk = await reader?.read();
      if (!chunk || chunk.done) return;
      watchdog.reset();
      yield decoder.decode(chunk.value, { stream: true });
    }
  } catch (error) {
    throw new ConnectionError(server, error);
  }
}

/** Parses server-sent events. An unfinished event at the end is dropped, as the standard requires. */
export async function* parseEvents(text: AsyncIterable<string>): AsyncGenerator<ServerSentEvent, void, undefined> {
  const lines = new LineBuffer();
  let event: ServerSentEvent = { id: "", name: "", data: undefined };
  for await (const chunk of text) {
    for (const line of lines.add(chunk)) {
      if (line !== "") {
        addLine(event, line);
        continue;
      }
      if (event.data !== undefined || event.id !== "") yield event;
      event = { id: "", name: "", data: undefined };
    }
    if (lines.unfinished + (event.data?.length ?? 0) > maxEventLength) {
      throw new UnexpectedResponseError(`an event of the stream is longer than ${String(maxEventLength)} characters`);
    }
  }
}

/** Returns the object that the data of an event is. */
export function jsonOf(event: ServerSentEvent): object {
  let value: unknown;
  try {
    value = JSON.parse(event.data ?? "");
  } catch {
    // reported below
  }
  if (typeof value === "object" && value !== null) return value;
  throw new UnexpectedResponseError("an event of the stream is not a JSON object; is it from a Parley server?");
}

/** Splits text that arrives in chunks into lines. It reads each chunk once, however long a line is. */
class LineBuffer {
  /** The length of the line whose end has not arrived. */
  unfinished = 0;
  #pieces: string[] = []; // of that line
  #afterCR = false; // a line feed that follows belongs to the end of the last line

  /** Adds a chunk. It returns the lines that it ends. */
  add(chunk: string): string[] {
    if (chunk === "") return [];
    const lines = (this.#afterCR && chunk.startsWith("\n") ? chunk.slice(1) : chunk).split(/\r\n|\n|\r/);
    this.#afterCR = chunk.endsWith("\r");
    const rest = lines.pop() ?? "";
    if (lines.length > 0) {
      lines[0] = this.#pieces.join("") + (lines[0] ?? "");
      this.#pieces = [];
      this.unfinished = 0;
    }
    this.#pieces.push(rest);
    this.unfinished += rest.length;
    return lines;
  }
}

function addLine(event: ServerSentEvent, line: string): void {
  const colon = line.indexOf(":");
  const field = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
  switch (field) {
    case "id":
      event.id = value;
      break;
    case "event":
      event.name = value;
      break;
    case "data":
      event.data = event.data === undefined ? value : `${event.data}\n${value}`;
      break;
  }
}

/** Calls a function when a stream has been silent for too long. */
class Watchdog {
  readonly #bark: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(bark: () => void) {
    this.#bark = bark;
    this.reset();
  }

  reset(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(this.#bark, silenceMs);
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
