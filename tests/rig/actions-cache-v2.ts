// The cache service of GitHub Actions, version 2, on loopback: three methods of a twirp service, as runners call them,
// over a real blob server (Azurite). Keys, versions and the choice of an entry are the service's; bytes are the server's.

import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import {
  BlobSASPermissions,
  BlobServiceClient,
  generateBlobSASQueryParameters,
  StorageSharedKeyCredential,
} from '@azure/storage-blob'

/** One saved archive. */
export interface SavedEntry {
  /** May be changed: an archive under a name that is not its own. */
  key: string
  readonly version: string
  readonly blob: string
  isComplete: boolean
}

export interface CacheService extends AsyncDisposable {
  /** What a runner gives to actions. */
  readonly environment: Readonly<Record<string, string>>
  /** In the order they were reserved. May be emptied. */
  readonly entries: SavedEntry[]
  /** Replaces the archive of an entry where it rests. */
  change(entry: SavedEntry, act: (bytes: Buffer) => Buffer): Promise<void>
  /** Removes the archive and leaves the entry. */
  evict(entry: SavedEntry): Promise<void>
}

const AZURITE = fileURLToPath(new URL('../../node_modules/azurite/dist/src/blob/main.js', import.meta.url))
const SERVICE = '/twirp/github.actions.results.api.v1.CacheService/'

type Answer = { readonly status: number; readonly body: object }

export async function startCacheService(): Promise<CacheService> {
  const folder = mkdtempSync(join(tmpdir(), 'pilot-cache-v2-'))
  const account = 'pilot'
  const secret = randomBytes(32).toString('base64')
  const blobs = await startAzurite(folder, `${account}:${secret}`)
  const credential = new StorageSharedKeyCredential(account, secret)
  const container = new BlobServiceClient(`${blobs.address}/${account}`, credential).getContainerClient(
    'cache',
  )
  await container.create()

  const entries: SavedEntry[] = []
  const token = randomBytes(12).toString('hex')
  const sign = (blob: string, permissions: string): string => {
    const query = generateBlobSASQueryParameters(
      {
        containerName: 'cache',
        blobName: blob,
        permissions: BlobSASPermissions.parse(permissions),
        expiresOn: new Date(Date.now() + 3_600_000),
      },
      credential,
    )
    return `${container.getBlobClient(blob).url}?${query}`
  }
  const methods: Readonly<Record<string, (request: Request) => Answer>> = {
    CreateCacheEntry({ key, version }) {
      if (entries.some((entry) => entry.key === key && entry.version === version)) {
        return { status: 409, body: { code: 'already_exists', msg: 'cache entry with the same key exists' } }
      }
      const entry = { key, version, blob: randomBytes(8).toString('hex'), isComplete: false }
      entries.push(entry)
      return { status: 200, body: { ok: true, signed_upload_url: sign(entry.blob, 'cw') } }
    },
    FinalizeCacheEntryUpload({ key, version }) {
      const index = entries.findIndex((entry) => entry.key === key && entry.version === version)
      const entry = entries[index]
      if (entry) entry.isComplete = true
      return { status: 200, body: { ok: entry !== undefined, entry_id: String(index + 1) } }
    },
    GetCacheEntryDownloadURL({ key, version, restore_keys: prefixes = [] }) {
      const whole = entries.filter((entry) => entry.isComplete && entry.version === version).reverse()
      const found =
        whole.find((entry) => entry.key === key) ??
        prefixes.map((prefix) => whole.find((entry) => entry.key.startsWith(prefix))).find(Boolean)
      if (!found) return { status: 200, body: { ok: false } }
      const body = { ok: true, signed_download_url: sign(found.blob, 'r'), matched_key: found.key }
      return { status: 200, body }
    },
  }
  const server = createServer(async (request, response) => {
    const { status, body } = await answer(request, token, methods)
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    environment: {
      ACTIONS_CACHE_SERVICE_V2: 'true',
      ACTIONS_RESULTS_URL: `http://127.0.0.1:${port}/`,
      ACTIONS_RUNTIME_TOKEN: token,
    },
    entries,
    async change({ blob }, act) {
      const client = container.getBlockBlobClient(blob)
      const bytes = act(await client.downloadToBuffer())
      await client.upload(bytes, bytes.length)
    },
    evict: async ({ blob }) => void (await container.deleteBlob(blob)),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await blobs.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

interface Request {
  readonly key: string
  readonly version: string
  readonly restore_keys?: readonly string[]
}

async function answer(
  request: IncomingMessage,
  token: string,
  methods: Readonly<Record<string, (request: Request) => Answer>>,
): Promise<Answer> {
  const body = await text(request)
  const method = methods[request.url?.startsWith(SERVICE) ? request.url.slice(SERVICE.length) : '']
  if (!method) return { status: 404, body: { code: 'bad_route', msg: `no ${request.url}` } }
  if (request.headers.authorization !== `Bearer ${token}`) {
    return { status: 401, body: { code: 'unauthenticated', msg: 'this is not the token' } }
  }
  return method(JSON.parse(body) as Request)
}

async function startAzurite(
  folder: string,
  accounts: string,
): Promise<{ readonly address: string; readonly stop: () => Promise<void> }> {
  const port = await freePort()
  const words = [AZURITE, '--blobHost', '127.0.0.1', '--blobPort', String(port), '--location', folder]
  // The shell ends the server when this process is gone, however it went: its stdin closes.
  const script = '"$@" >/dev/null 2>"$LOG" & server=$!; cat >/dev/null; kill -9 "$server"; wait "$server"'
  const quiet = ['--silent', '--disableTelemetry', '--skipApiVersionCheck']
  const shell = spawn('sh', ['-c', script, 'sh', process.execPath, ...words, ...quiet], {
    stdio: ['pipe', 'ignore', 'ignore'],
    env: { ...process.env, AZURITE_ACCOUNTS: accounts, LOG: join(folder, 'log') },
    cwd: folder,
  })
  const ended = new Promise<void>((resolve) => void shell.once('close', () => resolve()))
  await untilOpen(port, shell)
  return {
    address: `http://127.0.0.1:${port}`,
    stop: async () => {
      shell.stdin?.end()
      await ended
    },
  }
}

async function untilOpen(port: number, shell: ChildProcess): Promise<void> {
  for (const deadline = performance.now() + 60_000; !(await isOpen(port)); await delay(50)) {
    if (shell.exitCode !== null || performance.now() > deadline) throw new Error('no blob server came up')
  }
}

function isOpen(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    const end = (isIt: boolean) => () => {
      socket.destroy()
      resolve(isIt)
    }
    socket.once('connect', end(true))
    socket.once('error', end(false))
  })
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer()
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo
      server.close(() => resolve(port))
    })
  })
}
