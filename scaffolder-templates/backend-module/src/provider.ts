/**
 * Brings the portal's entities into the catalog: all of them at start, then each change as it happens.
 *
 * Nothing is removed but what the portal says was removed. An answer that fails, is cut, or lacks what was there before
 * (a portal restored to an older state) removes nothing.
 */
import { LoggerService } from '@backstage/backend-plugin-api';
import {
  ANNOTATION_LOCATION,
  ANNOTATION_ORIGIN_LOCATION,
  Entity,
  stringifyEntityRef,
} from '@backstage/catalog-model';
import { DeferredEntity, EntityProvider, EntityProviderConnection } from '@backstage/plugin-catalog-node';
import { setTimeout as sleep } from 'node:timers/promises';
import { Feed } from './feed';
import { PortalRefusal } from './portal';

export const PROVIDER = 'ai-platform-portal';
export const PROVIDED_BY = 'aiplatform.example.org/provided-by';
const SHORTEST = 1_000; // milliseconds between two tries
const LONGEST = 60_000;
const QUICK = 1_000; // an empty answer that came sooner was not waited for

export type Options = {
  feed: Feed;
  baseUrl: string;
  logger: LoggerService;
  /** References of what the catalog has of this provider: asked at each start, since memory is lost then. */
  known: () => Promise<string[]>;
  dropUnknown?: boolean;
  /** For tests: how long to wait, in milliseconds. */
  pause?: (milliseconds: number, signal: AbortSignal) => Promise<void>;
};

export class PortalEntityProvider implements EntityProvider {
  private readonly stopping = new AbortController();
  private cursor: string | undefined;
  private failures = 0;
  private running: Promise<void> | undefined;

  constructor(private readonly options: Options) {}

  getProviderName(): string {
    return PROVIDER;
  }

  async connect(connection: EntityProviderConnection): Promise<void> {
    this.running = this.run(connection);
  }

  /** Ends the reading; resolves when it has ended. */
  async stop(): Promise<void> {
    this.stopping.abort();
    await this.running;
  }

  private async run(connection: EntityProviderConnection): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      let wait = 0;
      try {
        wait = await this.step(connection, signal);
        if (this.failures > 0) {
          this.options.logger.info(`The portal's feed is read again, after ${this.failures} failed tries`);
        }
        this.failures = 0;
      } catch (error) {
        if (signal.aborted) {
          return;
        }
        wait = this.failed(error);
      }
      if (wait > 0) {
        await this.pause(wait, signal);
      }
    }
  }

  /** Reads once, and says how many milliseconds to wait before the next time. */
  private async step(connection: EntityProviderConnection, signal: AbortSignal): Promise<number> {
    if (this.cursor === undefined) {
      this.cursor = await this.whole(connection, signal);
      return 0;
    }
    const began = Date.now();
    const changes = await this.options.feed.changes(this.cursor, signal);
    const nothing = changes.upserted.length + changes.removed.length === 0;
    if (!nothing) {
      await connection.applyMutation({
        type: 'delta',
        added: changes.upserted.map(each => this.deferred(each)),
        removed: changes.removed.map(entityRef => ({ entityRef })),
      });
    }
    this.cursor = changes.cursor;
    return nothing && Date.now() - began < QUICK ? QUICK : 0;
  }

  private async whole(connection: EntityProviderConnection, signal: AbortSignal): Promise<string> {
    const { entities, removed, cursor } = await this.options.feed.whole(signal);
    const there = new Set(entities.map(each => stringifyEntityRef(each)));
    const missing = (await this.options.known()).map(ref => ref.toLowerCase()).filter(ref => !there.has(ref));
    const gone = new Set(removed);
    const unknown = missing.filter(ref => !gone.has(ref));
    if (unknown.length > 0) {
      this.options.logger.warn(
        `${unknown.length} entities are in the catalog, and the portal neither has them nor says that they were ` +
          `removed: ${unknown.slice(0, 5).join(', ')}. They are ${this.options.dropUnknown ? 'dropped' : 'kept'}` +
          `${this.options.dropUnknown ? '' : '; if they are really gone, start once with portal.dropUnknown: true'}`,
      );
    }
    await connection.applyMutation({
      type: 'delta',
      added: entities.map(each => this.deferred(each)),
      removed: (this.options.dropUnknown ? missing : missing.filter(ref => gone.has(ref))).map(entityRef => ({
        entityRef,
      })),
    });
    this.options.logger.info(`${entities.length} entities of the portal are in the catalog`);
    return cursor;
  }

  private failed(error: unknown): number {
    const refusal = error instanceof PortalRefusal ? error : undefined;
    if (refusal?.status === 410) {
      this.cursor = undefined; // too old: read everything anew
    }
    this.failures += 1;
    if (this.failures === 1) {
      const why = refusal ? refusal.message : `it can't be reached (${describe(error)})`;
      this.options.logger.warn(`The portal's feed can't be read, nothing is changed: ${why}. Trying again until it can`);
    }
    const longer = Math.min(SHORTEST * 2 ** Math.min(this.failures - 1, 10), LONGEST);
    const asked = Math.min((refusal?.retryAfter ?? 0) * 1000, LONGEST);
    return Math.max(longer * (0.5 + Math.random() / 2), asked);
  }

  private async pause(milliseconds: number, signal: AbortSignal): Promise<void> {
    const pause = this.options.pause ?? ((time, ending) => sleep(time, undefined, { signal: ending }));
    await pause(milliseconds, signal).catch(() => undefined); // ended while it waited
  }

  private deferred(entity: Entity): DeferredEntity {
    const where = `url:${this.options.baseUrl}`;
    const annotations = {
      [ANNOTATION_LOCATION]: where,
      [ANNOTATION_ORIGIN_LOCATION]: where,
      ...entity.metadata.annotations,
      [PROVIDED_BY]: PROVIDER,
    };
    return { entity: { ...entity, metadata: { ...entity.metadata, annotations } }, locationKey: PROVIDER };
  }
}

function describe(error: unknown): string {
  const cause = error instanceof Error ? (error.cause as { code?: string } | undefined) : undefined;
  return cause?.code ?? (error instanceof Error ? error.name : 'unknown');
}
