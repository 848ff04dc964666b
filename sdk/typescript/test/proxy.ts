import { once } from "node:events";
import { createServer, request, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";

/** What happens to a request: it is lost, its response is lost, its response is cut, or nothing. */
export type Fault = "request" | "response" | "cut" | undefined;

/** Responds to a request in place of the server; undefined leaves it to the server. */
export type Own = (path: string, body: string) => Page | Promise<Page> | undefined;

interface Page {
  /** Default: 200. */
  status?: number;
  type: string;
  body: string | Buffer;
}

/** A proxy in front of a server that loses requests and responses, and may serve pages of its own. */
export async function startProxy(
  t: TestContext,
  target: string,
  fault: (method: string, path: string, body: string) => Fault,
  own: Own = () => undefined,
): Promise<string> {
  const server = createServer((incoming, outgoing) => {
    void forward(target, incoming, outgoing, fault, own).catch(() => outgoing.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
}

async function forward(
  target: string,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  decide: (method: string, path: string, body: string) => Fault,
  own: Own,
): Promise<void> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  const body = Buffer.concat(chunks);
  const page = await own(incoming.url ?? "", body.toString());
  if (page) {
    outgoing.writeHead(page.status ?? 200, { "Content-Type": page.type }).end(page.body);
    return;
  }
  const fault = decide(incoming.method ?? "", incoming.url ?? "", body.toString());
  if (fault === "request") {
    incoming.socket.destroy();
    return;
  }
  const sent = request(new URL(incoming.url ?? "", target), {
    method: incoming.method,
    headers: incoming.headers,
    agent: false,
  });
  sent.on("error", () => incoming.socket.destroy());
  outgoing.on("close", () => sent.destroy());
  sent.on("response", (response) => {
    if (fault === "response") {
      response.resume().on("end", () => incoming.socket.destroy());
      return;
    }
    outgoing.writeHead(response.statusCode ?? 500, response.headers);
    response.on("data", (chunk: Buffer) => {
      outgoing.write(chunk);
      if (fault === "cut") setTimeout(() => incoming.socket.destroy(), 10);
    });
    response.on("end", () => outgoing.end());
    response.on("error", () => incoming.socket.destroy());
  });
  sent.end(body);
}
