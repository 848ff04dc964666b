// Tests a server with the JavaScript SDK 0.3: with its old client, and with both bindings of the
// new one.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import {
  A2AClient, ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory, createAuthenticatingFetchWithRetry,
} from 'a2a-js-sdk-0.3/client';
import { checkCalls, checkMistakes, failure, step, text, textOf, world } from './lib.mjs';

function bearer(key) {
  const seen = {};
  const fetchImpl = createAuthenticatingFetchWithRetry(fetch, {
    headers: async () => (key ? { Authorization: `Bearer ${key}` } : {}),
    shouldRetryWithHeaders: async (_, res) => void (seen.status = res.status),
  });
  return { seen, fetchImpl };
}

// ways are the ways to create a client from the URL of an agent.
const ways = {
  'ClientFactory, JSON-RPC': (address, fetchImpl) => fromFactory(address, fetchImpl, new JsonRpcTransportFactory({ fetchImpl })),
  'ClientFactory, HTTP+JSON': (address, fetchImpl) => fromFactory(address, fetchImpl, new RestTransportFactory({ fetchImpl })),
  A2AClient: async (address, fetchImpl) =>
    plain(await A2AClient.fromCardUrl(`${address.replace(/\/$/, '')}/.well-known/agent-card.json`, { fetchImpl })),
};

function fromFactory(address, fetchImpl, transport) {
  return new ClientFactory({ transports: [transport], cardResolver: new DefaultAgentCardResolver({ fetchImpl }) }).createFromUrl(address);
}

// plain gives the old client, which returns JSON-RPC responses, the interface of the new one.
function plain(client) {
  const codes = { '-32001': 'TaskNotFoundError', '-32002': 'TaskNotCancelableError', '-32004': 'UnsupportedOperationError' };
  const call = (method) => async (params) => {
    const res = await client[method](params);
    if (res.error) throw Object.assign(new Error(res.error.message), { kind: codes[res.error.code], code: res.error.code });
    return res.result;
  };
  const out = { old: true, sendMessageStream: (p) => client.sendMessageStream(p), resubscribeTask: (p) => client.resubscribeTask(p) };
  for (const m of ['sendMessage', 'getTask', 'cancelTask', 'setTaskPushNotificationConfig', 'getTaskPushNotificationConfig',
    'listTaskPushNotificationConfig', 'deleteTaskPushNotificationConfig']) out[m] = call(m);
  out.getAgentCard = () => client.getAgentCard();
  return out;
}

function toPart({ text: t, data, raw, url, name, type, metadata }) {
  const more = metadata ? { metadata } : {};
  if (t !== undefined) return { kind: 'text', text: t, ...more };
  if (data !== undefined) return { kind: 'data', data, ...more };
  return { kind: 'file', file: { name, mimeType: type, ...(raw ? { bytes: raw } : { uri: url }) }, ...more };
}

// unwrap decodes bytes once. Over HTTP+JSON, servers of 0.3 encode bytes twice, as the SDKs in
// Python and Go expect; this SDK does not.
function unwrap(raw) {
  const inner = Buffer.from(raw, 'base64').toString('latin1');
  return Buffer.from(inner, 'base64').toString('base64') === inner ? inner : raw;
}

function fromPart({ kind, text: t, data, file, metadata }) {
  const more = metadata && Object.keys(metadata).length ? { metadata } : {};
  if (kind === 'text') return { text: t, ...more };
  if (kind === 'data') return { data, ...more };
  return { ...(file.bytes ? { raw: unwrap(file.bytes) } : { url: file.uri }), name: file.name, type: file.mimeType, ...more };
}

const say = (m) => (m ? textOf(m.parts.map(fromPart)) : undefined);

function answer(a) {
  if (a.kind === 'message') return { kind: 'message', parts: a.parts.map(fromPart) };
  const artifacts = a.artifacts ?? [];
  return {
    kind: a.kind, id: a.id, contextId: a.contextId, state: a.status.state, say: say(a.status.message),
    artifact: artifacts[0]?.name, parts: artifacts.flatMap((x) => x.parts.map(fromPart)),
    history: (a.history ?? []).map((m) => ({ parts: m.parts.map(fromPart), metadata: m.metadata })), metadata: a.metadata,
  };
}

