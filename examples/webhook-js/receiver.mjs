// Receives the events of a webhook and prints them.
//
//   npm install standardwebhooks
//   WEBHOOK_SECRET=whsec_… node receiver.mjs 9010

import { createServer } from 'node:http';
import { Webhook } from 'standardwebhooks';

const verifier = new Webhook(process.env.WEBHOOK_SECRET);
const seen = new Set(); // a real receiver keeps the ids in its database

const server = createServer(async (req, res) => {
  const chunks = [];
  for await (const chunk of req) chunks.push(chunk);
  let event;
  try {
    event = verifier.verify(Buffer.concat(chunks).toString(), req.headers);
  } catch {
    res.writeHead(401).end('the signature is wrong\n');
    return;
  }
  if (!seen.has(req.headers['webhook-id'])) {
    seen.add(req.headers['webhook-id']);
    console.log(event.type, event.subject, event.actor);
  }
  res.writeHead(204).end();
});
server.listen(Number(process.argv[2]), '127.0.0.1', () => {
  console.log(`receiving at http://127.0.0.1:${server.address().port}/`);
});
