// Stages in images, by the real command line, a real registry and real containers.

import { readdirSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createProject, type TestProject } from '../rig/project.ts'
import { commandLines, noContainers, openRegistry, type TestRegistry } from '../rig/registry.ts'
import { shellPipeline } from '../rig/shell-pipeline.ts'
import { until } from '../rig/until.ts'

/** PILOT_LONG=1 takes more moments. */
const KILLS = process.env['PILOT_LONG'] === '1' ? 100 : 5

describe.skipIf(noContainers !== false)(`stages in images${noContainers ? `: ${noContainers}` : ''}`, () => {
  let registry: TestRegistry
  let image: string
  beforeAll(async () => {
    registry = await openRegistry()
    image = registry.push('v1', ['RUN echo 1 > /version'])
  }, 60_000)
  afterAll(() => registry[Symbol.asyncDispose]())

  const inImage = (name: string) => `image: ${JSON.stringify(name)}, retries: 0`
  const env = (more: Readonly<Record<string, string>> = {}) => ({ env: { ...registry.environment, ...more } })

  test('a stage by digest: its result says which image, its neighbour without one says which machine', async () => {
    using project = createProject({
      'pipeline.ts': shellPipeline({
        outside: { sh: 'echo hello > "$out"' },
        inside: {
          sh: '{ cat "$a" /version; ls /sys/class/net; } > "$out"; echo x >> "$a" || echo kept >> "$out"',
          inputs: { a: 'outside' },
          more: inImage(image),
        },
      }),
    })

    const ran = await project.run([], env({ PILOT_IMAGE_DIGEST: 'sha256:claimed' }))
    const again = await project.run([], env({ PILOT_IMAGE_DIGEST: 'sha256:other' }))

    expect(ran.outcomes).toEqual({ outside: 'executed', inside: 'executed' })
    expect(project.read('artifacts/latest/inside/out')).toBe('hello\n1\nlo\nkept\n')
    expect(await madeBy(project, 'inside')).toMatchObject({
      image,
      imageConfig: registry.configOf(image),
      isolation: 'container',
      claimedImage: 'sha256:claimed',
    })
    const outside = await madeBy(project, 'outside')
    expect(outside).toMatchObject({ image: null, isolation: 'workdir', host: { os: process.platform } })
    expect(outside).not.toHaveProperty('imageConfig')
    expect(again.end).toMatchObject({ executed: 0, hits: 2 })
  })

  test('what a stage does not declare is not there to be read', async () => {
    using project = createProject({
      'pipeline.ts': shellPipeline({
        peeping: { sh: 'cat "$MEET/data/secret" > "$out"', more: `${MEET}, ${inImage(image)}` },
      }),
      'data/secret': 'secret\n',
    })

    const ran = await project.run([], env())

    expect(ran.stageEnd('peeping').failure).toMatchObject({ class: 'stage', exitCode: 1 })
    expect(project.read(ran.stageEnd('peeping').log ?? '')).toContain('No such file or directory')
  })

  test('a tag is refused until it is locked; a moved one is told old -> new, and only then executed anew', async () => {
    const first = registry.push('moving', ['RUN echo first > /version'])
    const tag = `${registry.address}/box:moving`
    using project = createProject({
      'pipeline.ts': shellPipeline(
        { versioned: { sh: 'cat /version > "$out"' }, plain: { sh: 'echo 1 > "$out"', more: 'image: null' } },
        `image: ${JSON.stringify(tag)},`,
      ),
    })

    const refused = await project.pilot(['run'], env())
    const unlocked = await project.pilot(['lock', '--check'], env())
    const locked = await project.pilot(['lock'], env())
    const ran = await project.run([], env())
    const seen = project.read('artifacts/latest/versioned/out')
    const second = registry.push('moving', ['RUN echo second > /version'])
    const drift = await project.pilot(['lock', '--check'], env())
    const held = await project.run([], env())
    const moved = await project.pilot(['lock'], env())
    const why = await project.pilot(['why', 'versioned'], env())
    const anew = await project.run([], env())
    const settled = await project.pilot(['lock', '--check'], env())

    const [old, now] = [first, second].map((name) => name.slice(name.indexOf('@') + 1))
    expect(refused.code).toBe(2)
    expect(refused.stderr).toContain(`: image "${tag}" is not pinned`)
    expect(refused.stderr).toContain('hint    lock the tag: pilot lock')
    expect(unlocked).toMatchObject({ code: 1, stdout: expect.stringContaining(`${tag}: (none) -> ${old}`) })
    expect(locked).toMatchObject({ code: 0, stdout: `${tag}: (none) -> ${old}\nimages: written\n` })
    expect(ran.outcomes).toEqual({ versioned: 'executed', plain: 'executed' })
    expect(seen).toBe('first\n')
    expect(drift).toMatchObject({ code: 1, stdout: expect.stringContaining(`${tag}: ${old} -> ${now}`) })
    expect(held.end).toMatchObject({ executed: 0, hits: 2 })
    expect(moved).toMatchObject({ code: 0, stdout: `${tag}: ${old} -> ${now}\nimages: written\n` })
    expect(why.stdout).toContain('would run')
    expect(why.stdout).toMatch(/ {2}image: \S+@sha256:\w+ -> \S+@sha256:\w+/)
    expect(anew.outcomes).toEqual({ versioned: 'executed', plain: 'hit' })
    expect(project.read('artifacts/latest/versioned/out')).toBe('second\n')
    expect(settled).toMatchObject({ code: 0, stdout: 'images: up to date\n' })
    expect((await madeBy(project, 'plain'))['image']).toBeNull()
  })

  test('tools of this machine are not asked for a stage in an image', async () => {
    using project = createProject({
      'pipeline.ts': shellPipeline({
        inside: {
          sh: 'echo 1 > "$out"',
          more: `tools: { gone: ['no-such-tool', '--version'] }, ${inImage(image)}`,
        },
      }),
    })

    const ran = await project.run([], env())

    expect(ran.outcomes).toEqual({ inside: 'executed' })
  })

  test('kill -9 of pilot leaves no container and no process of one; the next run finishes', async () => {
    using project = createProject({
      'pipeline.ts': shellPipeline({
        slow: {
          sh: '[ "$(cat "$a")" = go ] || sleep 271828; echo 1 > "$out"',
          inputs: { a: 'a.txt' },
          more: inImage(image),
        },
      }),
      'a.txt': 'wait\n',
    })
    const started = project.start(['run', '--json'], env())
    await until(() => commandLines().some((line) => line === 'sleep 271828 '))
    const before = registry.containers()

    started.process.kill('SIGKILL')
    await started.finished
    await until(() => registry.containers().length === 0)
    await registry.isQuiet()
    project.write({ 'a.txt': 'go\n' })
    const again = await project.run([], env())

    expect(before).toHaveLength(1)
    expect(again.outcomes).toEqual({ slow: 'executed' })
    expect(readdirSync(project.path('artifacts/tmp'))).toEqual([])
  })

  test(`after each of ${KILLS} kills at moments of its start, no container and no process of one is left`, async () => {
    using project = createProject({
      'pipeline.ts': shellPipeline({ slow: { sh: 'sleep 1000', more: inImage(image) } }),
    })
    for (let round = 0; round < KILLS; round++) {
      const started = project.start(['run', '--json'], env())
      await started.line(/"stage-start"/)
      await delay(Math.random() * 500)
      started.process.kill('SIGKILL')
      await started.finished
      await until(() => registry.containers().length === 0)
      await registry.isQuiet()
    }
    await until(() => registry.containers().length === 0)
  }, 600_000)

  test('a stage past its time is ended, and its container with it', async () => {
    using project = createProject({
      'pipeline.ts': shellPipeline({ slow: { sh: 'sleep 1000', more: `timeoutMs: 700, ${inImage(image)}` } }),
    })

    const ran = await project.run([], env())

    expect(ran.stageEnd('slow').failure).toMatchObject({ class: 'timeout' })
    expect(ran.code).toBe(1)
    expect(registry.containers()).toEqual([])
  })

  test('an image that is neither here nor to be had: the machine is to blame, and kept results stay good', async () => {
    await using other = await openRegistry()
    const lost = other.push('v1')
    using project = createProject({
      'pipeline.ts': shellPipeline({ inside: { sh: 'echo 1 > "$out"', more: inImage(lost) } }),
    })
    const options = { env: other.environment }
    await project.run([], options)
    other.forget(lost)
    await other.stop()

    const kept = await project.run([], options)
    const forced = await project.run(['--force', 'inside'], options)

    expect(kept.end).toMatchObject({ executed: 0, hits: 1 })
    expect(forced.stageEnd('inside').failure).toMatchObject({
      class: 'infra',
      message: expect.stringMatching(/^image \S+ is not here and could not be pulled: .*connection refused/),
    })
    expect(forced.code).toBe(3)
  })
})

/** Lets a stage know the project's folder. */
const MEET = "env: { pass: ['MEET'] }"

/** What the provenance of a stage's result says of how it was made. */
async function madeBy(project: TestProject, stage: string): Promise<Readonly<Record<string, unknown>>> {
  const { stdout } = await project.pilot(['out', stage, '--provenance'])
  return JSON.parse(stdout).predicate.buildDefinition.internalParameters
}
