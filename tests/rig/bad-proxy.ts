// An HTTP proxy that does to answers what networks and services do: alters, truncates, stalls, refuses.

import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Fault =
  | { readonly type: 'flip'; readonly at: number }
  | { readonly type: 'truncate'; readonly at: number }
  | { readonly type: 'stall'; readonly at: number }
  | {
      readonly type: 'status'
      readonly status: number
      readonly headers?: Readonly<Record<string, string>>
      readonly body?: string
    }
  /** Answers with another object. */
  | { readonly type: 'swap'; readonly path: string }

export interface BadProxy extends AsyncDisposable {
  readonly endpoint: string
  /** Method and path of every request, in order. */
  readonly requests: string[]
  /** Asked at every request; `at` of a fault is a share of the body, 0 to 1. */
  fault: (method: string, path: string) => Fault | undefined
}

export async function startBadProxy(target: string): Promise<BadProxy> {
  const { hostname, port } = new URL(target)
  const server = createServer((incoming, outgoing) => {
    const path = incoming.url ?? '/'
    proxy.requests.push(`${incoming.method} ${path}`)
    const fault = proxy.fault(incoming.method ?? '', path)
    if (fault?.type === 'status') {
      incoming.resume()
      outgoing.writeHead(fault.status, fault.headers).end(fault.body)
      return
    }
    const upstream = request(
      {
        hostname,
        port,
        method: incoming.method,
        path: fault?.type === 'swap' ? fault.path : path,
        headers: incoming.headers,
      },
      (answer) => void relay(answer, outgoing, fault),
    )
    upstream.once('error', () => outgoing.destroy())
    incoming.pipe(upstream)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const proxy: BadProxy = {
    // Listening: it has an address.
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests: [],
    fault: () => undefined,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise<void>((resolve) => server.close(() => resolve()))
    },
  }
  return proxy
}

async function relay(
  answer: IncomingMessage,
  outgoing: ServerResponse,
  fault: Fault | undefined,
): Promise<void> {
  const chunks: Buffer[] = []
  for await (const chunk of answer) chunks.push(chunk)
  const body = Buffer.concat(chunks)
  outgoing.writeHead(answer.statusCode ?? 500, answer.headers)
  if (!fault || !('at' in fault) || body.length === 0) {
    outgoing.end(body)
    return
  }
  const at = Math.min(body.length - 1, Math.floor(fault.at * body.length))
  if (fault.type === 'flip') {
    body[at] = (body[at] ?? 0) ^ 0x10
    outgoing.end(body)
  } else if (fault.type === 'truncate') {
    outgoing.write(body.subarray(0, at), () => outgoing.destroy())
  } else {
    // Left hanging, until the client gives up.
    outgoing.write(body.subarray(0, at))
  }
}
