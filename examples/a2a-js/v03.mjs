// Calls an agent with version 0.3 of the official JavaScript SDK.
//
//   npm install @a2a-js/sdk@0.3.14
//   PARLEY_KEY=… node v03.mjs http://127.0.0.1:8080/a2a/echo Hello

import { randomUUID } from 'node:crypto';
import { A2AClient, createAuthenticatingFetchWithRetry } from '@a2a-js/sdk/client';

const [address, text] = process.argv.slice(2);

const fetchImpl = createAuthenticatingFetchWithRetry(fetch, {
  headers: async () => ({ Authorization: `Bearer ${process.env.PARLEY_KEY}` }),
  shouldRetryWithHeaders: async () => undefined,
});
const client = await A2AClient.fromCardUrl(`${address}/.well-known/agent-card.json`, { fetchImpl });

const message = { kind: 'message', messageId: randomUUID(), role: 'user', parts: [{ kind: 'text', text }] };
for await (const event of client.sendMessageStream({ message })) {
  if (event.kind === 'artifact-update') {
    for (const part of event.artifact.parts) console.log(part.text);
  } else if (event.kind === 'status-update') {
    console.error(event.status.state);
  }
}
