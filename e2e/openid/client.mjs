// openid-client, which form-encodes the credentials of HTTP Basic to the letter of RFC
// 6749: it escapes also the "-" of ids and the "_" of secrets. The test is the person, and
// writes the address that the person comes back to on stdin.
import assert from 'node:assert/strict';
import { createInterface } from 'node:readline';
import * as oauth from 'openid-client';

const { PARLEY_URL: server, PARLEY_CALLBACK: callback } = process.env;
const ok = what => console.log('ok   ' + what);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

const discover = (id, secret) => oauth.discovery(new URL(server), id, undefined, oauth.ClientSecretBasic(secret), {
  algorithm: 'oauth2', execute: [oauth.allowInsecureRequests],
});

async function me(token) {
  const res = await fetch(server + '/api/v1/me', { headers: { Authorization: 'Bearer ' + token } });
  assert.equal(res.status, 200, await res.clone().text());
  return res.json();
}

// The key of a service as a client: its id and its secret have characters to escape.
{
  const config = await discover(process.env.PARLEY_KEY_ID, process.env.PARLEY_KEY);
  ok('discovered the server');
  const tokens = await oauth.clientCredentialsGrant(config, { scope: 'svc:tasks:read' });
  assert.equal((await me(tokens.access_token)).principal, 'service:crm');
  ok('got a token for the service');
  assert.equal((await oauth.tokenIntrospection(config, tokens.access_token)).active, true);
  ok('introspected it');
  await oauth.tokenRevocation(config, tokens.access_token);
  assert.equal((await oauth.tokenIntrospection(config, tokens.access_token)).active, false);
  ok('revoked it');
  const guess = await discover(process.env.PARLEY_KEY_ID, process.env.PARLEY_KEY + 'x');
  await assert.rejects(oauth.clientCredentialsGrant(guess, { scope: 'svc:tasks:read' }), { status: 401 });
  ok('a wrong secret is refused');
}

// A client with a secret that acts for a person.
{
  const config = await discover(process.env.PARLEY_CLIENT_ID, process.env.PARLEY_CLIENT_SECRET);
  const verifier = oauth.randomPKCECodeVerifier();
  const state = oauth.randomState();
  console.log('open ' + oauth.buildAuthorizationUrl(config, {
    redirect_uri: callback, scope: 'svc:tasks:read', state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: 'S256',
  }));
  const { value } = await lines.next();
  const tokens = await oauth.authorizationCodeGrant(config, new URL(value), { pkceCodeVerifier: verifier, expectedState: state });
  assert.equal((await me(tokens.access_token)).principal, 'user:admin');
  ok('traded the code for tokens');
  const fresh = await oauth.refreshTokenGrant(config, tokens.refresh_token);
  await me(fresh.access_token);
  ok('refreshed them');
}
process.exit(0);
