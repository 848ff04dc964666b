// Calls an agent with version 1.x of the official JavaScript SDK.
//
//   npm install @a2a-js/sdk@1.3.0
//   PARLEY_KEY=… node v1.mjs http://127.0.0.1:8080/a2a/echo Hello

import { randomUUID } from 'node:crypto';
import { SendMessageRequest, taskStateToJSON } from '@a2a-js/sdk';
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, createAuthenticatingFetchWithRetry } from '@a2a-js/sdk/client';

const [address, text] = process.argv.slice(2);

const fetchImpl = createAuthenticatingFetchWithRetry(fetch, {
  headers: async () => ({ Authorization: `Bearer ${process.env.PARLEY_KEY}` }),
  shouldRetryWithHeaders: async () => undefined,
});
const factory = new ClientFactory({
  transports: [new JsonRpcTransportFactory({ fetchImpl })],
  cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
});
const client = await factory.createFromUrl(`${address}/`); // the slash matters

const request = SendMessageRequest.fromJSON({
  message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text }] },
});
for await (const { payload } of client.sendMessageStream(request)) {
  if (payload.$case === 'artifactUpdate') {
    for (const part of payload.value.artifact.parts) console.log(part.content.value);
  } else if (payload.$case === 'statusUpdate') {
    console.error(taskStateToJSON(payload.value.status.state));
  }
}
