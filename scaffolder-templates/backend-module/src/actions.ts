/** Scaffolder actions: requests to the portal in the name of the person who runs the template. */
import { AuthService, BackstageCredentials } from '@backstage/backend-plugin-api';
import { JsonObject } from '@backstage/types';
import { createTemplateAction } from '@backstage/plugin-scaffolder-node';
import { setTimeout as sleep } from 'node:timers/promises';
import { isObject, Json, Portal, PortalRefusal, textAt } from './portal';

export const AUDIENCE = 'portal'; // whom the portal's tokens are for: it takes them from the scaffolder
const LOOK_EVERY = 2_000; // milliseconds
const DECIDED = new Set(['Approved', 'Delivering', 'Done']);
const ENDED_BADLY = new Set(['Denied', 'Rejected', 'Withdrawn', 'Expired', 'Failed', 'Superseded']);

export type Dependencies = { portal: Portal; auth: AuthService; lookEvery?: number };

type Context = {
  isDryRun?: boolean;
  signal?: AbortSignal;
  task: { id: string };
  step?: { id?: string };
  logger: { info(message: string): void; warn(message: string): void };
  getInitiatorCredentials(): Promise<BackstageCredentials>;
};

type Shown = {
  requestId: string;
  state: string;
  decision: string;
  price: string;
  next: string;
  reasons: string[];
  requestUrl: string;
  instanceId: string;
};

export function createRequest(given: Dependencies) {
  return createTemplateAction({
    id: 'portal:request:create',
    description: "Submits a request to the portal. Runs again without harm: the task's id makes it one request",
    supportsDryRun: true,
    schema: { input: { body: bodySchema }, output },
    async handler(ctx) {
      if (ctx.isDryRun) {
        await previewed(given, ctx, ctx.input.body as Json);
        return;
      }
      const key = `${ctx.task.id}-${ctx.step?.id ?? 'request'}`;
      const answer = await ask(given, ctx, 'requests/', ctx.input.body as Json, { 'idempotency-key': key });
      const request = shown(answer);
      tell(ctx, request);
      if (request.state === 'Denied') {
        throw refusal('The portal denied this request', request);
      }
      put(ctx, request);
    },
  });
}

export function previewRequest(given: Dependencies) {
  return createTemplateAction({
    id: 'portal:request:preview',
    description: 'Says what a request would cost and who would have to approve it. Writes nothing',
    supportsDryRun: true,
    schema: { input: { body: bodySchema }, output: previewOutput },
    async handler(ctx) {
      const found = await previewed(given, ctx, ctx.input.body as Json);
      for (const [name, value] of Object.entries(found)) {
        ctx.output(name as keyof typeof found, value);
      }
    },
  });
}

export function waitForRequest(given: Dependencies) {
  return createTemplateAction({
    id: 'portal:request:wait',
    description: 'Waits until a request is decided, or until what it asks for is ready',
    supportsDryRun: true,
    schema: {
      input: {
        requestId: z => z.string().uuid().describe('Of portal:request:create'),
        until: z => z.enum(['decided', 'ready']).default('ready').describe('What to wait for'),
        timeoutSeconds: z => z.number().int().min(1).max(86_400).default(3_600).describe('How long at most'),
      },
      output,
    },
    async handler(ctx) {
      if (ctx.isDryRun) {
        ctx.logger.info('Nothing to wait for in a dry run');
        return;
      }
      const { requestId, until = 'ready', timeoutSeconds = 3_600 } = ctx.input;
      const deadline = Date.now() + timeoutSeconds * 1000;
      let last = '';
      for (;;) {
        const request = await looked(given, ctx, requestId);
        if (request) {
          last = tell(ctx, request, last);
          if (ENDED_BADLY.has(request.state)) {
            throw refusal(`The request is ${request.state}`, request);
          }
          if (request.state === 'Done' || (until === 'decided' && DECIDED.has(request.state))) {
            put(ctx, request);
            return;
          }
        }
        if (Date.now() >= deadline) {
          const where = request ? ` It is ${request.state}: ${request.next} ${request.requestUrl}` : '';
          throw new Error(`Not ${until} within ${timeoutSeconds} s; the request goes on by itself.${where}`);
        }
        await sleep(given.lookEvery ?? LOOK_EVERY, undefined, { signal: ctx.signal });
      }
    },
  });
}

