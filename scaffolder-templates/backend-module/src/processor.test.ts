import assert from 'node:assert/strict';
import { test } from 'node:test';
import { entity } from './fake-portal.test.helper';
import { PortalStateProcessor, STATUS_TYPE } from './processor';
import { PROVIDED_BY, PROVIDER } from './provider';

const P = 'portal.aiplatform.example.org';
const processed = async (annotations: Record<string, string>, more: object = {}) =>
  (await new PortalStateProcessor().postProcessEntity({ ...entity('a', annotations), ...more } as any)) as any;

const levels: [string, string][] = [
  ['Ready', 'info'],
  ['Provisioning', 'info'],
  ['Suspended', 'info'],
  ['Deleting', 'warning'],
  ['Degraded', 'warning'],
  ['Stuck', 'error'],
  ['Unknown', 'warning'],
  ['SomethingNew', 'warning'],
];
for (const [state, level] of levels) {
  test(`${state} is ${level}`, async () => {
    const found = await processed({ [PROVIDED_BY]: PROVIDER, [`${P}/state`]: state });
    assert.deepEqual(found.status.items, [{ type: STATUS_TYPE, level, message: state }]);
  });
}

test('since when, why, and what to do are said', async () => {
  const found = await processed({
    [PROVIDED_BY]: PROVIDER,
    [`${P}/state`]: 'Degraded',
    [`${P}/since`]: '2026-12-01T00:00:00Z',
    [`${P}/message`]: 'no pod',
    [`${P}/advice`]: 'ask the platform team',
  });
  assert.equal(
    found.status.items[0].message,
    'Degraded since 2026-12-01T00:00:00Z. no pod. ask the platform team',
  );
});

test('what others say stays, and its own is there once', async () => {
  const others = { type: 'x', level: 'error', message: 'y' };
  const own = { type: STATUS_TYPE, level: 'info', message: 'old' };
  const annotations = { [PROVIDED_BY]: PROVIDER, [`${P}/state`]: 'Ready' };
  const found = await processed(annotations, { status: { items: [others, own] } });
  assert.deepEqual(found.status.items.map((each: any) => each.type), ['x', STATUS_TYPE]);
});

test("somebody else's entity is left alone, whatever it says", async () => {
  assert.equal((await processed({ [`${P}/state`]: 'Ready' })).status, undefined);
  assert.equal((await processed({ [PROVIDED_BY]: PROVIDER })).status, undefined);
});
