// For this machine only: whoever can reach the port may sign in as anybody of the catalog, by the header `x-local-user`.
// The tokens are real ones of the real auth backend. Never install this anywhere: it refuses to start on an address that
// others can reach.
import { coreServices, createBackendModule } from '@backstage/backend-plugin-api';
import { AuthenticationError } from '@backstage/errors';
import { authProvidersExtensionPoint, createProxyAuthProviderFactory } from '@backstage/plugin-auth-node';

const LOOPBACK = ['127.0.0.1', '::1', 'localhost'];
const HEADER = 'x-local-user';

export default createBackendModule({
  pluginId: 'auth',
  moduleId: 'local-sign-in',
  register(reg) {
    reg.registerInit({
      deps: { providers: authProvidersExtensionPoint, config: coreServices.rootConfig },
      async init({ providers, config }) {
        const host = config.getOptionalString('backend.listen.host');
        if (!LOOPBACK.includes(host)) {
          throw new Error(`local sign-in: backend.listen.host is ${host}; only ${LOOPBACK.join(', ')} will do`);
        }
        providers.registerProvider({
          providerId: 'local',
          factory: createProxyAuthProviderFactory({
            authenticator: {
              defaultProfileTransform: async ({ name }) => ({ profile: { displayName: name } }),
              initialize: () => undefined,
              async authenticate({ req }) {
                const name = req.header(HEADER);
                if (!name) {
                  throw new AuthenticationError(`local sign-in: the header ${HEADER} is missing; give the name of a User entity`);
                }
                return { result: { name } };
              },
            },
            // Only people of the catalog: it fails for a name that is not there.
            signInResolver: ({ result }, context) =>
              context.signInWithCatalogUser({ entityRef: { kind: 'User', namespace: 'default', name: result.name } }),
          }),
        });
      },
    });
  },
});
