/** Gets the worker's log. The console is one. */
export interface Logger {
  debug(message: string, details?: object): void;
  info(message: string, details?: object): void;
  warn(message: string, details?: object): void;
  error(message: string, details?: object): void;
}

/** The default: the console, without debug messages. */
export const consoleLogger: Logger = {
  debug: () => undefined,
  info: (message, details) => {
    console.info(message, details ?? "");
  },
  warn: (message, details) => {
    console.warn(message, details ?? "");
  },
  error: (message, details) => {
    console.error(message, details ?? "");
  },
};
