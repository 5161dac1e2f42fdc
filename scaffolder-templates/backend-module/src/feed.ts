/** The portal's catalog feed, read whole or as changes. What is not complete and well-formed throws. */
import { Entity, stringifyEntityRef } from '@backstage/catalog-model';
import { isObject, Json, Portal, PortalRefusal } from './portal';

export const WAIT = 25; // seconds that the portal may hold a question for changes
const MAX_PAGES = 10_000;

/** `removed` are references of what is known to have gone, so that it may go from the catalog too. */
export type Whole = { entities: Entity[]; removed: string[]; cursor: string };
export type Changes = { upserted: Entity[]; removed: string[]; cursor: string; more: boolean };

export class Feed {
  constructor(
    private readonly portal: Portal,
    private readonly token: string,
  ) {}

  /** All entities. A change while the pages are read comes again with `changes` from the cursor. */
  async whole(signal?: AbortSignal): Promise<Whole> {
    let path: string | undefined = 'catalog/entities/';
    let first: string | undefined;
    const entities = new Map<string, Entity>();
    let removed: string[] = [];
    for (let page = 0; path !== undefined; page++) {
      if (page >= MAX_PAGES) {
        throw malformed('more pages than there can be');
      }
      const answer = await this.portal.ask(path, { token: this.token, signal });
      if (!isObject(answer) || typeof answer.complete !== 'boolean') {
        throw malformed('`complete` is missing');
      }
      for (const each of entitiesIn(answer.entities, 'entities')) {
        entities.set(stringifyEntityRef(each), each);
      }
      first ??= cursorIn(answer.cursor);
      path = nextOf(answer.next);
      if (answer.complete !== (path === undefined)) {
        throw malformed('`complete` and `next` contradict each other');
      }
      removed = answer.removed === undefined ? [] : refsIn(answer.removed, 'removed');
    }
    return { entities: [...entities.values()], removed, cursor: first! };
  }

  /** What changed since a cursor; the portal waits for something to happen, up to WAIT seconds. */
  async changes(cursor: string, signal?: AbortSignal): Promise<Changes> {
    const query = new URLSearchParams({ cursor, wait: String(WAIT) });
    const asked = { token: this.token, signal, timeout: (WAIT + 15) * 1000 };
    const answer = await this.portal.ask(`catalog/changes/?${query}`, asked);
    if (!isObject(answer) || typeof answer.more !== 'boolean') {
      throw malformed('`more` is missing');
    }
    return {
      upserted: entitiesIn(answer.upserted, 'upserted'),
      removed: refsIn(answer.removed, 'removed'),
      cursor: cursorIn(answer.cursor),
      more: answer.more,
    };
  }
}

function malformed(how: string): PortalRefusal {
  return new PortalRefusal(502, [`The portal's feed can't be used: ${how}.`]);
}

function cursorIn(value: Json | undefined): string {
  if (typeof value !== 'string' || value === '') {
    throw malformed('`cursor` is missing');
  }
  return value;
}

/** The rest of the address of the next page, below /api/v1/: the token is sent to no other place. */
function nextOf(value: Json | undefined): string | undefined {
  if (value === null) {
    return undefined;
  }
  const found = typeof value === 'string' ? /\/api\/v1\/(catalog\/entities\/\?.*)$/.exec(value) : null;
  if (!found) {
    throw malformed('`next` is no page of it');
  }
  return found[1];
}

function entitiesIn(value: Json | undefined, member: string): Entity[] {
  if (!Array.isArray(value)) {
    throw malformed(`\`${member}\` is no list`);
  }
  return value.map(each => {
    const fits =
      isObject(each) &&
      typeof each.apiVersion === 'string' &&
      typeof each.kind === 'string' &&
      isObject(each.metadata) &&
      typeof each.metadata.name === 'string';
    if (!fits) {
      throw malformed(`something in \`${member}\` is no entity`);
    }
    return each as unknown as Entity;
  });
}

function refsIn(value: Json | undefined, member: string): string[] {
  if (!Array.isArray(value) || !value.every((each): each is string => typeof each === 'string')) {
    throw malformed(`\`${member}\` is no list of references`);
  }
  return value.map(each => each.toLowerCase());
}
