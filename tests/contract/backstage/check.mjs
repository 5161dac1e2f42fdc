// Judges entities by Backstage's own rules: a JSON list of entities on standard input, a JSON list of verdicts on standard
// output, null for an accepted entity and {policy, message} of the first refusal otherwise.
//
// usage: node check.mjs FOLDER   (FOLDER holds node_modules, see package.json)
//
// The policies are those that @backstage/plugin-catalog-backend combines in its CatalogBuilder, then the kind's validator
// as in its BuiltinKindsEntityProcessor, then what it reads from an accepted entity: owner and locations (2026-12-01).
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

const model = createRequire(resolve(process.argv[2], 'package.json'))('@backstage/catalog-model');

const policies = [
  new model.SchemaValidEntityPolicy(),
  new model.DefaultNamespaceEntityPolicy(),
  new model.NoForeignRootFieldsEntityPolicy(),
  new model.FieldFormatEntityPolicy(),
];
const kinds = {
  API: model.apiEntityV1alpha1Validator,
  System: model.systemEntityV1alpha1Validator,
  Component: model.componentEntityV1alpha1Validator,
  Resource: model.resourceEntityV1alpha1Validator,
};

async function checkKind(entity) {
  const validator = kinds[entity.kind];
  if (!validator || !(await validator.check(entity))) {
    throw new Error(`no validator takes kind ${entity.kind} of ${entity.apiVersion}`);
  }
}

function checkReferences(entity) {
  // Written in full: what is left out is taken from where the reader is.
  const full = (ref, kind) => {
    const { kind: named, namespace, name } = model.parseEntityRef(ref);
    if (named.toLowerCase() !== kind || model.stringifyEntityRef({ kind, namespace, name }) !== ref) {
      throw new Error(`${ref} is not written as ${kind}:namespace/name`);
    }
  };
  full(entity.spec.owner, 'group');
  if (entity.spec.system) full(entity.spec.system, 'system');
  for (const ref of entity.spec.providesApis ?? []) full(ref, 'api');
  for (const key of [model.ANNOTATION_LOCATION, model.ANNOTATION_ORIGIN_LOCATION]) {
    model.parseLocationRef(entity.metadata.annotations?.[key]);
  }
}

async function refusal(entity) {
  let at = 'none';
  try {
    for (const policy of policies) {
      at = policy.constructor.name;
      await policy.enforce(entity);
    }
    at = 'KindValidator';
    await checkKind(entity);
    at = 'References';
    checkReferences(entity);
    return null;
  } catch (error) {
    return { policy: at, message: String(error.message) };
  }
}

const entities = JSON.parse(readFileSync(0, 'utf8'));
process.stdout.write(JSON.stringify(await Promise.all(entities.map(refusal))));
