// A Backstage backend for this machine only. In charge of: which plugins run together.
// Not in charge of: where it listens and what it is wired to (app-config.yaml and portal/running/backstage/).
import { createRequire } from 'node:module';
import { createBackend } from '@backstage/backend-defaults';

const backend = createBackend();

backend.add(import('@backstage/plugin-auth-backend'));
backend.add(import('./local-sign-in.mjs'));

backend.add(import('@backstage/plugin-catalog-backend'));
backend.add(import('@backstage/plugin-catalog-backend-module-scaffolder-entity-model'));

backend.add(import('@backstage/plugin-proxy-backend'));

backend.add(import('@backstage/plugin-scaffolder-backend'));
backend.add(import('@roadiehq/scaffolder-backend-module-http-request'));

backend.add(import('@backstage/plugin-notifications-backend'));

// The project's own: catalog provider, status processor, scaffolder actions. Its folder is beside this file.
backend.add(import(createRequire(import.meta.url).resolve('./backend-module')));

// A plugin that does not come up must end the process: what is left of the others would keep it alive.
await backend.start().catch(error => {
  console.error(String(error?.stack ?? error));
  process.exit(1);
});
