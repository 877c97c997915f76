// A container registry on a free port of this machine, with an image of busybox and nothing else, and a podman whose
// images and containers are the test's own. All of it ends with the test.

import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { removeAll } from './project.ts'
import { until } from './until.ts'

const NEEDED = ['podman', 'skopeo', 'docker-registry', 'busybox'] as const

const missing = NEEDED.filter((name) => pathOf(name) === undefined)

/** For `describe.skipIf`, and the reason for the name of what is skipped. */
export const noContainers = missing.length > 0 && `needs ${missing.join(', ')}`

export interface TestRegistry extends AsyncDisposable {
  /** Folder of all that is its own: it stands in the command line of every process of podman here. */
  readonly root: string
  /** What pilot is started with to use it. */
  readonly environment: Readonly<Record<string, string>>
  /** `127.0.0.1:port`. */
  readonly address: string
  /** Builds an image of busybox and these lines of a Containerfile, and pushes it under a tag of `box`.
   *  @returns `name@sha256:…` */
  push(tag: string, lines?: readonly string[]): string
  /** Takes an image out of podman's own images. */
  forget(image: string): void
  /** Digest of the configuration of an image that is here. */
  configOf(image: string): string
  /** Names of the containers there are, in whatever state, also those that podman itself lost sight of. */
  containers(): readonly string[]
  /** Resolves when no process of podman is left, whatever started it. */
  isQuiet(): Promise<void>
  /** Ends the registry; the images that are here stay. */
  stop(): Promise<void>
}

export async function openRegistry(): Promise<TestRegistry> {
  const root = mkdtempSync(join(tmpdir(), 'pilot-reg-'))
  const address = `127.0.0.1:${await freePort()}`
  const environment = writeSettings(root, address)
  const server = await startServer(root, address)
  const podman = (...words: readonly string[]): string => {
    const args = [...(environment['PILOT_CONTAINER_ARGS'] ?? '').split(' '), ...words]
    const env = { ...process.env, ...environment }
    return execFileSync('podman', args, { encoding: 'utf8', env, stdio: ['ignore', 'pipe', 'pipe'] }).trim()
  }
  const stop = async (): Promise<void> => {
    if (server.exitCode !== null || server.signalCode !== null) return
    const ended = new Promise((resolve) => server.once('exit', resolve))
    server.kill('SIGKILL')
    await ended
  }
  return {
    root,
    environment,
    address,
    push(tag, lines = []) {
      const context = mkdtempSync(join(root, 'context-'))
      copyFileSync(pathOf('busybox') ?? '', join(context, 'busybox'))
      const text = ['FROM scratch', 'COPY busybox /bin/busybox', INSTALL, ...lines].join('\n')
      writeFileSync(join(context, 'Containerfile'), `${text}\n`)
      const image = `${address}/box:${tag}`
      podman('build', '--quiet', '--isolation', 'chroot', '--timestamp', '0', '--tag', image, context)
      podman('push', '--quiet', '--digestfile', join(context, 'digest'), image)
      podman('image', 'rm', '--force', image)
      return `${address}/box@${readFileSync(join(context, 'digest'), 'utf8').trim()}`
    },
    forget: (image) => void podman('image', 'rm', '--force', image),
    configOf: (image) => `sha256:${podman('image', 'inspect', '--format', '{{.Id}}', image)}`,
    containers: () => readContainers(join(root, 'images/vfs-containers/containers.json')),
    async isQuiet() {
      const isOurs = (line: string) => line.includes(root) && !line.startsWith('docker-registry')
      await until(() => !commandLines().some(isOurs))
    },
    stop,
    async [Symbol.asyncDispose]() {
      await stop()
      podman('rm', '--force', '--all', '--time', '0')
      removeAll(root)
    },
  }
}

const INSTALL = 'RUN ["/bin/busybox", "--install", "-s", "/bin"]'

/** @returns the environment that makes podman and skopeo use them */
function writeSettings(root: string, address: string): Readonly<Record<string, string>> {
  const home = join(root, 'home')
  mkdirSync(join(home, '.config/containers'), { recursive: true })
  const registries = `[[registry]]\nlocation = "${address}"\ninsecure = true\n`
  writeFileSync(join(home, '.config/containers/registries.conf'), registries)
  // No limits and no system log: what a test machine may lack. Locks of its own: another podman's are not touched.
  writeFileSync(
    join(root, 'containers.conf'),
    '[containers]\ndefault_ulimits = []\n[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\nlock_type = "file"\n',
  )
  const runtime = pathOf('runc') ?? pathOf('crun')
  const folders = [
    '--root',
    join(root, 'images'),
    '--runroot',
    join(root, 'run'),
    '--tmpdir',
    join(root, 'tmp'),
  ]
  return {
    HOME: home,
    XDG_CONFIG_HOME: join(home, '.config'),
    CONTAINERS_CONF: join(root, 'containers.conf'),
    PILOT_CONTAINER_RUNTIME: 'podman',
    PILOT_CONTAINER_ARGS: [
      ...folders,
      ...['--storage-driver', 'vfs'],
      ...(runtime === undefined ? [] : ['--runtime', runtime]),
    ].join(' '),
  }
}

/** From podman's own books, where also those stand that it lost sight of. */
function readContainers(path: string): readonly string[] {
  if (!existsSync(path)) return []
  const rows: readonly { readonly names?: readonly string[] }[] = JSON.parse(readFileSync(path, 'utf8'))
  return rows.flatMap(({ names }) => names ?? [])
}

/** Of every process of this machine. */
export function commandLines(): readonly string[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      return /^\d+$/.test(name) ? [readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ')] : []
    } catch {
      // Gone meanwhile.
      return []
    }
  })
}

async function startServer(root: string, address: string): Promise<ChildProcess> {
  const settings = join(root, 'registry.json')
  const storage = { filesystem: { rootdirectory: join(root, 'registry') } }
  const log = { level: 'error', accesslog: { disabled: true } }
  // JSON is YAML too.
  writeFileSync(settings, JSON.stringify({ version: 0.1, log, storage, http: { addr: address } }))
  const server = spawn('docker-registry', ['serve', settings], { stdio: 'ignore' })
  for (const deadline = performance.now() + 20_000; ; await delay(20)) {
    if (await answers(`http://${address}/v2/`)) return server
    if (server.exitCode !== null || performance.now() > deadline) throw new Error('no registry came up')
  }
}

async function answers(url: string): Promise<boolean> {
  try {
    return (await fetch(url)).ok
  } catch {
    return false
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
}

function pathOf(name: string): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin']
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path))
}
