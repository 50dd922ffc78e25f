// Looks addresses up at AbuseIPDB, and stages that a firewall blocks those that were reported often.
//
// A person reviews and applies what is staged. The host checks that this person's rights reach so far.

import context from 'heddle:host/context@1.0.0';
import http from 'heddle:host/http@1.0.0';
import secrets from 'heddle:host/secrets@1.0.0';
import fabric from 'heddle:plugin/fabric@1.0.0';
import kv from 'heddle:plugin/kv@1.0.0';

const ENTRY_GET = 'firewall.alias-entry.get';
const ENTRY_ADD = 'opnsense.firewall.alias-entry-add.create';

const DEFAULTS = { alias: 'heddle_blocked', threshold: 75, 'max-age-days': 90, 'cache-hours': 24, never: [] };

// The interpreter has no TextDecoder and no TextEncoder.
const hex = (byte) => `%${byte.toString(16).padStart(2, '0')}`;
const textOf = (bytes) => decodeURIComponent(Array.from(bytes, hex).join(''));
const bytesOf = (text) => Uint8Array.from(unescape(encodeURIComponent(text)), (c) => c.charCodeAt(0));

const settings = () => ({ ...DEFAULTS, ...JSON.parse(context.config()) });

function fault(tag, message, more = {}) {
  const none = { code: null, upstreamStatus: null, retryAfterMs: null };
  return { tag, val: { message, effect: 'none', fields: [], ...none, ...more } };
}

const misfit = (address) =>
  fault('invalid', `'${address}' is no IPv4 or IPv6 address`, { fields: [{ pointer: '/address', message: 'is no address' }] });

// Returns the address in the one form that is looked up, compared and staged.
function normal(address) {
  if (!address.includes(':')) {
    const parts = address.split('.');
    const fits = parts.length === 4 && parts.every((part) => /^(0|[1-9][0-9]{0,2})$/.test(part) && Number(part) < 256);
    if (!fits) throw misfit(address);
    return address;
  }
  const [head, tail, more] = address.toLowerCase().split('::');
  if (more !== undefined || address.includes('.')) throw misfit(address);
  const groups = (part) => (part ? part.split(':') : []);
  const [before, after] = [groups(head), groups(tail)];
  const missing = 8 - before.length - after.length;
  const isWhole = tail === undefined ? missing === 0 : missing > 0;
  if (!isWhole) throw misfit(address);
  const all = [...before, ...Array(missing).fill('0'), ...after];
  if (!all.every((group) => /^[0-9a-f]{1,4}$/.test(group))) throw misfit(address);
  const short = all.map((group) => parseInt(group, 16).toString(16));
  // The first of the longest runs of at least two zeros becomes '::', as RFC 5952 has it.
  const run = { at: 0, length: 1 };
  for (let at = 0; at < 8; at += 1) {
    const end = short.findIndex((group, n) => n >= at && group !== '0');
    const length = (end < 0 ? 8 : end) - at;
    if (length > run.length) Object.assign(run, { at, length });
  }
  if (run.length < 2) return short.join(':');
  return `${short.slice(0, run.at).join(':')}::${short.slice(run.at + run.length).join(':')}`;
}

function headerOf({ headers }, wanted) {
  const found = headers.find(({ name }) => name.toLowerCase() === wanted);
  return found ? textOf(found.value) : null;
}

// What AbuseIPDB says of itself in an answer that is no success.
function refusal(response) {
  const { status } = response;
  const more = { upstreamStatus: status };
  let detail = '';
  try {
    detail = JSON.parse(textOf(response.body)).errors[0].detail;
  } catch {
    // The status tells enough.
  }
  const said = detail ? `: ${String(detail).slice(0, 300)}` : '';
  if (status === 401) return fault('authentication', `AbuseIPDB refuses the key${said}`, more);
  if (status === 402 || status === 403) return fault('denied', `AbuseIPDB does not allow this to the key${said}`, more);
  if (status === 422) return fault('invalid', `AbuseIPDB does not take the address${said}`, more);
  if (status === 429) {
    const seconds = Number(headerOf(response, 'retry-after') ?? NaN);
    const retryAfterMs = Number.isFinite(seconds) ? Math.ceil(seconds) * 1000 : null;
    return fault('rate-limit', `the daily look-ups of the key are used up${said}`, { ...more, retryAfterMs });
  }
  return fault('generic', `AbuseIPDB answered status ${status}${said}`, more);
}

