// Shared code of the scripts: their settings, a receiver of pushes, and the checks. The checks are
// the same for all versions of the protocol. An adapter (v1.mjs, v03.mjs) gives a client of the
// SDK this interface:
//
//   send(parts, {taskId, contextId, wait, push, metadata, messageMetadata}) → result
//   stream(parts, {taskId}), resubscribe(id) → events
//   get(id, historyLength), cancel(id) → result
//   list({contextId, pageSize, pageToken}) → {answers (results), next, total}, or null
//   push: {set(id, config), get(id, configId), list(id), delete(id, configId)}
//   extendedCard() → card;  pushed(body) → event or task;  lossy: see kept
//
// A result is {kind, id, contextId, state, say, parts, artifact, history, metadata};
// an event {id, contextId, task} or {…, state, say} or {…, artifact, parts, append, last}.
// A part is {text}, {data}, {raw, name, type} or {url, name, type}, with metadata.

import assert from 'node:assert/strict';
import { createPublicKey, verify } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';

const need = (name) => process.env[name] ?? assert.fail(`${name} is not set`);

export const world = {
  base: need('PARLEY_URL'),
  agent: `${need('PARLEY_URL')}/a2a/${need('PARLEY_AGENT')}`,
  key: need('PARLEY_KEY'), // may call every agent
  only: need('PARLEY_ONLY_KEY'), // may call only this agent
  none: need('PARLEY_NONE_KEY'), // may call no agent
};

// step runs one check. If it fails, the script ends.
export async function step(what, check) {
  let timer;
  try {
    await Promise.race([
      check(),
      new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error('timeout after 60 s')), 60_000);
      }),
    ]);
    console.log(`ok      ${what}`);
  } catch (err) {
    console.log(`FAILED  ${what}: ${err?.stack ?? err}`);
    process.exit(1);
  } finally {
    clearTimeout(timer);
  }
}

// until polls until the condition is true.
async function until(condition) {
  for (;;) {
    const found = await condition();
    if (found) return found;
    await new Promise((go) => setTimeout(go, 20));
  }
}

export const text = (s) => [{ text: s }];
export const textOf = (parts) => parts.map((p) => p.text ?? '').join('');

export const noError = () => assert.fail('got no error, want one');

// failure returns the error of a promise that must fail.
export const failure = (promise) => promise.then(noError, (err) => err);

// kept returns the content of parts that a client preserves. The client of HTTP+JSON in 0.3 drops
// the names of files, the metadata of parts and the append flag of artifacts, in both directions.
const kept = (c, parts) => (c.lossy ? parts.map(({ name, metadata, ...p }) => p) : parts);

async function collect(events) {
  const all = [];
  for await (const e of events) all.push(e);
  return all;
}

