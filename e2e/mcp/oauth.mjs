// The official TypeScript client, which knows nothing but the address of the tools:
// it finds the authorization server, registers, and sends its person there. The test
// is the person, and writes the address that the person comes back to on stdin.
import assert from 'node:assert/strict';
import { createInterface } from 'node:readline';
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const { PARLEY_MCP: address, PARLEY_CALLBACK: callback, PARLEY_USELESS: useless } = process.env;
const ok = what => console.log('ok   ' + what);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

// What the client keeps of its authorization, as a program would keep it in a file.
class Wallet {
  redirectUrl = callback;
  clientMetadata = {
    client_name: 'e2e', redirect_uris: [callback], grant_types: ['authorization_code', 'refresh_token'], response_types: ['code'],
    token_endpoint_auth_method: 'none',
  };
  saves = 0;
  state() { return (this.asked = crypto.randomUUID()); }
  clientInformation() { return this.client; }
  saveClientInformation(client) { this.client = client; }
  tokens() { return this.kept; }
  saveTokens(tokens) { this.kept = tokens; this.saves++; }
  redirectToAuthorization(url) { this.question = url; }
  saveCodeVerifier(verifier) { this.verifier = verifier; }
  codeVerifier() { return this.verifier; }
}

async function session(wallet) {
  const client = new Client({ name: 'e2e', version: '1.0.0' });
  const open = () => new StreamableHTTPClientTransport(new URL(address), { authProvider: wallet });
  const transport = open();
  await assert.rejects(client.connect(transport), UnauthorizedError);
  const asked = wallet.question.searchParams;
  assert.equal(asked.get('resource'), address);
  assert.equal(asked.get('code_challenge_method'), 'S256');
  assert.ok(wallet.client.client_id);
  ok('found the authorization server and registered there');

  console.log('open ' + wallet.question);
  const { value } = await lines.next();
  const back = new URL(value).searchParams;
  assert.equal(back.get('state'), wallet.asked);
  assert.equal(back.get('iss'), new URL(address).origin);
  await transport.finishAuth(back.get('code'));
  await client.connect(open());
  ok('traded the code for tokens');
  return client;
}

async function call(client, name, args) {
  const res = await client.callTool({ name, arguments: args });
  assert.ok(!res.isError, JSON.stringify(res.content));
  return res.structuredContent;
}

const proposal = {
  title: 'Retry the deploy step', category: 'reliability', problem: 'It fails on a busy registry.', suggested_fix: 'Retry it three times.',
};

const wallet = new Wallet();
const client = await session(wallet);
const filed = await call(client, 'submit_proposal', proposal);
assert.ok((await call(client, 'list_proposals', {})).proposals.some(p => p.id === filed.id));
ok('used the tools');

// An access token that is no longer good is refreshed by itself, more than once.
for (const bad of ['parley_at_gone', wallet.kept.access_token.slice(0, -1) + '!']) {
  const before = { ...wallet.kept };
  const saves = wallet.saves;
  wallet.kept = { ...wallet.kept, access_token: bad };
  wallet.question = undefined;
  assert.ok((await call(client, 'list_proposals', {})).proposals.some(p => p.id === filed.id));
  assert.equal(wallet.saves, saves + 1);
  assert.equal(wallet.question, undefined, 'the person was asked again');
  assert.notEqual(wallet.kept.access_token, before.access_token);
  assert.notEqual(wallet.kept.refresh_token, before.refresh_token);
  ok('refreshed, and used the tools again');
}
console.log('proposal ' + filed.id);
console.log('token ' + wallet.kept.access_token);
await client.close();

// The person allows reading only: what needs more says which scope it needs, and
// the rest works.
const reader = await session(new Wallet());
assert.ok((await call(reader, 'list_proposals', {})).proposals.length > 0);
const refused = await reader.callTool({ name: 'submit_proposal', arguments: proposal });
assert.equal(refused.isError, true);
assert.match(refused.content[0].text, /svc:tasks:write/);
assert.deepEqual((({ code, scope }) => ({ code, scope }))(JSON.parse(refused.content[1].text)), { code: 'auth.scope_missing', scope: 'svc:tasks:write' });
ok('learned which scope is missing');
await reader.close();

// A token that no tool could do anything with is refused as a whole.
const without = new Client({ name: 'e2e', version: '1.0.0' });
await assert.rejects(
  without.connect(new StreamableHTTPClientTransport(new URL(address), { requestInit: { headers: { Authorization: 'Bearer ' + useless } } })),
  err => err.code === 403 && /svc:tasks:read/.test(err.message),
);
ok('a token without a useful scope is refused, and told why');
console.log('done');
process.exit(0);
