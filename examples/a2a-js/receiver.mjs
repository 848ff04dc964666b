// Receives pushes, and believes none that the server did not sign.
//
//   PARLEY_SERVER=http://127.0.0.1:8080 PUSH_TOKEN=… node receiver.mjs 9099

import { createPublicKey, verify } from 'node:crypto';
import { createServer } from 'node:http';

const { keys } = await (await fetch(`${process.env.PARLEY_SERVER}/.well-known/jwks.json`)).json();
const key = createPublicKey({ key: keys.find((k) => k.crv === 'Ed25519'), format: 'jwk' });

function genuine(headers, body) {
  const age = Math.abs(Date.now() / 1000 - headers['webhook-timestamp']);
  const signed = Buffer.concat([Buffer.from(`${headers['webhook-id']}.${headers['webhook-timestamp']}.`), body]);
  const signatures = (headers['webhook-signature'] ?? '').split(' ').filter((s) => s.startsWith('v1a,'));
  return age < 300 && headers['x-a2a-notification-token'] === process.env.PUSH_TOKEN &&
    signatures.some((s) => verify(null, signed, key, Buffer.from(s.slice('v1a,'.length), 'base64')));
}

const server = createServer((req, res) => {
  const chunks = [];
  req.on('data', (chunk) => chunks.push(chunk));
  req.on('end', () => {
    const body = Buffer.concat(chunks);
    const good = genuine(req.headers, body);
    res.writeHead(good ? 204 : 401).end();
    console.log(good ? `push ${req.headers['webhook-id']}: ${body}` : 'a push that the server did not sign');
  });
});
server.listen(Number(process.argv[2] ?? 0), '127.0.0.1', () => {
  console.log(`receiving at http://127.0.0.1:${server.address().port}/`);
});
