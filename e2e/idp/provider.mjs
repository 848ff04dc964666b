// A certified OpenID provider with people of any name and two programs. The test
// tells it by POST /test where the server under test is; each time it starts anew,
// with a new key.
import { createServer } from 'node:http';
import { generateKeyPair, exportJWK } from 'jose';
import Provider from 'oidc-provider';

let handler = (_, res) => res.writeHead(503).end();
const server = createServer(async (req, res) => {
  if (req.url !== '/test') return handler(req, res);
  let body = '';
  for await (const part of req) body += part;
  handler = await start(JSON.parse(body));
  res.end();
});

let keys = 0;
async function start({ callback, groups }) {
  const { privateKey } = await generateKeyPair('ES256', { extractable: true });
  const jwk = { ...(await exportJWK(privateKey)), kid: `key-${++keys}`, alg: 'ES256', use: 'sig' };
  const provider = new Provider(`http://127.0.0.1:${server.address().port}`, {
    jwks: { keys: [jwk] },
    cookies: { keys: ['of no importance'] },
    clients: [
      { client_id: 'parley', client_secret: 's3cret', redirect_uris: [callback], id_token_signed_response_alg: 'ES256' },
      {
        client_id: 'crm-backend', client_secret: 'crm-s3cret', grant_types: ['client_credentials'], redirect_uris: [], response_types: [],
        id_token_signed_response_alg: 'ES256',
      },
      {
        client_id: 'tool', token_endpoint_auth_method: 'none', redirect_uris: ['http://127.0.0.1:5/done'], application_type: 'native',
        id_token_signed_response_alg: 'ES256',
      },
    ],
    claims: { openid: ['sub'], profile: ['preferred_username', 'name'], email: ['email', 'email_verified'], groups: ['groups'] },
    // The subject is not the name: names can change.
    findAccount: (_, id) => ({
      accountId: id,
      claims: () => ({
        sub: id, preferred_username: id.replace(/^id-/, ''), name: `Somebody (${id})`, email: `${id}@acme.example`, email_verified: true,
        groups: groups[id] ?? [],
      }),
    }),
    features: {
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => undefined,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, resource) => ({
          audience: resource, scope: 'parley.read parley.write', accessTokenFormat: 'jwt', accessTokenTTL: 300, jwt: { sign: { alg: 'ES256' } },
        }),
      },
    },
    pkce: { required: () => true },
  });
  return provider.callback();
}

server.listen(0, '127.0.0.1', () => console.log(`providing at http://127.0.0.1:${server.address().port}`));
