// Ten calls with the generated client for fetch. BASE is the server's address, PASSWORD that of the user 'ada'.
// Prints what came of it as JSON.
import {
  APIKeysApi, AuditLogApi, AuthenticationApi, Configuration, CredentialsApi, DevicesApi, EventsApi, HealthApi,
  ResponseError, SitesApi,
} from './heddle';

declare const process: { env: Record<string, string | undefined>; exit(code: number): never };

async function main(): Promise<void> {
  const basePath = process.env.BASE ?? '';
  const open = new Configuration({ basePath });
  const health = await new HealthApi(open).getHealth();
  const login = { login: 'ada', password: process.env.PASSWORD ?? '' };
  const session = await new AuthenticationApi(open).logIn({ login });
  const own = new Configuration({ basePath, accessToken: session.accessToken });

  const profile = await new AuthenticationApi(own).getOwnProfile();
  const sites = new SitesApi(own);
  const created = await sites.createSite({ siteCreate: { name: 'From TypeScript' } });
  const renamed = await sites.updateSite({ siteId: created.id, siteUpdate: { name: 'Renamed' } });
  const listed = await sites.listSites({ search: 'Renamed', perPage: 5 });
  const credential = await new CredentialsApi(own).createCredential({
    credentialCreate: { name: 'router', username: 'root', password: 'a-secret' },
  });
  const key = await new APIKeysApi(own).createApiKey({
    apiKeyCreate: { name: 'reader', scopes: ['site:read'], expiresInDays: 1 },
  });
  const reader = new Configuration({ basePath, apiKey: key.apiKey });
  const read = await new SitesApi(reader).getSite({ siteId: created.id });
  const devices = await new DevicesApi(own).listDevices({ perPage: 1 });
  const types = await new EventsApi(own).listEventTypes();
  await sites.deleteSite({ siteId: created.id });
  const audit = await new AuditLogApi(own).listAuditEntries({ targetId: created.id });
  const refused = await sites.getSite({ siteId: created.id }).catch((error: unknown) => error);

  console.log(JSON.stringify({
    health: health.status,
    user: profile.username,
    site: renamed.name,
    total: listed.total,
    hasPassword: credential.hasPassword,
    read: read.id === created.id,
    devices: devices.items.length,
    types: types.length > 10,
    createdAt: created.createdAt instanceof Date,
    actions: audit.items.map((entry) => entry.action).sort(),
    refused: refused instanceof ResponseError ? refused.response.status : String(refused),
  }));
}

main().catch(async (error: unknown) => {
  console.error(error instanceof ResponseError ? await error.response.text() : error);
  process.exit(1);
});
