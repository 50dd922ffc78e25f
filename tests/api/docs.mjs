// Signs in on the documentation page at PAGE and creates a site there. Prints the statuses that the page shows.
import { mkdtempSync } from 'node:fs';
import { chromium } from 'playwright-core';

const folder = mkdtempSync(`${process.cwd()}/profile-`);
const context = await chromium.launchPersistentContext(folder, {
  executablePath: process.env.CHROMIUM,
  headless: true,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'],
});

/** Opens one operation on the page, sends this body, and reads the status that is shown. */
async function execute(page, path, body) {
  const description = await (await fetch(`${process.env.PAGE}/../openapi.json`)).json();
  const { operationId, tags } = description.paths[path].post;
  // Another page first: a new fragment alone loads nothing.
  await page.goto('about:blank');
  await page.goto(`${process.env.PAGE}#/${encodeURIComponent(tags[0])}/${operationId}`);
  const operation = page.locator('.opblock.is-open');
  await operation.locator('.try-out__btn').click();
  await operation.locator('textarea.body-param__text').fill(JSON.stringify(body));
  await operation.locator('button.execute').click();
  return Number.parseInt(await operation.locator('.live-responses-table .response-col_status').last().innerText(), 10);
}

try {
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const { LOGIN: login, PASSWORD: password } = process.env;
  const signedIn = await execute(page, '/api/v1/auth/login', { login, password });
  const created = await execute(page, '/api/v1/sites', { name: 'Written on the page' });
  console.log(JSON.stringify({ signedIn, created }));
} finally {
  await context.close();
}
