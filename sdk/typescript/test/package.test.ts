import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { promisify } from "node:util";
import { resultOf } from "@parley/sdk";
import { Server } from "./server.js";

const root = new URL("..", import.meta.url).pathname;
const run = promisify(execFile);

/** A program that uses the types of the package, with strict options. */
const typed = `
import { Client, Worker, type Task } from "@parley/sdk";
import { aiHandler } from "@parley/sdk/ai";
export const worker: Worker = new Worker({ url: "http://x", key: "k", agent: "a" }, (task: Task) => task.text);
export const vote = (c: Client): Promise<number> => c.proposals.vote("p", { vote: "for" }).then((v) => v.votes_for);
export const handler = aiHandler(() => ({ fullStream: (async function* () {})() }));
// @ts-expect-error: a vote is for or against
export const wrong = (c: Client) => c.proposals.vote("p", { vote: "maybe" });
`;

it("is packed, installed in a clean folder, and runs the first worker of the README", async (t) => {
  const dir = await mkdtemp(join(tmpdir(), "parley-pack-"));
  t.after(() => rm(dir, { recursive: true, force: true }));
  await run("npm", ["pack", "--ignore-scripts", "--pack-destination", dir], { cwd: root });
  const [tarball = ""] = await readdir(dir);
  assert.match(tarball, /^parley-sdk-.*\.tgz$/);
  await writeFile(join(dir, "package.json"), '{"private": true, "type": "module"}');
  await run("npm", ["install", "--offline", "--no-audit", "--no-fund", `./${tarball}`], { cwd: dir });
  const { dependencies } = JSON.parse(await readFile(join(dir, "node_modules/@parley/sdk/package.json"), "utf8")) as {
    dependencies?: object;
  };
  assert.equal(dependencies, undefined);

  await writeFile(join(dir, "typed.ts"), typed);
  const options = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2022", "--lib", "es2023,dom"];
  const types = ["--typeRoots", join(root, "node_modules/@types"), "--types", "node"];
  await run(join(root, "node_modules/.bin/tsc"), [...options, ...types, "typed.ts"], { cwd: dir });

  const readme = await readFile(join(dir, "node_modules/@parley/sdk/README.md"), "utf8");
  const script = /## A first worker\n[^]*?```js\n([^]*?)```/.exec(readme)?.[1] ?? "";
  assert.ok(script.trim().split("\n").length <= 10, "the first worker has more than ten lines");
  await writeFile(join(dir, "worker.mjs"), script);
  const server = await Server.start(t);
  const env = { ...process.env, PARLEY_SERVER: server.url, PARLEY_KEY: await server.agent("scout") };
  const worker = spawn(process.execPath, ["worker.mjs"], { cwd: dir, env, stdio: "ignore" });
  t.after(() => worker.kill("SIGKILL"));
  const agent = server.client.agent("scout");
  const states: string[] = [];
  let id = "";
  for await (const event of agent.stream("Hello")) {
    id = event.taskId;
    states.push(event.status?.state ?? "");
  }
  assert.equal(states.at(-1), "completed");
  assert.equal(resultOf(await agent.get(id)), "You said: Hello");
});