export function voteOnRequest(given: Dependencies) {
  return createTemplateAction({
    id: 'portal:request:vote',
    description: "Approves or rejects a request as the person who runs the template; the portal's rules hold",
    supportsDryRun: true,
    schema: {
      input: {
        requestId: z => z.string().uuid(),
        answer: z => z.enum(['approve', 'reject']),
        comment: z => z.string().max(10_000).default(''),
      },
      output,
    },
    async handler(ctx) {
      const { requestId, answer, comment = '' } = ctx.input;
      if (ctx.isDryRun) {
        ctx.logger.info(`Would ${answer} request ${requestId}`);
        return;
      }
      const request = shown(await ask(given, ctx, `requests/${requestId}/${answer}/`, { comment }));
      tell(ctx, request);
      put(ctx, request);
    },
  });
}

const bodySchema = (z: any) =>
  z.record(z.string(), z.any()).describe("The body of the portal's POST /api/v1/requests/, see its /api/v1/docs/");

const output = {
  requestId: (z: any) => z.string().describe("The request's id"),
  state: (z: any) => z.string().describe('Its state, for example Waiting or Done'),
  decision: (z: any) => z.string().describe('What the policies say, in a sentence'),
  price: (z: any) => z.string().describe('What it costs at most, in a sentence'),
  next: (z: any) => z.string().describe('Who or what is next, in a sentence'),
  reasons: (z: any) => z.array(z.string()).describe('Each reason of the decision'),
  requestUrl: (z: any) => z.string().describe("The request's page in the portal"),
  instanceId: (z: any) => z.string().describe('What it is about; empty for a quota'),
};
const previewOutput = {
  decision: output.decision,
  price: output.price,
  next: output.next,
  reasons: output.reasons,
};

async function previewed(given: Dependencies, ctx: Context, body: Json) {
  const found = shown(await ask(given, ctx, 'requests/preview/', body));
  tell(ctx, found);
  const { decision, price, next, reasons } = found;
  return { decision, price, next, reasons };
}

/** The request now; undefined while the portal can't be reached: it goes on without us. */
async function looked(given: Dependencies, ctx: Context, id: string): Promise<Shown | undefined> {
  try {
    return shown(await ask(given, ctx, `requests/${id}/`));
  } catch (error) {
    if (ctx.signal?.aborted || (error instanceof PortalRefusal && error.status < 500 && error.status !== 429)) {
      throw error;
    }
    ctx.logger.warn('The portal does not answer; still waiting');
    return undefined;
  }
}

async function ask(
  given: Dependencies,
  ctx: Context,
  path: string,
  body?: Json,
  headers?: Record<string, string>,
): Promise<Json> {
  const onBehalfOf = await ctx.getInitiatorCredentials();
  const { token } = await given.auth.getPluginRequestToken({ onBehalfOf, targetPluginId: AUDIENCE });
  const method = body === undefined ? 'GET' : 'POST';
  return given.portal.ask(path, { token, method, body, headers, signal: ctx.signal });
}

/** What people are told of an answer; the portal makes the sentences. */
export function shown(answer: Json): Shown {
  const summary = isObject(answer) && isObject(answer.summary) ? answer.summary : {};
  const decision = isObject(answer) && isObject(answer.decision) ? answer.decision : answer;
  const rows = isObject(decision) && Array.isArray(decision.reasons) ? decision.reasons : [];
  const own = Array.isArray(summary.reasons) ? summary.reasons : rows.map(each => textAt(each, 'message') ?? '');
  return {
    requestId: textAt(answer, 'id') ?? '',
    state: textAt(answer, 'state') ?? '',
    decision: textAt(summary, 'decision') ?? textAt(decision, 'outcome') ?? '',
    price: textAt(summary, 'price') ?? '',
    next: textAt(summary, 'next') ?? '',
    reasons: own.filter((each): each is string => typeof each === 'string' && each !== ''),
    requestUrl: textAt(answer, 'links', 'page') ?? '',
    instanceId: textAt(answer, 'instance') ?? '',
  };
}

function refusal(what: string, request: Shown): Error {
  return new Error([`${what}:`, ...request.reasons.map(each => `- ${each}`), request.requestUrl].join('\n'));
}

/** Logs what is new since `last`, and returns what was said. */
function tell(ctx: Context, request: Shown, last = ''): string {
  const said = [request.state, request.decision, request.price, request.next].filter(Boolean).join(' · ');
  if (said !== last) {
    ctx.logger.info(said);
  }
  return said;
}

function put(ctx: { output(name: any, value: any): void }, request: Shown): void {
  for (const [name, value] of Object.entries(request)) {
    ctx.output(name, value as JsonObject[string]);
  }
}
