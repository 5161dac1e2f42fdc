/** The portal's API as this package uses it: bounded in time, its refusals with the portal's own reasons. */

export const DEFAULT_TIMEOUT = 30_000; // milliseconds

/** An answer that is no success. `reasons` are the portal's, one line each. */
export class PortalRefusal extends Error {
  constructor(
    readonly status: number,
    readonly reasons: string[],
    readonly retryAfter?: number,
  ) {
    super(reasons.join('\n'));
    this.name = 'PortalRefusal';
  }
}

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export type Asked = {
  token: string;
  method?: 'GET' | 'POST';
  body?: Json;
  headers?: Record<string, string>;
  timeout?: number;
  signal?: AbortSignal;
};

export class Portal {
  private readonly api: string;

  constructor(baseUrl: string) {
    this.api = `${baseUrl.replace(/\/+$/, '')}/api/v1`;
  }

  /** The parsed answer to a question below /api/v1/. Throws PortalRefusal; TypeError or AbortError on the wire's. */
  async ask(path: string, asked: Asked): Promise<Json> {
    const limits = [AbortSignal.timeout(asked.timeout ?? DEFAULT_TIMEOUT), ...(asked.signal ? [asked.signal] : [])];
    const answer = await fetch(`${this.api}/${path}`, {
      method: asked.method ?? 'GET',
      headers: {
        accept: 'application/json',
        authorization: `Bearer ${asked.token}`,
        ...(asked.body === undefined ? {} : { 'content-type': 'application/json' }),
        ...asked.headers,
      },
      body: asked.body === undefined ? undefined : JSON.stringify(asked.body),
      redirect: 'error', // a token goes to the portal and nowhere else
      signal: AbortSignal.any(limits),
    });
    const text = await answer.text(); // an answer that was cut in the middle throws here
    if (!answer.ok) {
      const seconds = Number(answer.headers.get('retry-after'));
      throw new PortalRefusal(answer.status, reasonsOf(answer.status, text), seconds > 0 ? seconds : undefined);
    }
    return parse(text);
  }
}

export function isObject(value: unknown): value is { [key: string]: Json } {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function textAt(value: unknown, ...steps: string[]): string | undefined {
  let found: unknown = value;
  for (const step of steps) {
    found = isObject(found) ? found[step] : undefined;
  }
  return typeof found === 'string' ? found : undefined;
}

function parse(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    throw new PortalRefusal(502, ['The portal answered with something that is no JSON; is portal.baseUrl right?']);
  }
}

/** RFC 9457: one line for each wrong field, else the detail. */
function reasonsOf(status: number, text: string): string[] {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    body = undefined;
  }
  const errors = isObject(body) && Array.isArray(body.errors) ? body.errors : [];
  const lines = errors.flatMap(each => {
    const message = textAt(each, 'message');
    return message ? [`${textAt(each, 'pointer') || 'the request'}: ${message}`] : [];
  });
  return lines.length > 0 ? lines : [textAt(body, 'detail') ?? `The portal answered ${status}.`];
}
