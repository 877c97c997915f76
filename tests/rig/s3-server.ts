// A real S3 server on loopback: SeaweedFS, on free ports, with a random key. It ends with the process that started it.

import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { parseS3Address } from '../../src/store/s3/address.ts'
import { openS3Objects } from '../../src/store/s3/objects.ts'
import { programIn, unpackWheels } from './wheel-tools.ts'

export interface S3Server extends AsyncDisposable {
  readonly endpoint: string
  /** Credentials, as the SDK reads them from the environment; this process has them already. */
  readonly environment: Readonly<Record<string, string>>
  /** Address of a store in it. @param prefix @param endpoint of a proxy before it */
  address(prefix: string, endpoint?: string): string
}

/** @param folder of the server's data; a fresh temporary one by default */
export async function startS3Server(folder = mkdtempSync(join(tmpdir(), 'pilot-s3-'))): Promise<S3Server> {
  const program = programIn(unpackWheels('s3'), 'weed')
  const key = {
    accessKey: `key${randomBytes(6).toString('hex')}`,
    secretKey: randomBytes(16).toString('hex'),
  }
  const data = join(folder, 'data')
  mkdirSync(data, { recursive: true })
  const actions = ['Admin', 'Read', 'Write', 'List', 'Tagging']
  const config = join(folder, 's3.json')
  writeFileSync(config, JSON.stringify({ identities: [{ name: 'pilot', credentials: [key], actions }] }))
  const ports = await freePorts(5)
  const [s3, master, volume, filer, admin] = ports
  const words = [
    ...'-logtostderr=true mini -ip=127.0.0.1 -ip.bind=127.0.0.1 -master.telemetry=false -admin.ui=false'.split(
      ' ',
    ),
    ...'-webdav=false -s3.port.iceberg=0 -s3.port.lance=0 -bucket=pilot'.split(' '),
    ...[`-dir=${data}`, `-s3.config=${config}`, `-s3.port=${s3}`, `-master.port=${master}`],
    ...[`-volume.port=${volume}`, `-filer.port=${filer}`, `-admin.port=${admin}`],
  ]
  // The shell ends the server when this process is gone, however it went: its stdin closes.
  const script = '"$@" 2>"$LOG" & server=$!; cat >/dev/null; kill -9 "$server"; wait "$server"'
  const shell = spawn('sh', ['-c', script, 'sh', program, ...words], {
    stdio: ['pipe', 'ignore', 'inherit'],
    env: { ...process.env, LOG: join(folder, 'log') },
    cwd: folder,
  })
  const ended = new Promise<void>((resolve) => void shell.once('close', () => resolve()))
  const endpoint = `http://127.0.0.1:${s3}`
  const address = (prefix: string, by = endpoint) => `s3://pilot/${prefix}?endpoint=${by}&region=us-east-1`
  const environment = {
    AWS_ACCESS_KEY_ID: key.accessKey,
    AWS_SECRET_ACCESS_KEY: key.secretKey,
    AWS_EC2_METADATA_DISABLED: 'true',
  }
  Object.assign(process.env, environment)
  await untilReady(address('ready'))
  return {
    endpoint,
    environment,
    address,
    async [Symbol.asyncDispose]() {
      shell.stdin.end()
      await ended
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** The bucket is made a moment after the port opens. */
async function untilReady(address: string): Promise<void> {
  const objects = await openS3Objects({ address: parseS3Address(address), idleMs: 15_000, attempts: 1 })
  const deadline = performance.now() + 60_000
  for (;;) {
    const answer = await objects.put('ready', Buffer.of(1)).catch((error: unknown) => String(error))
    const read = await objects.get('ready').catch(() => undefined)
    if (read) return
    if (performance.now() > deadline) throw new Error(`the S3 server does not answer: ${answer}`)
    await delay(50)
  }
}

/** Ports that are free now, and 10,000 above too: the server listens there for gRPC. */
async function freePorts(count: number): Promise<readonly number[]> {
  const ports: number[] = []
  while (ports.length < count) {
    const port = 20_000 + Math.floor(Math.random() * 12_000)
    if (!ports.includes(port) && (await isFree(port)) && (await isFree(port + 10_000))) ports.push(port)
  }
  return ports
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}
