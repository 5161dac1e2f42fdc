import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { createRequest, previewRequest, voteOnRequest, waitForRequest } from './actions';
import { FakePortal } from './fake-portal.test.helper';
import { Portal } from './portal';

const ID = '5a4f2f0e-7f6d-4c0e-9a53-0d8a4a3d2b11';
const BODY = { kind: 'Delete', instance: ID };
const answer = (state: string, more: object = {}) => ({
  id: ID,
  state,
  instance: ID,
  links: { page: `https://portal.example.org/requests/${ID}/` },
  summary: { decision: 'Allowed at once', price: '584.00 USD a month', next: 'nobody', reasons: ['within policy'] },
  ...more,
});

describe('the actions', () => {
  let portal: FakePortal;
  let given: any;
  beforeEach(async () => {
    portal = await new FakePortal().start();
    const auth = {
      async getPluginRequestToken({ onBehalfOf, targetPluginId }: any) {
        return { token: `${onBehalfOf.who}@${targetPluginId}` };
      },
    };
    given = { portal: new Portal(portal.url), auth, lookEvery: 5 };
  });
  afterEach(() => portal.stop());

  async function run(action: any, input: object, more: object = {}) {
    const outputs: Record<string, unknown> = {};
    const lines: string[] = [];
    const say = (message: string) => void lines.push(message);
    await action.handler({
      input,
      task: { id: 'task-1' },
      step: { id: 'request' },
      logger: { info: say, warn: say },
      getInitiatorCredentials: async () => ({ who: 'ada' }),
      output: (name: string, value: unknown) => void (outputs[name] = value),
      ...more,
    });
    return { outputs, lines };
  }

  test('create acts as the person, once per task, and tells what came of it', async () => {
    portal.on('requests/', { status: 201, body: answer('Approved') });
    const { outputs } = await run(createRequest(given), { body: BODY });
    const [seen] = portal.seen;
    assert.deepEqual([seen!.method, seen!.headers.authorization, seen!.body], ['POST', 'Bearer ada@portal', BODY]);
    assert.equal(seen!.headers['idempotency-key'], 'task-1-request');
    assert.deepEqual(outputs, {
      requestId: ID,
      state: 'Approved',
      decision: 'Allowed at once',
      price: '584.00 USD a month',
      next: 'nobody',
      reasons: ['within policy'],
      requestUrl: `https://portal.example.org/requests/${ID}/`,
      instanceId: ID,
    });
  });

  test('a dry run only previews', async () => {
    portal.on('requests/preview/', { body: { outcome: 'Allowed', reasons: [{ message: 'fine' }] } });
    await run(createRequest(given), { body: BODY }, { isDryRun: true });
    await run(waitForRequest(given), { requestId: ID }, { isDryRun: true });
    await run(voteOnRequest(given), { requestId: ID, answer: 'approve' }, { isDryRun: true });
    assert.deepEqual(portal.seen.map(each => each.path), ['requests/preview/']);
  });

  const refusals: [string, any, RegExp][] = [
    [
      'a wrong body',
      { status: 400, body: { detail: 'x', errors: [{ pointer: '/spec/replicas/max', message: '99 is over 32' }] } },
      /\/spec\/replicas\/max: 99 is over 32$/,
    ],
    ['a forbidden one', { status: 403, body: { detail: 'you are not in team ads' } }, /you are not in team ads/],
    ['a denied one', { status: 201, body: answer('Denied', { summary: { reasons: ['quota exceeded', 'too dear'] } }) },
      /denied this request:\n- quota exceeded\n- too dear\nhttps:\/\/portal.example.org\/requests/],
    ['no JSON', { raw: '<html>' }, /is portal.baseUrl right/],
    ['an error without words', { status: 500, raw: '' }, /answered 500/],
  ];
  for (const [name, said, wanted] of refusals) {
    test(`${name} fails with the portal's own reasons`, async () => {
      portal.on('requests/', said);
      await assert.rejects(run(createRequest(given), { body: BODY }), wanted);
    });
  }

  test('preview gives the price and writes nothing', async () => {
    portal.on('requests/preview/', { body: { outcome: 'NeedsApproval', summary: { price: '1 USD', next: 'finance' } } });
    const { outputs } = await run(previewRequest(given), { body: BODY });
    assert.deepEqual(outputs, { decision: 'NeedsApproval', price: '1 USD', next: 'finance', reasons: [] });
  });

  test('wait tells each change once, and ends when it is ready', async () => {
    portal.on(
      `requests/${ID}/`,
      { body: answer('Waiting') },
      { body: answer('Waiting') },
      { status: 503, body: { detail: 'busy' } },
      { body: answer('Delivering') },
      { body: answer('Done') },
    );
    const { lines, outputs } = await run(waitForRequest(given), { requestId: ID, until: 'ready' });
    assert.deepEqual(lines.map(each => each.split(' ')[0]), ['Waiting', 'The', 'Delivering', 'Done']);
    assert.equal(outputs.state, 'Done');
  });

  test('wait until decided is over when it is approved', async () => {
    portal.on(`requests/${ID}/`, { body: answer('Waiting') }, { body: answer('Approved') });
    const { outputs } = await run(waitForRequest(given), { requestId: ID, until: 'decided' });
    assert.equal(outputs.state, 'Approved');
  });

  test('wait fails with the reasons when it ends badly', async () => {
    portal.on(`requests/${ID}/`, { body: answer('Rejected') });
    await assert.rejects(run(waitForRequest(given), { requestId: ID }), /is Rejected:\n- within policy/);
  });

  test('wait has a limit, and says where it stands', async () => {
    portal.on(`requests/${ID}/`, { body: answer('Waiting') });
    await assert.rejects(
      run(waitForRequest(given), { requestId: ID, timeoutSeconds: 0.05 }),
      /Not ready within 0.05 s; the request goes on by itself. It is Waiting: nobody/,
    );
  });

  test('wait ends when the task is cancelled', async () => {
    portal.on(`requests/${ID}/`, { body: answer('Waiting') });
    const cancel = new AbortController();
    setTimeout(() => cancel.abort(), 30);
    await assert.rejects(run(waitForRequest(given), { requestId: ID }, { signal: cancel.signal }), /abort/i);
  });

  test('vote answers as the person, with the comment', async () => {
    portal.on(`requests/${ID}/approve/`, { body: answer('Approved') });
    await run(voteOnRequest(given), { requestId: ID, answer: 'approve', comment: 'fine' });
    assert.deepEqual([portal.seen[0]!.method, portal.seen[0]!.body], ['POST', { comment: 'fine' }]);
    portal.on(`requests/${ID}/reject/`, { status: 403, body: { detail: "you can't vote on your own" } });
    await assert.rejects(run(voteOnRequest(given), { requestId: ID, answer: 'reject' }), /your own/);
  });

  const inputs: [string, any, object, boolean][] = [
    ['an id that is none', waitForRequest, { requestId: 'x' }, false],
    ['another until', waitForRequest, { requestId: ID, until: 'later' }, false],
    ['a limit of nothing', waitForRequest, { requestId: ID, timeoutSeconds: 0 }, false],
    ['defaults', waitForRequest, { requestId: ID }, true],
    ['another answer', voteOnRequest, { requestId: ID, answer: 'maybe' }, false],
    ['no body', createRequest, {}, false],
    ['a body', createRequest, { body: BODY }, true],
  ];
  for (const [name, make, input, fits] of inputs) {
    test(`the schema ${fits ? 'takes' : 'refuses'} ${name}`, () => {
      const schema = (make as any)(given).schema.input;
      const { valid } = validate(schema, input);
      assert.equal(valid, fits);
    });
  }
});

/** As the scaffolder does it: zod became JSON Schema, which a validator asks. */
function validate(schema: any, input: any): { valid: boolean } {
  const missing = (schema.required ?? []).filter((name: string) => !(name in input));
  const wrong = Object.entries(input).filter(([name, value]) => !fits(schema.properties[name], value));
  return { valid: missing.length + wrong.length === 0 };
}

function fits(schema: any, value: unknown): boolean {
  if (schema.enum) return schema.enum.includes(value);
  if (schema.format === 'uuid') return /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(String(value));
  if (typeof value === 'number') return value >= (schema.minimum ?? -Infinity) && value <= (schema.maximum ?? Infinity);
  return true;
}