function ask(address, maxAgeDays) {
  const key = secrets.get('api-key');
  if (!key) throw fault('authentication', "the secret 'api-key' is missing: a key of AbuseIPDB's API");
  const request = {
    method: 'get',
    path: `/api/v2/check?ipAddress=${encodeURIComponent(address)}&maxAgeInDays=${maxAgeDays}`,
    headers: [{ name: 'accept', value: bytesOf('application/json') }],
    body: { tag: 'none' },
    timeoutMs: null,
    maxResponseBytes: null,
  };
  const response = http.open('abuseipdb').send(request, { tag: 'inject', val: [[{ tag: 'header', val: ['Key', ''] }, key]] });
  if (response.status !== 200) throw refusal(response);
  const { data } = JSON.parse(textOf(response.body));
  if (!Number.isInteger(data?.abuseConfidenceScore)) throw fault('generic', 'the answer of AbuseIPDB has no score');
  return {
    address,
    score: data.abuseConfidenceScore,
    reports: data.totalReports ?? 0,
    is_safe: data.isWhitelisted === true,
    last_reported_at: data.lastReportedAt ?? null,
    country: data.countryCode ?? null,
    usage: data.usageType ?? null,
    provider: data.isp ?? null,
  };
}

// The addresses of a network's own, which AbuseIPDB knows nothing of, and which are never blocked by it.
const OWN = [/^10\./, /^127\./, /^169\.254\./, /^192\.168\./, /^172\.(1[6-9]|2[0-9]|3[01])\./, /^0\./, /^::1?$/, /^fe[89ab]/, /^f[cd]/];

function found(address) {
  if (OWN.some((network) => network.test(address))) {
    throw fault('invalid', `'${address}' is of a private network, which AbuseIPDB does not know`);
  }
  const { 'max-age-days': maxAgeDays, 'cache-hours': hours } = settings();
  const key = `check:${maxAgeDays}:${address}`;
  const stored = kv.get(key);
  if (stored) return { ...JSON.parse(textOf(stored.value)), is_cached: true };
  const answer = ask(address, maxAgeDays);
  kv.set(key, bytesOf(JSON.stringify(answer)), hours * 3600);
  return { ...answer, is_cached: false };
}

const lookUp = ({ address }) => found(normal(address));

const call = (operation, params) => JSON.parse(fabric.call(operation, JSON.stringify(params)));

function isThere(controllerId, alias, address) {
  try {
    call(ENTRY_GET, { controller_id: controllerId, key: `${alias}:${address}` });
    return true;
  } catch (error) {
    if (tagOf(error) === 'not-found') return false;
    throw error;
  }
}

// The kind of a fault that the host threw.
const tagOf = (error) => error?.tag ?? error?.payload?.tag;

function block({ address: given, controller_id }) {
  const address = normal(given);
  const { alias, threshold, never } = settings();
  const ends = (score, outcome, more = {}) => ({ address, score, outcome, change_id: null, problem: null, ...more });
  if (never.map(normal).includes(address)) return ends(null, 'never-blocked');
  const { score, reports, is_safe } = found(address);
  if (is_safe) return ends(score, 'listed-as-safe');
  if (score < threshold) return ends(score, 'below-threshold');
  if (isThere(controller_id, alias, address)) return ends(score, 'there-already');
  const staged = call(ENTRY_ADD, {
    controller_id,
    payload: { alias, ip: address },
    notes: `AbuseIPDB: score ${score} of 100, ${reports} reports`,
  });
  return ends(score, 'staged', { change_id: staged.change_id, problem: staged.plan_error?.message ?? null });
}

const ACTIONS = { 'look-up': lookUp, block };

export const actions = {
  run(actionId, params) {
    const action = ACTIONS[actionId];
    if (!action) throw fault('unsupported', `there is no action '${actionId}'`);
    return JSON.stringify(action(JSON.parse(params)));
  },
};

export const lifecycle = {
  // A look-up would count against the daily ones: only that the key is there is checked.
  check() {
    if (!secrets.get('api-key')) throw fault('authentication', "the secret 'api-key' is missing");
    const { alias, threshold } = settings();
    return JSON.stringify({ alias, threshold });
  },
};
