/** One feature that brings the portal into Backstage: `backend.add(import('@ai-platform-portal/backstage-backend-module'))`. */
import { coreServices, createBackendFeatureLoader, createBackendModule } from '@backstage/backend-plugin-api';
import { stringifyEntityRef } from '@backstage/catalog-model';
import { catalogProcessingExtensionPoint, catalogServiceRef } from '@backstage/plugin-catalog-node';
import { scaffolderActionsExtensionPoint } from '@backstage/plugin-scaffolder-node';
import { createRequest, previewRequest, voteOnRequest, waitForRequest } from './actions';
import { Feed } from './feed';
import { Portal } from './portal';
import { PortalStateProcessor } from './processor';
import { PortalEntityProvider, PROVIDED_BY, PROVIDER } from './provider';

export const catalogModulePortal = createBackendModule({
  pluginId: 'catalog',
  moduleId: PROVIDER,
  register(env) {
    env.registerInit({
      deps: {
        auth: coreServices.auth,
        catalog: catalogServiceRef,
        config: coreServices.rootConfig,
        lifecycle: coreServices.lifecycle,
        logger: coreServices.logger,
        processing: catalogProcessingExtensionPoint,
      },
      async init({ auth, catalog, config, lifecycle, logger, processing }) {
        const baseUrl = config.getString('portal.baseUrl');
        const provider = new PortalEntityProvider({
          feed: new Feed(new Portal(baseUrl), config.getString('portal.token')),
          baseUrl,
          logger,
          dropUnknown: config.getOptionalBoolean('portal.dropUnknown') ?? false,
          async known() {
            const refs: string[] = [];
            const asked = {
              filter: { [`metadata.annotations.${PROVIDED_BY}`]: PROVIDER },
              fields: ['kind', 'metadata.name', 'metadata.namespace'],
            };
            const credentials = await auth.getOwnServiceCredentials();
            for await (const page of catalog.streamEntities(asked, { credentials })) {
              refs.push(...page.map(each => stringifyEntityRef(each)));
            }
            return refs;
          },
        });
        processing.addEntityProvider(provider);
        processing.addProcessor(new PortalStateProcessor());
        lifecycle.addShutdownHook(() => provider.stop());
      },
    });
  },
});

export const scaffolderModulePortal = createBackendModule({
  pluginId: 'scaffolder',
  moduleId: PROVIDER,
  register(env) {
    env.registerInit({
      deps: { auth: coreServices.auth, config: coreServices.rootConfig, scaffolder: scaffolderActionsExtensionPoint },
      async init({ auth, config, scaffolder }) {
        const given = { portal: new Portal(config.getString('portal.baseUrl')), auth };
        scaffolder.addActions(createRequest(given), previewRequest(given), waitForRequest(given), voteOnRequest(given));
      },
    });
  },
});

export default createBackendFeatureLoader({
  *loader() {
    yield catalogModulePortal;
    yield scaffolderModulePortal;
  },
});
