/** A portal for tests: answers each path with what it is told to, in turn; the last answer stays. */
import { createServer, IncomingMessage, Server, ServerResponse } from 'node:http';
import { AddressInfo } from 'node:net';

export type Answer = { status?: number; body?: unknown; raw?: string; headers?: Record<string, string>; cut?: boolean };
export type Seen = { method: string; path: string; query: URLSearchParams; headers: IncomingMessage['headers']; body: any };

export class FakePortal {
  readonly seen: Seen[] = [];
  private readonly answers = new Map<string, Answer[]>();
  private server: Server | undefined;
  url = '';

  on(path: string, ...answers: Answer[]): this {
    this.answers.set(path, answers);
    return this;
  }

  async start(): Promise<this> {
    this.server = createServer((request, response) => void this.answer(request, response));
    await new Promise<void>(done => this.server!.listen(0, '127.0.0.1', done));
    this.url = `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
    return this;
  }

  async stop(): Promise<void> {
    this.server?.closeAllConnections();
    await new Promise(done => (this.server ? this.server.close(done) : done(undefined)));
  }

  count(path: string): number {
    return this.seen.filter(each => each.path === path).length;
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = '';
    for await (const part of request) {
      text += part;
    }
    const at = new URL(request.url!, this.url);
    const path = at.pathname.replace('/api/v1/', '');
    const body = text ? JSON.parse(text) : undefined;
    this.seen.push({ method: request.method!, path, query: at.searchParams, headers: request.headers, body });
    const waiting = this.answers.get(path) ?? [{ status: 404, body: { detail: `nothing at ${path}` } }];
    const said = waiting.length > 1 ? waiting.shift()! : waiting[0]!;
    const content = said.raw ?? JSON.stringify(said.body ?? {});
    response.writeHead(said.status ?? 200, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(content),
      ...said.headers,
    });
    if (said.cut) {
      response.write(content.slice(0, content.length / 2));
      setTimeout(() => response.destroy(), 5);
      return;
    }
    response.end(content);
  }
}

export function entity(name: string, annotations: Record<string, string> = {}) {
  return {
    apiVersion: 'backstage.io/v1alpha1',
    kind: 'Resource',
    metadata: { name, namespace: 'default', annotations },
    spec: { type: 'vector-database', owner: 'group:default/search' },
  };
}
