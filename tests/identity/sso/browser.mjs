// Drives a browser through a sign-in: PAGE is the user interface's page, which begins by itself. Prints what came of it.
import { mkdtempSync } from 'node:fs';
import { chromium } from 'playwright-core';

const folder = mkdtempSync(`${process.cwd()}/profile-`);
const context = await chromium.launchPersistentContext(folder, {
  executablePath: process.env.CHROMIUM,
  headless: true,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync'],
});
try {
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  await page.goto(process.env.PAGE);
  await page.fill('input[name=login]', 'alice');
  await page.fill('input[name=password]', 'x');
  await page.click('button[type=submit]');
  await page.waitForSelector('input[name=prompt][value=consent]', { state: 'attached' });
  await page.click('button[type=submit]');
  const shown = JSON.parse(await page.locator('#done').textContent());
  const cookies = await context.cookies();
  console.log(JSON.stringify({ shown, cookies: cookies.map(({ name, httpOnly, path }) => ({ name, httpOnly, path })) }));
} finally {
  await context.close();
}