// checkCalls makes every call that both versions have.
export async function checkCalls(name, c) {
  const check = (what, f) => step(`${name}: ${what}`, f);

  await check('send and wait; the task has a part of each kind', async () => {
    const done = await c.send(text('kinds'));
    assert.equal(done.kind, 'task');
    assert.equal(done.state, 'completed');
    assert.ok(done.id && done.contextId);
    assert.deepEqual(kept(c, done.parts), kept(c, [
      { text: 'plain' },
      { data: { n: 1, deep: ['x', true, null] } },
      { raw: 'AAH+/w==', name: 'small.bin', type: 'application/octet-stream' },
      { url: 'https://example.com/far.txt', name: 'far.txt', type: 'text/plain' },
    ]));
  });

  await check('the echo preserves all kinds of parts and all metadata', async () => {
    const parts = [
      { text: 'echo äöü 🎭', metadata: { lang: 'de', n: 1.5 } },
      { data: { list: [1, 'two', null, { x: false }] } },
      { raw: 'AGZpbGX/', name: 'a.bin', type: 'application/octet-stream' },
      { url: 'https://example.com/b.png', name: 'b.png', type: 'image/png' },
    ];
    const done = await c.send(parts, { metadata: { job: '17' }, messageMetadata: { trace: 'abc' } });
    assert.deepEqual(kept(c, done.parts), kept(c, parts));
    assert.equal(done.artifact, 'What you sent');
    assert.deepEqual(done.metadata, { job: '17' });
    assert.deepEqual(kept(c, done.history[0].parts), kept(c, parts));
    assert.deepEqual(done.history[0].metadata, { trace: 'abc' });
  });

  await check('send without waiting, poll, send another message', async () => {
    const { id, contextId, state } = await c.send(text('stay'), { wait: false });
    assert.ok(['submitted', 'working'].includes(state), state);
    await until(async () => (await c.get(id)).say === 'on it');
    const done = await c.send(text('finish'), { taskId: id, contextId });
    assert.equal(done.id, id);
    assert.equal(textOf(done.parts), 'Told to finish');
  });

  await check('stream to the end', async () => {
    const events = await collect(c.stream(text('chunks')));
    assert.ok(events[0].task, 'the first event is not the task');
    assert.ok(events.every((e) => e.id === events[0].id && e.contextId === events[0].contextId));
    const pieces = events.filter((e) => e.parts);
    assert.deepEqual(pieces.map((e) => [textOf(e.parts), c.lossy || e.append, e.last]), [
      ['one ', c.lossy, false], ['two ', true, false], ['three', true, true],
    ]);
    assert.equal(events.at(-1).state, 'completed');
    assert.equal(textOf((await c.get(events[0].id)).parts), 'one two three');
  });

  await check('resubscribe after a broken stream', async () => {
    let id, contextId;
    for await (const e of c.stream(text('stay'))) {
      ({ id, contextId } = e);
      if (e.say === 'on it') break;
    }
    const events = [];
    for await (const e of c.resubscribe(id)) {
      if (events.push(e) === 1) c.send(text('finish'), { taskId: id, contextId, wait: false }).catch(() => {});
    }
    assert.equal(events.flatMap((e) => (e.parts ? textOf(e.parts) : [])).at(-1), 'Told to finish');
    assert.equal(events.at(-1).state, 'completed');
  });

  await check('input-required, a further turn, and historyLength', async () => {
    const asked = await c.send(text('ask'));
    assert.deepEqual([asked.state, asked.say], ['input-required', 'Which one?']);
    const done = await c.send(text('blue'), { taskId: asked.id, contextId: asked.contextId });
    assert.deepEqual([done.id, done.contextId, done.state, textOf(done.parts)],
      [asked.id, asked.contextId, 'completed', 'You chose blue']);
    const said = async (n) => (await c.get(asked.id, n)).history.map((m) => textOf(m.parts));
    assert.deepEqual(await said(0), []);
    assert.deepEqual(await said(1), ['blue']);
    assert.deepEqual(await said(10), ['ask', 'Which one?', 'blue']);
  });

  await check('cancel, reject, fail', async () => {
    const { id } = await c.send(text('stay'), { wait: false });
    assert.equal((await c.cancel(id)).state, 'canceled');
    const rejected = await c.send(text('reject'));
    assert.deepEqual([rejected.state, rejected.say], ['rejected', 'not my part']);
    const failed = await c.send(text('fail'));
    assert.deepEqual([failed.state, failed.say], ['failed', 'forgot the lines']);
  });

  await check('a message as the result', async () => {
    const m = await c.send(text('reply'));
    assert.deepEqual([m.kind, textOf(m.parts)], ['message', 'Hello yourself']);
  });

  if (c.list) {
    await check('list by context, page by page', async () => {
      const first = await c.send(text('kinds'));
      const second = await c.send(text('ask'), { contextId: first.contextId });
      const one = await c.list({ contextId: first.contextId, pageSize: 1 });
      assert.deepEqual([one.answers.map((a) => a.id), one.total], [[second.id], 2]);
      const two = await c.list({ contextId: first.contextId, pageSize: 1, pageToken: one.next });
      assert.deepEqual([two.answers.map((a) => a.id), two.next], [[first.id], '']);
    });
  }

  await check('push configurations', async () => {
    const { id } = await c.send(text('stay'), { wait: false });
    const config = { id: 'mine', url: 'http://127.0.0.1:9/x', token: 'a-token', scheme: 'Bearer', credentials: 'secret' };
    assert.deepEqual(await c.push.set(id, config), config);
    assert.deepEqual(await c.push.get(id, 'mine'), config);
    await c.push.set(id, { id: 'other', url: 'http://127.0.0.1:9/y' });
    assert.deepEqual((await c.push.list(id)).map((p) => p.id).sort(), ['mine', 'other']);
    await c.push.delete(id, 'mine');
    assert.deepEqual((await c.push.list(id)).map((p) => p.id), ['other']);
    await c.push.delete(id, 'other');
    await c.cancel(id);
  });

  await check('a push arrives, with its token, its credentials and a signature', async () => {
    const receiver = await newReceiver();
    try {
      const { id, contextId } = await c.send(text('stay'), { wait: false });
      await c.push.set(id, { id: 'p', url: receiver.url, token: 'a-token', scheme: 'Bearer', credentials: 'secret' });
      await c.send(text('finish'), { taskId: id, contextId });
      await receiver.end(c, id, 'a-token', 'Bearer secret');
      const sent = await c.send(text('kinds'), { push: { url: receiver.url, token: 'at-once' } });
      await receiver.end(c, sent.id, 'at-once', undefined);
    } finally {
      receiver.close();
    }
  });

  await check('the extended card', async () => {
    const card = await c.extendedCard();
    assert.deepEqual([card.name, card.provider?.organization], ['Actor', 'main']);
  });
}

