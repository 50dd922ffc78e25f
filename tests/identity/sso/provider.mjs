// A small OpenID provider for tests, on the npm package oidc-provider: every name signs in with any password. Keys and
// sign-ins are in memory, so a restart forgets both.
import crypto from 'node:crypto';
import { Provider } from 'oidc-provider';

// Node.js 20 has it only since its later releases.
URL.parse ??= (text, base) => (URL.canParse(text, base) ? new URL(text, base) : null);

const port = Number(process.env.OIDC_PORT);
const issuer = `http://127.0.0.1:${port}`;
const redirects = process.env.OIDC_REDIRECT_URIS.split(' ');
const people = {
  alice: { email: 'alice@example.test', email_verified: true, name: 'Alice Example', groups: ['admins'] },
  bob: { email: 'bob@example.test', email_verified: false, name: 'Bob Example', groups: [] },
};
const key = (type, options, alg) =>
  ({ ...crypto.generateKeyPairSync(type, options).privateKey.export({ format: 'jwk' }), alg, use: 'sig', kid: `${alg}-1` });

const provider = new Provider(issuer, {
  clients: [
    { client_id: 'confidential', client_secret: 'provider-canary-9Qx', redirect_uris: redirects,
      grant_types: ['authorization_code'], response_types: ['code'], application_type: 'native' },
    { client_id: 'public', token_endpoint_auth_method: 'none', redirect_uris: redirects,
      grant_types: ['authorization_code'], response_types: ['code'], application_type: 'native' },
    { client_id: 'es256', client_secret: 'provider-canary-9Qx', redirect_uris: redirects,
      response_types: ['code'], id_token_signed_response_alg: 'ES256', application_type: 'native' },
    { client_id: 'hs256', client_secret: 'provider-canary-9Qx-that-is-long-enough', redirect_uris: redirects,
      response_types: ['code'], id_token_signed_response_alg: 'HS256', application_type: 'native' },
  ],
  jwks: { keys: [key('rsa', { modulusLength: 2048 }, 'RS256'), key('ec', { namedCurve: 'P-256' }, 'ES256')] },
  enabledJWA: { idTokenSigningAlgValues: ['RS256', 'ES256', 'HS256'] },
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name', 'groups'] },
  // By the standard claims of scopes are at the userinfo endpoint only; many providers put them into the ID token.
  conformIdTokenClaims: process.env.OIDC_CLAIMS !== 'token',
  cookies: { keys: ['cookie-key'] },
  features: { devInteractions: { enabled: true } },
  pkce: { required: () => true },
  ttl: { AccessToken: 300, IdToken: 300, AuthorizationCode: 60, Grant: 3600, Interaction: 600, Session: 3600 },
  findAccount: (_ctx, id) => ({
    accountId: id,
    claims: async () =>
      ({ sub: id, ...(people[id] ?? { email: `${id}@example.test`, email_verified: true, name: id, groups: [] }) }),
  }),
});
provider.listen(port, '127.0.0.1');
