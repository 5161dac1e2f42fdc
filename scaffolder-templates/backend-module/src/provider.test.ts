import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { entity, FakePortal } from './fake-portal.test.helper';
import { Feed } from './feed';
import { Portal } from './portal';
import { PortalEntityProvider, PROVIDER } from './provider';

const NOTHING = { upserted: [], removed: [], cursor: 'c', more: false };
const ref = (name: string) => `resource:default/${name}`;
const whole = (names: string[], more: object = {}) => ({
  entities: names.map(name => entity(name)),
  cursor: 'c',
  next: null,
  complete: true,
  ...more,
});

describe('the provider', () => {
  let portal: FakePortal;
  let provider: PortalEntityProvider;
  let known: string[];
  const mutations: any[] = [];
  const logged: string[] = [];

  beforeEach(async () => {
    portal = await new FakePortal().start();
    portal.on('catalog/changes/', { body: NOTHING });
    known = [];
    mutations.length = logged.length = 0;
  });
  afterEach(async () => {
    await provider.stop();
    await portal.stop();
  });

  /** Runs it until it has asked for changes so often (or, with `whole`, for all entities). */
  async function run(options: { dropUnknown?: boolean; changes?: number; whole?: number; for?: number } = {}) {
    const say = (level: string) => (message: string) => void logged.push(`${level}: ${message}`);
    const logger: any = { info: say('info'), warn: say('warn'), error: say('error') };
    provider = new PortalEntityProvider({
      feed: new Feed(new Portal(portal.url), 'secret'),
      baseUrl: portal.url,
      logger,
      known: async () => known,
      dropUnknown: options.dropUnknown,
      pause: async () => void (await sleep(5)),
    });
    await provider.connect({ applyMutation: async (each: any) => void mutations.push(each), refresh: async () => {} });
    const deadline = Date.now() + (options.for ?? 10_000);
    const asked = () =>
      options.whole ? portal.count('catalog/entities/') >= options.whole : portal.count('catalog/changes/') >= wanted;
    const wanted = options.changes ?? 2;
    while (Date.now() < deadline && !asked()) {
      await sleep(5);
    }
  }

  const added = () => mutations.flatMap(each => each.added.map((deferred: any) => deferred.entity.metadata.name));
  const removed = () => mutations.flatMap(each => each.removed.map((gone: any) => gone.entityRef));

  test('reads all pages before it changes anything, with its token', async () => {
    portal.on(
      'catalog/entities/',
      { body: whole(['a'], { next: `${portal.url}/api/v1/catalog/entities/?cursor=2`, complete: false }) },
      { body: whole(['b']) },
    );
    await run();
    assert.deepEqual(added(), ['a', 'b']);
    assert.equal(mutations.length, 1);
    assert.equal(portal.seen[0]!.headers.authorization, 'Bearer secret');
    const { entity: first, locationKey } = mutations[0].added[0];
    assert.equal(locationKey, PROVIDER);
    assert.equal(first.metadata.annotations['backstage.io/managed-by-location'], `url:${portal.url}`);
    assert.equal(first.metadata.annotations['backstage.io/managed-by-origin-location'], `url:${portal.url}`);
  });

  test('goes on with changes from the cursor, and asks the portal to wait', async () => {
    portal.on('catalog/entities/', { body: whole(['a']) });
    portal.on(
      'catalog/changes/',
      { body: { upserted: [entity('b')], removed: [ref('A')], cursor: 'd', more: true } },
      { body: { ...NOTHING, cursor: 'd' } },
    );
    await run({ changes: 3 });
    assert.deepEqual(added(), ['a', 'b']);
    assert.deepEqual(removed(), [ref('a')]);
    const [first, second] = portal.seen.filter(each => each.path === 'catalog/changes/');
    assert.deepEqual([first!.query.get('cursor'), first!.query.get('wait')], ['c', '25']);
    assert.equal(second!.query.get('cursor'), 'd');
  });

  test('after 410 it reads everything anew', async () => {
    portal.on('catalog/entities/', { body: whole(['a']) }, { body: whole(['a', 'b']) });
    portal.on('catalog/changes/', { status: 410, body: { detail: 'too old' } }, { body: NOTHING });
    await run({ changes: 3 });
    assert.equal(portal.count('catalog/entities/'), 2);
    assert.deepEqual(added(), ['a', 'a', 'b']);
  });

  const useless: [string, any][] = [
    ['503', { status: 503, body: { detail: 'paused' } }],
    ['401', { status: 401, body: { detail: 'this token is not valid' } }],
    ['cut in the middle', { body: whole(['a', 'b', 'c']), cut: true }],
    ['garbage', { raw: '<html>' }],
    ['null', { raw: 'null' }],
    ['an object without members', { body: {} }],
    ['incomplete without a next page', { body: whole([], { complete: false }) }],
    ['complete with a next page', { body: whole([], { next: 'x/api/v1/catalog/entities/?cursor=2' }) }],
    ['a next page elsewhere', { body: whole([], { next: 'http://evil.example.org/', complete: false }) }],
    ['something that is no entity', { body: whole([], { entities: [{ kind: 'Resource' }] }) }],
    ['entities that are no list', { body: whole([], { entities: {} }) }],
    ['no cursor', { body: whole([], { cursor: null }) }],
  ];
  for (const [name, answer] of useless) {
    test(`an answer that is ${name} changes nothing, and is asked for again`, async () => {
      known = [ref('a')];
      portal.on('catalog/entities/', answer, answer, { body: whole(['a']) });
      await run();
      assert.equal(removed().length, 0);
      assert.deepEqual(added(), ['a'], 'once it answers well');
      assert.equal(logged.filter(line => line.startsWith('warn')).length, 1, logged.join('\n'));
      assert.equal(logged.filter(line => line.includes('is read again, after 2')).length, 1);
    });
  }

  test('a failed answer to changes loses nothing: the same cursor is asked for again', async () => {
    portal.on('catalog/entities/', { body: whole(['a']) });
    portal.on(
      'catalog/changes/',
      { body: { upserted: [entity('b')], removed: [], cursor: 'd', more: false }, cut: true },
      { body: { upserted: [entity('b')], removed: [], cursor: 'd', more: false } },
      { body: { ...NOTHING, cursor: 'd' } },
    );
    await run({ changes: 4 });
    assert.deepEqual(added(), ['a', 'b']);
    const asked = portal.seen.filter(each => each.path === 'catalog/changes/').map(each => each.query.get('cursor'));
    assert.deepEqual(asked.slice(0, 3), ['c', 'c', 'd']);
  });

  test('a portal that was restored empty deletes nothing', async () => {
    known = [ref('a'), ref('b')];
    portal.on('catalog/entities/', { body: whole([]) });
    await run();
    assert.deepEqual(removed(), []);
    assert.match(logged.join('\n'), /2 entities are in the catalog.*They are kept/);
  });

  test('what the portal says was removed while Backstage was away is removed', async () => {
    known = [ref('a'), ref('b'), ref('c')];
    portal.on('catalog/entities/', { body: whole(['c'], { removed: [ref('a')] }) });
    await run();
    assert.deepEqual(removed(), [ref('a')], 'and b is kept');
  });

  test('what is unknown is dropped when that is asked for', async () => {
    known = [ref('a')];
    portal.on('catalog/entities/', { body: whole([]) });
    await run({ dropUnknown: true });
    assert.deepEqual(removed(), [ref('a')]);
  });

  test('while the portal is away it goes on trying, and says so once', async () => {
    await portal.stop();
    await run({ for: 200 });
    assert.equal(logged.length, 1, logged.join('\n'));
    assert.match(logged[0]!, /can't be reached \(ECONNREFUSED\)/);
  });

  test('the token stands in no log', async () => {
    portal.on('catalog/entities/', { status: 500, body: { detail: 'oh' } });
    await run({ whole: 3 });
    assert.ok(!logged.join('\n').includes('secret'));
  });

  test('it ends while it waits', async () => {
    portal.on('catalog/entities/', { body: whole([]) });
    await run();
    const before = portal.seen.length;
    await provider.stop();
    await sleep(50);
    assert.equal(portal.seen.length, before);
  });
});