// newReceiver starts a web server that receives pushes.
async function newReceiver() {
  const got = [];
  const server = createServer((req, res) => {
    const chunks = [];
    req.on('data', (b) => chunks.push(b));
    req.on('end', () => {
      got.push({ headers: req.headers, body: Buffer.concat(chunks) });
      res.writeHead(204).end();
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { keys } = await (await fetch(`${world.base}/.well-known/jwks.json`)).json();
  const key = createPublicKey({ key: keys[0], format: 'jwk' });
  return {
    url: `http://127.0.0.1:${server.address().port}/pushes`,
    close: () => server.close(),
    // end waits for the push about the task's end, and checks all pushes until then.
    end: (c, id, token, authorization) => until(() => {
      const p = got.shift();
      if (!p) return false;
      const event = c.pushed(JSON.parse(p.body.toString('utf8')));
      if (event.id !== id) return false; // of an earlier task
      const h = p.headers;
      assert.equal(h['x-a2a-notification-token'], token);
      assert.equal(h.authorization, authorization);
      const signed = Buffer.concat([Buffer.from(`${h['webhook-id']}.${h['webhook-timestamp']}.`), p.body]);
      const signature = h['webhook-signature'].split(' ').find((s) => s.startsWith('v1a,'))?.slice('v1a,'.length);
      assert.ok(signature && verify(null, signed, key, Buffer.from(signature, 'base64')), 'the signature is invalid');
      return event.state === 'completed';
    }),
  };
}

// checkMistakes checks the errors of bad calls. kind returns the SDK's type of an error.
export async function checkMistakes(name, c, kind) {
  const done = await c.send(text('kinds'));
  const more = { taskId: done.id, contextId: done.contextId };
  for (const [what, want, mistake] of [
    ['get an unknown task', 'TaskNotFoundError', () => c.get('nobody')],
    ['cancel an unknown task', 'TaskNotFoundError', () => c.cancel('nobody')],
    ['continue an unknown task', 'TaskNotFoundError', () => c.send(text('x'), { taskId: 'nobody' })],
    ['follow an unknown task', 'TaskNotFoundError', () => collect(c.resubscribe('nobody'))],
    ['cancel a finished task', 'TaskNotCancelableError', () => c.cancel(done.id)],
    ['continue a finished task', 'UnsupportedOperationError', () => c.send(text('x'), more)],
    ['stream to a finished task', 'UnsupportedOperationError', () => collect(c.stream(text('x'), more))],
  ]) {
    await step(`${name}: ${what} is a ${want}`, async () => {
      const err = await failure(mistake());
      assert.equal(kind(err), want, String(err?.stack));
    });
  }
}
