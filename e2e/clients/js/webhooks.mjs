// A receiver that verifies pushes with the Standard Webhooks library for JavaScript. The token of
// the push config is a secret in the format of the library.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { Webhook, WebhookVerificationError } from 'standardwebhooks';

import { step, world } from './lib.mjs';

const secret = `whsec_${randomBytes(24).toString('base64')}`;
const verifier = new Webhook(secret);

const pushes = [];
const receiver = createServer(async (req, res) => {
  const chunks = [];
  for await (const chunk of req) chunks.push(chunk);
  pushes.push({ headers: req.headers, body: Buffer.concat(chunks).toString() });
  res.writeHead(204).end();
  receiver.emit('push');
});
receiver.listen(0, '127.0.0.1');
await once(receiver, 'listening');
const url = `http://127.0.0.1:${receiver.address().port}/`;

async function send(method, params) {
  const res = await fetch(world.agent, {
    method: 'POST',
    headers: { Authorization: `Bearer ${world.key}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  });
  const { result, error } = await res.json();
  assert.equal(error, undefined);
  return result;
}

async function verified(configuration, method, role) {
  pushes.length = 0;
  const next = once(receiver, 'push');
  await send(method, { message: { messageId: 'm', role, parts: [{ text: 'echo hello' }] }, configuration });
  await next;
  const { headers, body } = pushes[0];
  assert.deepEqual(verifier.verify(body, headers), JSON.parse(body));
  assert.throws(() => verifier.verify(`${body} `, headers), WebhookVerificationError);
  assert.throws(() => new Webhook(`whsec_${randomBytes(24).toString('base64')}`).verify(body, headers), WebhookVerificationError);
}

await step('standardwebhooks verifies a push of 1.0', () =>
  verified({ taskPushNotificationConfig: { url, token: secret } }, 'SendMessage', 'ROLE_USER'));
await step('standardwebhooks verifies a push of 0.3', () =>
  verified({ pushNotificationConfig: { url, token: secret } }, 'message/send', 'user'));
receiver.close();
receiver.closeAllConnections();