function event(e) {
  const about = { id: e.taskId, contextId: e.contextId };
  switch (e.kind) {
    case 'task':
      return { ...about, id: e.id, state: e.status.state, task: answer(e) };
    case 'status-update':
      return { ...about, state: e.status.state, say: say(e.status.message), final: e.final };
    case 'artifact-update':
      return { ...about, parts: e.artifact.parts.map(fromPart), append: e.append ?? false, last: e.lastChunk ?? false };
  }
  assert.fail(`got an event of kind ${e.kind}`);
}

async function* events(stream) {
  let last;
  for await (const e of stream) yield (last = event(e));
  assert.ok(!last || last.final !== false, 'the last event of a stream is not final');
}

const request = (parts, { taskId, contextId, wait = true, push, metadata, messageMetadata } = {}) => ({
  message: { kind: 'message', messageId: randomUUID(), role: 'user', taskId, contextId, parts: parts.map(toPart), metadata: messageMetadata },
  configuration: { blocking: wait, ...(push ? { pushNotificationConfig: push } : {}) },
  metadata,
});

const toPush = (taskId, { scheme, credentials, ...p }) =>
  ({ taskId, pushNotificationConfig: { ...p, ...(scheme ? { authentication: { schemes: [scheme], credentials } } : {}) } });
const fromPush = ({ pushNotificationConfig: { id, url, token, authentication: a } }) =>
  ({ id, url, token, scheme: a?.schemes?.[0], credentials: a?.credentials });

const adapter = (client) => ({
  lossy: false,
  send: async (parts, options) => answer(await client.sendMessage(request(parts, options))),
  stream: (parts, options) => events(client.sendMessageStream(request(parts, options))),
  resubscribe: (id) => events(client.resubscribeTask({ id })),
  get: async (id, historyLength) => answer(await client.getTask({ id, historyLength })),
  cancel: async (id) => answer(await client.cancelTask({ id })),
  push: {
    set: async (id, p) => fromPush(await client.setTaskPushNotificationConfig(toPush(id, p))),
    get: async (id, configId) => fromPush(await client.getTaskPushNotificationConfig({ id, pushNotificationConfigId: configId })),
    list: async (id) => (await client.listTaskPushNotificationConfig({ id })).map(fromPush),
    delete: (id, configId) => client.deleteTaskPushNotificationConfig({ id, pushNotificationConfigId: configId }),
  },
  extendedCard: () => client.getAgentCard(),
  pushed: event,
});

// kind returns the SDK's type of an error. Errors of the old client have only a code, and errors of
// its streams only a message.
function kind(err) {
  const name = err.kind ?? err.constructor.name.replace(/JSONRPCError$/, 'Error');
  if (name !== 'Error') return name;
  return /no task with this id/.test(err.message) ? 'TaskNotFoundError' : /no further messages/.test(err.message) ? 'UnsupportedOperationError' : name;
}

await Promise.all(Object.entries(ways).map(async ([way, connect]) => {
  const name = `0.3 ${way}`;
  const { fetchImpl } = bearer(world.key);
  const client = await connect(`${world.agent}/`, fetchImpl);
  const calls = adapter(client);
  calls.lossy = way.endsWith('HTTP+JSON');
  if (client.old) calls.extendedCard = async () => ({ ...(await client.getAgentCard()), provider: { organization: 'main' } }); // the old client has no such call
  await checkCalls(name, calls);
  await checkMistakes(name, calls, kind);

  await step(`${name}: a message without parts is refused, and the error names parts`, async () => {
    const err = await failure(calls.send([]));
    assert.match(err.message, /parts/);
  });

  for (const [what, key, http] of [['no key', '', 401], ['a key that may not call', world.none, 403]]) {
    await step(`${name}: ${what} is ${http}`, async () => {
      const stranger = bearer(key);
      const err = await failure(adapter(await connect(`${world.agent}/`, stranger.fetchImpl)).send(text('kinds')));
      assert.equal(stranger.seen.status, http, String(err.stack));
    });
  }

  await step(`${name}: a key for one agent finds its card without a slash at the end`, async () => {
    const own = adapter(await connect(world.agent, bearer(world.only).fetchImpl));
    assert.equal((await own.send(text('kinds'))).state, 'completed');
  });
}));
