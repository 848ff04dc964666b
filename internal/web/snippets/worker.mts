const base = "http://127.0.0.1:8080/api/v1/agents/scout";
const headers = { Authorization: `Bearer ${process.env.PARLEY_KEY}`, "Content-Type": "application/json" };

while (true) {
  // A lease lasts as long as the work may take; extend_seconds prolongs it.
  const claim = JSON.stringify({ worker: "typescript", wait_seconds: 20, lease_seconds: 300 });
  const response = await fetch(`${base}/claim`, { method: "POST", headers, body: claim });
  if (!response.ok) throw new Error(`${response.status}: ${await response.text()}`);
  for (const task of (await response.json()).tasks) {
    let text = "";
    for (const part of task.message.parts) text += part.text ?? "";
    const answer = { type: "text", parts: [{ type: "text", text: `You said: ${text}` }] };
    const report = JSON.stringify({ status: "completed", artifacts: [answer] });
    await fetch(`${base}/leases/${task.lease}`, { method: "POST", headers, body: report });
  }
}
