// Tests a server with the JavaScript SDK 1.3, over each binding of version 1.0.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import {
  CancelTaskRequest, GetTaskRequest, ListTasksRequest, SendMessageRequest, StreamResponse, SubscribeToTaskRequest,
  TaskPushNotificationConfig, taskStateToJSON, verifyAgentCardSignature,
} from '@a2a-js/sdk';
import {
  ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory, RestTransportFactory, createAuthenticatingFetchWithRetry,
} from '@a2a-js/sdk/client';
import { GrpcTransportFactory } from '@a2a-js/sdk/client/grpc';
import { InterceptingCall, credentials } from '@grpc/grpc-js';
import { checkCalls, checkMistakes, failure, step, text, textOf, world } from './lib.mjs';

const bindings = {
  'JSON-RPC': ({ fetchImpl }) => new JsonRpcTransportFactory({ fetchImpl }),
  'HTTP+JSON': ({ fetchImpl }) => new RestTransportFactory({ fetchImpl }),
  gRPC: ({ interceptors }) =>
    new GrpcTransportFactory({ grpcChannelCredentials: credentials.createInsecure(), grpcCallOptions: { interceptors } }),
};

// connect creates a client from the card at a URL. The factory has only one transport, so the card
// must offer it. seen.status is the status of the last response.
async function connect(binding, key, { address = `${world.agent}/`, version } = {}) {
  const seen = {};
  const headers = key ? { Authorization: `Bearer ${key}` } : {};
  const authorized = createAuthenticatingFetchWithRetry(fetch, {
    headers: async () => headers,
    shouldRetryWithHeaders: async (_, res) => void (seen.status = res.status),
  });
  // The client sets its own version last, so another version is set beneath it.
  const fetchImpl = (url, init) => {
    const sent = new Headers(init?.headers);
    if (version) sent.set('A2A-Version', version);
    return authorized(url, { ...init, headers: sent });
  };
  const withHeaders = (options, next) => new InterceptingCall(next(options), {
    start(metadata, listener, start) {
      for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
      if (version) metadata.set('A2A-Version', version);
      start(metadata, listener);
    },
  });
  const factory = new ClientFactory({
    transports: [bindings[binding]({ fetchImpl, interceptors: [withHeaders] })],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl: authorized }),
  });
  return { seen, client: await factory.createFromUrl(address) };
}

const toPart = ({ raw, name, type, ...p }) => ({ ...p, raw, filename: name, mediaType: type });

function fromPart({ content: { $case, value }, metadata, filename, mediaType }) {
  const part = { [$case]: $case === 'raw' ? Buffer.from(value).toString('base64') : value };
  if (metadata) part.metadata = metadata;
  return $case === 'raw' || $case === 'url' ? { ...part, name: filename, type: mediaType } : part;
}

const state = (s) => taskStateToJSON(s).replace('TASK_STATE_', '').toLowerCase().replace('_', '-');
const say = (m) => (m ? textOf(m.parts.map(fromPart)) : undefined);

function answer(a) {
  if ('messageId' in a) return { kind: 'message', parts: a.parts.map(fromPart) };
  return {
    kind: 'task', id: a.id, contextId: a.contextId, state: state(a.status.state), say: say(a.status.message),
    artifact: a.artifacts[0]?.name, parts: a.artifacts.flatMap((x) => x.parts.map(fromPart)),
    history: a.history.map((m) => ({ parts: m.parts.map(fromPart), metadata: m.metadata })), metadata: a.metadata,
  };
}

function event({ payload: { $case, value } }) {
  const about = { id: value.taskId, contextId: value.contextId };
  switch ($case) {
    case 'task':
      return { ...about, id: value.id, task: answer(value) };
    case 'statusUpdate':
      return { ...about, state: state(value.status.state), say: say(value.status.message) };
    case 'artifactUpdate':
      return { ...about, parts: value.artifact.parts.map(fromPart), append: value.append, last: value.lastChunk };
  }
  assert.fail(`got an event of type ${$case}`);
}

async function* events(stream) {
  for await (const e of stream) yield event(e);
}

function request(parts, { taskId, contextId, wait = true, push, metadata, messageMetadata } = {}) {
  return SendMessageRequest.fromJSON({
    message: { messageId: randomUUID(), role: 'ROLE_USER', taskId, contextId, parts: parts.map(toPart), metadata: messageMetadata },
    configuration: { returnImmediately: !wait, taskPushNotificationConfig: push },
    metadata,
  });
}

