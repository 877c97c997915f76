// The same promises kept by jobs in a container, and what only a container can promise.

import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openMachineExecutor } from '../../src/execute/machine.ts'
import type { Executor, Job } from '../../src/model/ports.ts'
import { createJob, runJob, type TestJob } from '../rig/job.ts'
import { commandLines, noContainers, openRegistry, type TestRegistry } from '../rig/registry.ts'
import { createScratch } from '../rig/scratch.ts'
import { until } from '../rig/until.ts'
import { executorContract } from './executor.contract.ts'

describe.skipIf(noContainers !== false)(`in a container${noContainers ? `: ${noContainers}` : ''}`, () => {
  let registry: TestRegistry
  let image: string
  beforeAll(async () => {
    registry = await openRegistry()
    image = registry.push('v1')
  }, 60_000)
  afterAll(() => registry[Symbol.asyncDispose]())

  executorContract({
    open: async (options) =>
      openMachineExecutor({ ...options, environment: { ...process.env, ...registry.environment } }),
    fields: () => ({ image, isolation: 'container' }),
    isolation: 'container',
    // podman sets it, and pilot sets it to one name for all.
    adds: ['HOSTNAME'],
  })

  const openExecutor = (environment: Readonly<Record<string, string>> = {}): Executor => {
    const host = { ...process.env, ...registry.environment, ...environment }
    return openMachineExecutor({ environment: host, graceMs: 300 })
  }
  const setUp = (sh: string, fields: Partial<Job> = {}): TestJob =>
    createJob(sh, { image, isolation: 'container', ...fields })

  test('it sees its own folder and what is declared, may write what it may, and nothing else is there', async () => {
    using scratch = createScratch()
    const names = ['declared, "quoted"', 'secret', 'machine', 'a:b']
    for (const name of names) scratch.write(`${name}/file`, `${name}\n`)
    const [declared = '', secret = '', machine = '', colon = ''] = names.map((name) => scratch.path(name))
    using job = setUp(
      `cat '${declared}/file' '${colon}/file' > out/read
      cat '${secret}/file'; echo "secret $?" > out/told
      echo x > '${declared}/new'; echo "new $?" >> out/told
      echo x > '${declared}/file'; echo "changed $?" >> out/told
      echo x > '${machine}/new'; echo "machine $?" >> out/told
      mv "$TMPDIR" out/moved; echo "moved $?" >> out/told
      ls '${scratch.root}' > out/seen`,
      { readable: [declared, colon], writable: [machine] },
    )
    await using executor = openExecutor()

    const { failure } = await runJob(executor, job)

    expect(failure).toBeUndefined()
    expect(readFileSync(job.path('out/read'), 'utf8')).toBe('declared, "quoted"\na:b\n')
    expect(readFileSync(job.path('out/told'), 'utf8')).toBe(
      'secret 1\nnew 1\nchanged 1\nmachine 0\nmoved 0\n',
    )
    expect(readFileSync(job.path('out/seen'), 'utf8')).toBe('a:b\ndeclared, "quoted"\nmachine\n')
    expect(existsSync(join(machine, 'new'))).toBe(true)
    expect(statSync(job.path('out/told')).uid).toBe(process.getuid?.())
  })

  test('it has no capabilities, whoever it is', async () => {
    using job = setUp('grep CapEff /proc/self/status')
    await using executor = openExecutor()

    await runJob(executor, job)

    expect(job.lines).toEqual(['stdout CapEff:\t0000000000000000'])
  })

  test('it has no network unless it is given one', async () => {
    const [host = '', port = ''] = registry.address.split(':')
    const sh = `nc -w 2 ${host} ${port} < /dev/null; echo $? > out/told; ls /sys/class/net > out/net`
    using without = setUp(sh)
    using within = setUp(sh, { network: true })
    await using executor = openExecutor()

    await runJob(executor, without)
    await runJob(executor, within)

    expect(readFileSync(without.path('out/told'), 'utf8')).not.toBe('0\n')
    expect(readFileSync(without.path('out/net'), 'utf8')).toBe('lo\n')
    expect(readFileSync(within.path('out/told'), 'utf8')).toBe('0\n')
  })

  test("PATH is the image's where the job has none; nothing else the image or the host sets reaches it", async () => {
    const own = registry.push('env', ['ENV PATH=/bin:/opt/own FROM_IMAGE=1', 'ENTRYPOINT ["/bin/false"]'])
    const { PATH: _, ...environment } = createJobEnvironment()
    using job = setUp('env | sort', {
      image: own,
      environment: { ...environment, TOKEN: 'hunter22', ODD: 'a\nb' },
    })
    await using executor = openExecutor({ TOKEN: 'hunter22', FROM_HOST: '1', HTTP_PROXY: 'http://nowhere' })

    const { failure, imageConfig } = await runJob(executor, job)

    expect(failure).toBeUndefined()
    expect(imageConfig).toBe(registry.configOf(own))
    const names = job.lines.map((line) => /^stdout (\w+)=/.exec(line)?.[1]).filter(Boolean)
    expect(names).toEqual([
      'HOME',
      'HOSTNAME',
      'ODD',
      'PATH',
      'PILOT_ACTION',
      'PWD',
      'SHLVL',
      'TMPDIR',
      'TOKEN',
    ])
    expect(job.lines).toContain('stdout PATH=/bin:/opt/own')
  })

  test('a secret is on no command line', async () => {
    const secret = `hunter-${Math.random()}`
    using job = setUp('echo up; while [ ! -e out/go ]; do sleep 0.02; done; test -n "$TOKEN"', {
      environment: { ...createJobEnvironment(), TOKEN: secret },
      secrets: [secret],
    })
    await using executor = openExecutor({ TOKEN: secret })
    const handle = await executor.submit(job.job)
    await until(() => job.lines.length > 0)

    const lines = commandLines()
    writeFileSync(job.path('out/go'), '')
    const { failure } = await executor.wait(handle)

    expect(lines.filter((line) => line.includes(secret))).toEqual([])
    expect(failure).toBeUndefined()
  })

  test('a job that outgrows the memory it declared is out of memory', async () => {
    using job = setUp(`awk 'BEGIN { s = "x"; while (length(s) < 6e8) s = s s }'`, {
      resources: { cpus: 1, memoryMiB: 64, gpus: 0 },
    })
    await using executor = openExecutor()

    const { failure } = await runJob(executor, job)

    expect(failure).toMatchObject({ class: 'out-of-memory' })
  })

  test('stopped, timed out or killed, it leaves no container', async () => {
    const wait = 'trap "" TERM; echo up; while :; do sleep 0.05; done'
    using stopped = setUp(wait)
    using killed = setUp(wait)
    using late = setUp(wait, { timeoutMs: 500 })
    await using executor = openExecutor()
    const handles = await Promise.all([stopped, killed, late].map(({ job }) => executor.submit(job)))
    await until(() => stopped.lines.length > 0 && killed.lines.length > 0)
    const names = registry.containers()

    executor.cancel(handles[0] ?? '', 'term')
    executor.cancel(handles[1] ?? '', 'kill')
    const outcomes = await Promise.all(handles.map((handle) => executor.wait(handle)))

    expect(names.length).toBeGreaterThanOrEqual(2)
    for (const name of names) expect(name).toMatch(/^pilot-[0-9a-f]{12}-1-[0-9a-f]{8}$/)
    expect(outcomes.map(({ failure }) => failure?.class)).toEqual(['cancelled', 'cancelled', 'timeout'])
    expect(registry.containers()).toEqual([])
  })

  test('killed at any moment of its start, it leaves no container and no process of one', async () => {
    await using executor = openExecutor()
    const left: string[] = []
    for (let afterMs = 0; afterMs < 240; afterMs += 20) {
      using job = setUp('sleep 1000')
      const handle = await executor.submit(job.job)
      await delay(afterMs)
      executor.cancel(handle, 'kill')
      const { failure } = await executor.wait(handle)
      expect(failure).toMatchObject({ class: 'cancelled' })
      left.push(...registry.containers(), ...commandLines().filter((line) => line.includes(registry.root)))
    }
    expect(left.filter((line) => !line.startsWith('docker-registry'))).toEqual([])
  })

  test('a command that is found and cannot be executed is the blame of the stage', async () => {
    using job = setUp('', { argv: ['/bin'] })
    await using executor = openExecutor()

    const { failure } = await runJob(executor, job)

    expect(failure).toEqual({ class: 'stage', message: 'the command "/bin" is not executable' })
  })

  test('an image that no registry has, and a runtime that is not there, are failures of the machine, in words', async () => {
    const absent = image.replace(/[0-9a-f]{64}$/, '0'.repeat(64))
    using job = setUp('true', { image: absent })
    await using executor = openExecutor()
    await using elsewhere = openExecutor({ PILOT_CONTAINER_RUNTIME: 'no-such-runtime' })

    const { failure } = await runJob(executor, job)
    const other = await runJob(elsewhere, job)

    expect(failure?.class).toBe('infra')
    expect(failure?.message).toMatch(
      /^image \S+@sha256:0{64} is not here and could not be pulled: .*manifest unknown/,
    )
    expect(other.failure).toEqual({
      class: 'infra',
      message:
        'the container runtime "no-such-runtime" (PILOT_CONTAINER_RUNTIME) was not found (install podman or docker, or name one by PILOT_CONTAINER_RUNTIME)',
    })
  })
})

function createJobEnvironment(): Job['environment'] {
  using job = createJob('')
  return job.job.environment
}
