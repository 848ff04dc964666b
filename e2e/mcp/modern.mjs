// The official TypeScript client of today: it speaks the newest revision, is known by
// the address of a document that describes it, and asks its person for more when a
// tool needs a scope that it was not given. The test is the person, and writes the
// address that the person comes back to on stdin.
import assert from 'node:assert/strict';
import { createInterface } from 'node:readline';
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from '@modelcontextprotocol/client';

const { PARLEY_MCP: address, PARLEY_CALLBACK: callback, PARLEY_DOCUMENT: document, PARLEY_KEY: key } = process.env;
const ok = what => console.log('ok   ' + what);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const proposal = {
  title: 'Retry the deploy step', category: 'reliability', problem: 'It fails on a busy registry.', suggested_fix: 'Retry it three times.',
};

const wallet = {
  clientMetadataUrl: document,
  redirectUrl: callback,
  clientMetadata: { client_name: 'never sent', redirect_uris: [callback], token_endpoint_auth_method: 'none' },
  state() { return (this.asked = crypto.randomUUID()); },
  clientInformation() { return this.client; },
  saveClientInformation(client) { this.client = client; },
  tokens() { return this.kept; },
  saveTokens(tokens) { this.kept = tokens; },
  redirectToAuthorization(url) { this.question = url; },
  saveCodeVerifier(verifier) { this.verifier = verifier; },
  codeVerifier() { return this.verifier; },
};

const newClient = () => new Client({ name: 'e2e', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } });
const open = () => new StreamableHTTPClientTransport(new URL(address), { authProvider: wallet });

// Sends the person to the authorization server, and takes what comes back.
async function ask(transport) {
  console.log('open ' + wallet.question);
  const { value } = await lines.next();
  const back = new URL(value).searchParams;
  assert.equal(back.get('state'), wallet.asked);
  await transport.finishAuth(back);
}

const first = open();
await assert.rejects(newClient().connect(first), UnauthorizedError);
assert.equal(wallet.question.searchParams.get('client_id'), document);
assert.equal(wallet.question.searchParams.get('scope'), 'svc:tasks:read svc:tasks:write svc:a2a:write');
ok('was told what to ask for, and did not register');
await ask(first);
assert.equal(wallet.kept.scope, 'svc:tasks:read');

const client = newClient();
const transport = open();
await client.connect(transport);
assert.equal(client.getNegotiatedProtocolVersion(), '2026-07-28');
const found = await client.callTool({ name: 'list_proposals', arguments: {} });
assert.ok(!found.isError, JSON.stringify(found));
ok('used what it was allowed');

// The person is asked for the rest when it is needed.
wallet.question = undefined;
await assert.rejects(client.callTool({ name: 'submit_proposal', arguments: proposal }), UnauthorizedError);
assert.equal(wallet.question?.searchParams.get('client_id'), document);
assert.ok(wallet.question.searchParams.get('scope').split(' ').includes('svc:tasks:write'));
await ask(transport);
const filed = await client.callTool({ name: 'submit_proposal', arguments: proposal });
assert.ok(!filed.isError, JSON.stringify(filed));
console.log('proposal ' + filed.structuredContent.id);
ok('asked for more, and filed the proposal');
await client.close();

// A key cannot be asked for more: the tool says what is missing.
const holder = newClient();
await holder.connect(new StreamableHTTPClientTransport(new URL(address), { requestInit: { headers: { Authorization: 'Bearer ' + key } } }));
const refused = await holder.callTool({ name: 'submit_proposal', arguments: proposal });
assert.equal(refused.isError, true);
assert.match(refused.content[0].text, /svc:tasks:write/);
ok('a key learns from the tool which scope is missing');
await holder.close();
console.log('done');
process.exit(0);
