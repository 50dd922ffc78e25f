// Posts messages to a channel of Slack.
//
// A message is a header, and an attachment whose colour tells the severity. Buttons that answer carry a JSON value: what they
// are about, and the answer.

import context from 'heddle:host/context@1.0.0';
import http from 'heddle:host/http@1.0.0';
import secrets from 'heddle:host/secrets@1.0.0';

const COLOURS = { info: '#2f6fde', success: '#2eb67d', warning: '#ecb22e', critical: '#e01e5a' };

// Most characters that Slack takes: in the text of a section, and in one of its fields.
const TEXT_CHARS = 3000;
const FIELD_CHARS = 2000;

// By the beginning of an `action_id` the reader of an answer tells buttons that answer from buttons that only open a page:
// Slack reports both.
const ANSWER = 'heddle-answer';
const LINK = 'heddle-link';

// The kinds of faults for errors of Slack; others are `generic`.
const FAULTS = {
  authentication: ['invalid_auth', 'not_authed', 'account_inactive', 'token_revoked', 'token_expired'],
  denied: ['missing_scope', 'not_in_channel', 'is_archived', 'restricted_action', 'ekm_access_denied', 'no_permission'],
  'not-found': ['channel_not_found', 'thread_not_found'],
  'rate-limit': ['ratelimited', 'rate_limited', 'message_limit_exceeded'],
  invalid: ['invalid_blocks', 'invalid_attachments', 'invalid_arguments', 'msg_too_long', 'msg_blocks_too_long', 'no_text'],
  'not-ready': ['service_unavailable'],
};

// The interpreter has no TextDecoder.
const hex = (byte) => `%${byte.toString(16).padStart(2, '0')}`;
const textOf = (bytes) => decodeURIComponent(Array.from(bytes, hex).join(''));

function fault(tag, message, more = {}) {
  const none = { code: null, upstreamStatus: null, retryAfterMs: null };
  return { tag, val: { message, effect: 'none', fields: [], ...none, ...more } };
}

// A text for Slack's markup, in which only these three characters need escaping: no value can mention people or hide a link.
function escaped(text, charsMax) {
  const entities = { '&': '&amp;', '<': '&lt;', '>': '&gt;' };
  let result = '';
  for (const character of text) {
    const next = entities[character] ?? character;
    if (result.length + next.length > charsMax - 1) return `${result}…`;
    result += next;
  }
  return result;
}

const plain = (text) => ({ type: 'plain_text', text, emoji: true });
const markup = (text) => ({ type: 'mrkdwn', text });

function field({ name, value }) {
  const shown = value === null || value === '' ? '–' : String(value);
  return markup(`*${escaped(name, FIELD_CHARS / 2)}*\n${escaped(shown, FIELD_CHARS / 2 - 4)}`);
}

const link = ({ label, url }, n) => ({ type: 'button', text: plain(label), url, action_id: `${LINK}-${n}` });

function answer({ label, value, style }, n, about) {
  const button = { type: 'button', text: plain(label), action_id: `${ANSWER}-${n}`, value: JSON.stringify({ about, answer: value }) };
  return style ? { ...button, style } : button;
}

function message({ title, text, severity = 'info', channel, thread, fields = [], links = [], answers = [], about }) {
  const blocks = [];
  if (text) blocks.push({ type: 'section', text: markup(escaped(text, TEXT_CHARS)) });
  if (fields.length > 0) blocks.push({ type: 'section', fields: fields.map(field) });
  const buttons = [...answers.map((one, n) => answer(one, n, about)), ...links.map(link)];
  if (buttons.length > 0) blocks.push({ type: 'actions', elements: buttons });
  const header = { type: 'header', text: plain(title) };
  const body = {
    channel: channel ?? JSON.parse(context.config()).channel,
    // What notifications and screen readers show.
    text: escaped(title, TEXT_CHARS),
    blocks: [header],
    // What values look like is no reason to load pages.
    unfurl_links: false,
    unfurl_media: false,
  };
  if (blocks.length > 0) body.attachments = [{ color: COLOURS[severity], blocks }];
  if (thread) body.thread_ts = thread;
  return body;
}

function retryAfterMs({ headers }) {
  const found = headers.find(({ name }) => name.toLowerCase() === 'retry-after');
  const seconds = found ? Number(textOf(found.value)) : NaN;
  return Number.isFinite(seconds) ? Math.ceil(seconds) * 1000 : null;
}

function parsed(response) {
  try {
    return JSON.parse(textOf(response.body));
  } catch {
    return null;
  }
}

// Slack answers 200 with `ok: false` where it refuses a message, so that nothing was posted. Without such an answer it is not
// certain.
function posted(response) {
  const { status } = response;
  const more = { upstreamStatus: status };
  if (status === 429) {
    throw fault('rate-limit', 'Slack takes no more messages for now', { ...more, retryAfterMs: retryAfterMs(response) });
  }
  const answer = parsed(response);
  if (answer?.ok === true && typeof answer.ts === 'string') return { channel: answer.channel, ts: answer.ts };
  if (answer?.ok === false && typeof answer.error === 'string') {
    const [tag] = Object.entries(FAULTS).find(([, errors]) => errors.includes(answer.error)) ?? ['generic'];
    const needed = answer.needed ? `; the app needs the scope '${answer.needed}'` : '';
    throw fault(tag, `Slack refuses the message: ${answer.error}${needed}`, { ...more, code: `vendor:${answer.error}` });
  }
  throw fault('generic', `Slack answered status ${status} without saying what became of the message`, { ...more, effect: 'possible' });
}

function post(params) {
  const token = secrets.get('bot-token');
  if (!token) throw fault('authentication', "the secret 'bot-token' is missing: the token of a Slack app with the scope 'chat:write'");
  const request = {
    method: 'post',
    path: '/api/chat.postMessage',
    headers: [],
    body: { tag: 'json', val: JSON.stringify(message(params)) },
    timeoutMs: null,
    maxResponseBytes: null,
  };
  return posted(http.open('slack').send(request, { tag: 'inject', val: [[{ tag: 'bearer' }, token]] }));
}

const ACTIONS = { post };

export const actions = {
  run(actionId, params) {
    const action = ACTIONS[actionId];
    if (!action) throw fault('unsupported', `there is no action '${actionId}'`);
    return JSON.stringify(action(JSON.parse(params)));
  },
};

export const lifecycle = {
  // Slack has no read that tells whether a channel takes messages: only that the token is there is checked.
  check() {
    if (!secrets.get('bot-token')) throw fault('authentication', "the secret 'bot-token' is missing");
    return JSON.stringify({ channel: JSON.parse(context.config()).channel });
  },
};
