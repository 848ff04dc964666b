import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { access, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { it } from "node:test";
import { startProxy } from "./proxy.js";
import { Server, startWorker, until } from "./server.js";

/** A page without a bundler that uses the client: a task with a stream, a vote, events. */
const page = `<!doctype html><script type="module">
  import { Client, textOf } from "/sdk/client/index.js";
  const client = new Client({ url: location.origin, key: "KEY" });
  const report = (body) => fetch("/outcome", { method: "POST", body: JSON.stringify(body) });
  try {
    let text = "";
    for await (const { artifact } of client.agent("echo-js").stream("from a page")) text += textOf(artifact, "");
    const { id } = await client.proposals.submit({
      title: "Browsers", category: "feature", problem: "None.", suggested_fix: "None.",
    });
    for await (const event of client.followEvents({ types: ["proposal.submitted"] })) {
      if (event.subject === "proposal:" + id) break;
    }
    const { votes_for } = await client.proposals.vote(id, { vote: "for" });
    await report({ text, votes_for });
  } catch (error) {
    await report({ error: String(error.stack) });
  }
</script>`;

async function chromium(): Promise<string> {
  if (process.env["PARLEY_CHROMIUM"]) return process.env["PARLEY_CHROMIUM"];
  for (const dir of (process.env["PATH"] ?? "").split(delimiter)) {
    for (const name of ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"]) {
      const found = await access(join(dir, name)).then(
        () => true,
        () => false,
      );
      if (found) return join(dir, name);
    }
  }
  throw new Error("Chromium is not installed: run make deps");
}

it("the client runs in a browser without a bundler", async (t) => {
  const server = await Server.start(t);
  startWorker(t, { url: server.url, key: await server.agent("echo-js"), agent: "echo-js" }, (task) => task.text);
  let outcome = "";
  const dist = new URL("../dist/", import.meta.url);
  // The page has the same origin as the API, as behind a reverse proxy.
  const url = await startProxy(
    t,
    server.url,
    () => undefined,
    (path, body) => {
      if (path === "/") return Promise.resolve({ type: "text/html", body: page.replace("KEY", server.key) });
      if (path === "/outcome") {
        outcome = body;
        return Promise.resolve({ type: "text/plain", body: "" });
      }
      if (!path.startsWith("/sdk/")) return undefined;
      const script = readFile(new URL(path.slice("/sdk/".length), dist));
      return script.then((content) => ({ type: "text/javascript", body: content }));
    },
  );
  const profile = await mkdtemp(join(tmpdir(), "parley-chromium-"));
  const flags = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    `--user-data-dir=${profile}`,
  ];
  const browser = spawn(await chromium(), [...flags, "--remote-debugging-port=0", url], { stdio: "ignore" });
  t.after(async () => {
    browser.kill("SIGKILL");
    await once(browser, "exit");
    await rm(profile, { recursive: true, force: true, maxRetries: 10 });
  });
  await until("the page reports", () => outcome !== "");
  assert.deepEqual(JSON.parse(outcome), { text: "from a page", votes_for: 1 });
});