const toPush = (taskId, { scheme, credentials: secret, ...p }) =>
  TaskPushNotificationConfig.fromJSON({ ...p, taskId, authentication: scheme && { scheme, credentials: secret } });
const fromPush = ({ id, url, token, authentication: a }) => ({ id, url, token, scheme: a?.scheme, credentials: a?.credentials });

const adapter = (client) => ({
  lossy: false,
  send: async (parts, options) => answer(await client.sendMessage(request(parts, options))),
  stream: (parts, options) => events(client.sendMessageStream(request(parts, options))),
  resubscribe: (id) => events(client.resubscribeTask(SubscribeToTaskRequest.fromJSON({ id }))),
  get: async (id, historyLength) => answer(await client.getTask(GetTaskRequest.fromJSON({ id, historyLength }))),
  cancel: async (id) => answer(await client.cancelTask(CancelTaskRequest.fromJSON({ id }))),
  list: async (query) => {
    const page = await client.listTasks(ListTasksRequest.fromJSON(query));
    return { answers: page.tasks.map(answer), next: page.nextPageToken, total: page.totalSize };
  },
  push: {
    set: async (id, p) => fromPush(await client.createTaskPushNotificationConfig(toPush(id, p))),
    get: async (taskId, id) => fromPush(await client.getTaskPushNotificationConfig({ tenant: '', taskId, id })),
    list: async (taskId) => (await client.listTaskPushNotificationConfig({ tenant: '', taskId, pageSize: 0, pageToken: '' })).configs.map(fromPush),
    delete: (taskId, id) => client.deleteTaskPushNotificationConfig({ tenant: '', taskId, id }),
  },
  extendedCard: () => client.getAgentCard(),
  pushed: (body) => event(StreamResponse.fromJSON(body)),
});

await Promise.all(Object.keys(bindings).map(async (binding) => {
  const name = `1.0 ${binding}`;
  const { client } = await connect(binding, world.key);
  const calls = adapter(client);
  await checkCalls(name, calls);
  await checkMistakes(name, calls, (err) => err.name);

  await step(`${name}: a version from the future is a VersionNotSupportedError`, async () => {
    const odd = await connect(binding, world.key, { version: '9.9' });
    const err = await failure(odd.client.getTask(GetTaskRequest.fromJSON({ id: 'x' })));
    assert.equal(err.name, 'VersionNotSupportedError', String(err.stack));
  });

  await step(`${name}: a message without parts is refused, and the error names parts`, async () => {
    const err = await failure(calls.send([]));
    assert.match(err.message, /parts/);
    if (binding === 'JSON-RPC') assert.equal(err.envelopeCode, -32602);
    if (binding === 'HTTP+JSON') assert.equal(err.statusCode, 400);
    if (binding === 'gRPC') assert.equal(err.status, 3);
  });

  for (const [what, key, http, code] of [['no key', '', 401, 16], ['a key that may not call', world.none, 403, 7]]) {
    await step(`${name}: ${what} is ${http}`, async () => {
      const stranger = await connect(binding, key);
      const err = await failure(adapter(stranger.client).send(text('kinds')));
      if (binding === 'gRPC') assert.equal(err.status, code);
      else assert.equal(stranger.seen.status, http);
      assert.match(err.message, http === 401 ? /API key/ : /svc:a2a:write/);
    });
  }

  await step(`${name}: a key for one agent finds its card without a slash at the end`, async () => {
    const { client: own } = await connect(binding, world.only, { address: world.agent });
    assert.equal((await adapter(own).send(text('kinds'))).state, 'completed');
  });
}));

// Cards are signed. The SDK verifies them with the key that the signature's header names.
for (const [what, url, headers] of [
  ['of version 1.0', `${world.agent}/.well-known/agent-card.json`, { 'A2A-Version': '1.0' }],
  ['for all versions', `${world.agent}/.well-known/agent-card.json`, {}],
  ['of the platform', new URL('/.well-known/agent-card.json', world.agent), {}],
]) {
  await step(`the card ${what} is signed`, async () => {
    const card = await (await fetch(url, { headers })).json();
    const verify = verifyAgentCardSignature(async (kid, jku) => {
      assert.equal(jku, String(new URL('/.well-known/jwks.json', world.agent)));
      return (await (await fetch(jku)).json()).keys.find((key) => key.kid === kid);
    });
    await verify(card);
    await assert.rejects(verify({ ...card, name: 'Another agent' }), /No valid signatures/);
  });
}
process.exit(0); // open gRPC connections would keep the process running
