/** Puts the state of what the portal runs into an entity's status, where Backstage shows it. */
import { Entity } from '@backstage/catalog-model';
import { CatalogProcessor } from '@backstage/plugin-catalog-node';
import { PROVIDED_BY, PROVIDER } from './provider';

const PREFIX = 'portal.aiplatform.example.org';
export const STATUS_TYPE = `${PREFIX}/state`;
const LEVELS: Record<string, 'info' | 'warning' | 'error'> = {
  Ready: 'info',
  Pending: 'info',
  Provisioning: 'info',
  Updating: 'info',
  Suspended: 'info',
  Deleting: 'warning',
  Degraded: 'warning',
  Stuck: 'error',
};

type WithStatus = Entity & { status?: { items?: { type: string; level: string; message: string }[] } };

export class PortalStateProcessor implements CatalogProcessor {
  getProcessorName(): string {
    return 'PortalStateProcessor';
  }

  /** After the policies, which take no `status` in what comes from outside. */
  async postProcessEntity(entity: Entity): Promise<Entity> {
    const annotations = entity.metadata.annotations ?? {};
    const state = annotations[`${PREFIX}/state`];
    if (annotations[PROVIDED_BY] !== PROVIDER || !state) {
      return entity;
    }
    const since = annotations[`${PREFIX}/since`];
    const message = [
      since ? `${state} since ${since}` : state,
      annotations[`${PREFIX}/message`],
      annotations[`${PREFIX}/advice`],
    ];
    const own = {
      type: STATUS_TYPE,
      level: LEVELS[state] ?? 'warning', // what is not known is no good news
      message: message.filter(Boolean).join('. '),
    };
    const before = (entity as WithStatus).status?.items ?? [];
    const status = { items: [...before.filter(each => each.type !== STATUS_TYPE), own] };
    return { ...entity, status } as Entity;
  }
}
