import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { it } from "node:test";
import { promisify } from "node:util";
import { Server, startWorker } from "./server.js";

const root = new URL("..", import.meta.url).pathname;

/** A program for Deno. */
const script = `
import { Client, resultOf } from "file://${root}dist/client/index.js";

const client = new Client({ url: Deno.args[0], key: Deno.args[1] });
const agent = client.agent("echo-js");
let id = "";
for await (const event of agent.stream("from Deno")) id = event.taskId;
console.log(resultOf(await agent.get(id)));
const { org } = await client.me();
console.log(org);
`;

const deno = process.env["DENO"] ?? "";
const skip = deno === "" && "DENO names no program; 'go test' installs it";

it("the client runs in Deno", { skip }, async (t) => {
  const server = await Server.start(t);
  startWorker(t, { url: server.url, key: await server.agent("echo-js"), agent: "echo-js" }, (task) => task.text);
  const running = promisify(execFile)(deno, ["run", "--no-config", "--allow-net", "-", server.url, server.key], {
    env: { ...process.env, NO_COLOR: "1" },
  });
  running.child.stdin?.end(script);
  const { stdout } = await running;
  assert.equal(stdout, "from Deno\nmain\n");
});
