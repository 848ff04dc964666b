// The official TypeScript client against the built server, over HTTP with a key and
// over stdio. Prints one line for each check and fails on the first that is wrong.
import assert from 'node:assert/strict';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const { PARLEY_URL: base, PARLEY_KEY: key, PARLEY_PROGRAM: program } = process.env;

const ok = what => console.log('ok   ' + what);
const http = secret => new StreamableHTTPClientTransport(new URL('/mcp', base), secret && {
  requestInit: { headers: { Authorization: 'Bearer ' + secret } },
});

async function session(transport) {
  const client = new Client({ name: 'e2e', version: '1.0.0' });
  await client.connect(transport);
  return client;
}

const proposal = {
  title: 'Retry the deploy step', category: 'reliability', problem: 'It fails on a busy registry.', suggested_fix: 'Retry it three times.', priority: 'high',
};

async function tour(name, client) {
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map(t => t.name).sort(), [
    'cancel_task', 'find_agent', 'get_proposal', 'get_task', 'list_agents', 'list_events', 'list_proposals', 'report_friction', 'send_task', 'submit_proposal', 'vote_on_proposal', 'withdraw_vote',
  ]);
  ok(`${name}: lists the tools`);

  // The client holds every structured answer against the schema it was given.
  const call = async (tool, args) => {
    const res = await client.callTool({ name: tool, arguments: args });
    assert.ok(!res.isError, JSON.stringify(res.content));
    assert.deepEqual(JSON.parse(res.content[0].text), res.structuredContent);
    return res.structuredContent;
  };
  const filed = await call('submit_proposal', proposal);
  assert.match(filed.id, /^prop-/);
  assert.deepEqual({ ...filed, ...proposal }, filed);
  assert.equal(filed.status, 'open');
  assert.equal(filed.submitted_by, 'user:ada');
  ok(`${name}: submits a proposal`);

  assert.equal((await call('get_proposal', { id: filed.id })).problem, proposal.problem);
  assert.ok((await call('list_proposals', { q: 'deploy' })).proposals.some(p => p.id === filed.id));
  assert.equal((await call('vote_on_proposal', { id: filed.id, vote: 'for' })).votes_for, 1);
  assert.equal((await call('vote_on_proposal', { id: filed.id, vote: 'against' })).replaced, true);
  ok(`${name}: reads it, finds it and votes on it`);

  const happened = await call('list_events', { types: ['proposal.submitted'], limit: 100 });
  assert.ok(Array.isArray(happened.events) && happened.last_seq >= 0);
  const newest = await client.readResource({ uri: 'parley://events' });
  assert.equal(newest.contents[0].mimeType, 'application/json');
  ok(`${name}: reads events`);

  assert.ok((await call('list_agents', {})).agents.some(a => a.id === 'echo'));
  const done = await call('send_task', { agent: 'echo', message: 'Are you there?' });
  assert.equal(done.state, 'completed');
  assert.equal(done.artifacts[0].parts[0].text, 'Are you there?');
  ok(`${name}: sends a task and waits for it`);

  let count;
  for (let i = 0; i < 3; i++) {
    count = await call('report_friction', {
      fingerprint: `e2e:${name}`, title: 'It is slow', category: 'performance', problem: 'The pipeline takes an hour.', evidence: `run ${i}`,
    });
  }
  assert.equal(count.filed, true);
  assert.match((await call('get_proposal', { id: count.proposal_id })).problem, /run 0/);
  ok(`${name}: the third report of a friction files a proposal`);

  const refused = await client.callTool({ name: 'submit_proposal', arguments: { ...proposal, category: 'weather', org: 'other' } });
  assert.equal(refused.isError, true);
  const why = JSON.parse(refused.content[1].text);
  assert.equal(why.code, 'request.invalid');
  assert.deepEqual(why.errors.map(e => e.pointer).sort(), ['/category', '/org']);
  ok(`${name}: learns which arguments are wrong`);
  await client.close();
  return filed.id;
}

const id = await tour('http', await session(http(key)));
await tour('stdio', await session(new StdioClientTransport({
  command: program, args: ['mcp', '--server', base], env: { PARLEY_KEY: key, PATH: process.env.PATH }, stderr: 'inherit',
})));

for (const [name, secret] of [['no key', undefined], ['a bad key', 'parley_bad']]) {
  await assert.rejects(session(http(secret)), err => err.code === 401 || /401|nauthorized/.test(String(err)), name);
  ok(`${name} is refused`);
}
console.log('proposal ' + id);
