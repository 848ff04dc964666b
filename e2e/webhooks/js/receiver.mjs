// Receives recorded deliveries of webhooks, one JSON object per line of standard input:
//
//   {"format", "secret" or "public_key", "headers", "body"}
//
// and prints for each {"event": what the library parsed} or {"error": why it was refused}.

import { createPublicKey, verify } from 'node:crypto';
import { createInterface } from 'node:readline';
import { HTTP } from 'cloudevents';
import { Webhook, WebhookVerificationError } from 'standardwebhooks';

// verifyAsymmetric verifies a v1a signature. The library has only v1.
function verifyAsymmetric(publicKey, headers, body) {
  const x = Buffer.from(publicKey.replace(/^whpk_/, ''), 'base64').toString('base64url');
  const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' });
  const signed = Buffer.from(`${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`);
  const signature = headers['webhook-signature'].split(' ').find((s) => s.startsWith('v1a,'));
  if (!signature || !verify(null, signed, key, Buffer.from(signature.slice('v1a,'.length), 'base64'))) {
    throw new WebhookVerificationError('no valid v1a signature');
  }
}

function receive({ format, secret, public_key: publicKey, headers, body }) {
  let event;
  if (publicKey) {
    verifyAsymmetric(publicKey, headers, body);
    event = JSON.parse(body);
  } else {
    event = new Webhook(secret).verify(body, headers);
  }
  return format === 'cloudevents' ? HTTP.toEvent({ headers, body }) : event;
}

for await (const line of createInterface({ input: process.stdin })) {
  let answer;
  try {
    answer = { event: receive(JSON.parse(line)) };
  } catch (error) {
    if (!(error instanceof WebhookVerificationError)) throw error;
    answer = { error: error.message };
  }
  console.log(JSON.stringify(answer));
}
