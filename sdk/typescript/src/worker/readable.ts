import { decodeMessage, type Message, type WireMessage } from "../content.js";
import type { Logger } from "./logger.js";

/** Decodes messages. One that cannot be read is logged and left out, so that it does not affect the others. */
export function decodeReadable(wire: readonly WireMessage[], logger: Logger, details: object): Message[] {
  return wire.flatMap((message) => {
    try {
      return [decodeMessage(message)];
    } catch (error) {
      logger.error("dropped a message that cannot be read", { ...details, error });
      return [];
    }
  });
}
