// One action brought about, in write order: workdir, command, check of the inputs, capture, tree, result.
// A failed attempt leaves its log and its record with the run, and nothing in the action cache.

import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { collectOutputs } from '../capture/outputs.ts'
import { expandArgv, secretValues, toEnvironment } from '../execute/environment.ts'
import { redactText } from '../execute/redact.ts'
import { openWorkdir, type Workdir } from '../execute/workdir.ts'
import type { RunEvent, StageEnd } from '../model/event.ts'
import { isTransient, toFailure } from '../model/failure.ts'
import type { Job, JobOutcome, ResultBrief } from '../model/ports.ts'
import { type ActionResult, type AttemptRecord, type Failure, RESULT_SCHEMA } from '../model/result.ts'
import type { Stage } from '../model/stage.ts'
import { placeOf } from '../plan/name.ts'
import type { Lease } from '../store/remote/leases.ts'
import type { RunContext } from './context.ts'
import { changedError, checkSources, type InputTarget, inputTargets } from './inputs.ts'
import { findRemote, type Resolved } from './look-up.ts'

export type Brought =
  | {
      readonly type: 'done'
      readonly outcome: 'executed' | 'hit' | 'restored'
      readonly result: ResultBrief
      readonly event: Partial<StageEnd>
    }
  | { readonly type: 'failed'; readonly event: StageEnd }
  /** Stages, by index, whose outputs were thought kept and are not whole. */
  | { readonly type: 'lost'; readonly producers: readonly number[] }

type Report = (event: RunEvent) => void

/** Executes a stage's action, once on this machine, with retries for what a further attempt may mend. */
export async function bringAbout(
  context: RunContext,
  index: number,
  gpuIds: readonly string[],
  report: Report,
): Promise<Brought> {
  const stage = context.project.graph.stages[index]
  const resolved = context.resolved[index]
  if (!stage || !resolved) throw new RangeError(`stage ${index} was not looked up`)
  // Two stages of this run may have come to one action: the second waits here and then finds the result.
  while (context.inFlight.has(resolved.key)) await context.inFlight.get(resolved.key)
  const bringing = bringClaimed(context, stage, resolved, gpuIds, report)
  context.inFlight.set(resolved.key, bringing)
  try {
    return await bringing
  } finally {
    context.inFlight.delete(resolved.key)
  }
}

async function bringClaimed(
  context: RunContext,
  stage: Stage,
  resolved: Resolved,
  gpuIds: readonly string[],
  report: Report,
): Promise<Brought> {
  const { project } = context
  if (!(await claim(context, stage, resolved, report))) {
    return failedBy(context, stage, resolved, {
      class: 'cancelled',
      message: 'the run was stopped while waiting',
    })
  }
  try {
    // Another run, or another stage of this one, may have made it between our look-up and our claim.
    const isForced = context.selected.forced[context.project.graph.indexOf.get(stage.name) ?? -1] ?? false
    const isAsked = !isForced && !project.tiers?.isOnly
    const made = isAsked ? project.store.lookup(resolved.key) : undefined
    if (made) return { type: 'done', outcome: 'hit', result: made, event: {} }
    return await bringLeased(context, stage, resolved, { gpuIds, isForced }, report)
  } finally {
    project.store.release(resolved.key)
  }
}

interface How {
  readonly gpuIds: readonly string[]
  readonly isForced: boolean
}

/** Executes the action under a lease, where there is a store that knows leases: other machines then wait for it. */
async function bringLeased(
  context: RunContext,
  stage: Stage,
  resolved: Resolved,
  { gpuIds, isForced }: How,
  report: Report,
): Promise<Brought> {
  const { tiers } = context.project
  const producers = await fetchInputs(context, stage)
  if (producers.length > 0) return { type: 'lost', producers }
  const leased = await lease(context, stage, resolved, isForced, report)
  if (leased.type === 'made') return { type: 'done', outcome: 'restored', result: leased.result, event: {} }
  if (leased.type === 'stopped') {
    return failedBy(context, stage, resolved, {
      class: 'cancelled',
      message: 'the run was stopped while waiting',
    })
  }
  const brought = await attempts(context, stage, resolved, gpuIds, report)
  const result = brought.type === 'done' ? context.project.store.readResult(resolved.key) : undefined
  // The lease ends when the others can see the result.
  if (result && tiers) await tiers.send(result, { replace: isForced, lease: leased.lease })
  else await leased.lease?.release().catch(() => undefined)
  return brought
}

/** Brings the outputs that the stage reads here, where they are kept elsewhere. @returns the producers whose outputs are lost */
async function fetchInputs({ project, known }: RunContext, stage: Stage): Promise<readonly number[]> {
  const { tiers, store, graph } = project
  if (!tiers) return []
  const lost: number[] = []
  const producers = new Set(
    Object.values(stage.inputs).flatMap((ref) =>
      ref.from === 'stage' ? [graph.indexOf.get(ref.stage) ?? -1] : [],
    ),
  )
  for (const producer of producers) {
    const tree = known[producer]?.tree
    if (tree && store.openTree(tree) === undefined && (await tiers.fetch(tree)) === undefined)
      lost.push(producer)
  }
  return lost
}

type Leased =
  | { readonly type: 'ours'; readonly lease: Lease | undefined }
  | { readonly type: 'made'; readonly result: ResultBrief }
  | { readonly type: 'stopped' }

/** Waits until the action is ours, or another machine has made it. */
async function lease(
  { project, stop }: RunContext,
  stage: Stage,
  resolved: Resolved,
  isForced: boolean,
  report: Report,
): Promise<Leased> {
  const { tiers } = project
  if (!tiers) return { type: 'ours', lease: undefined }
  for (let told = false; !stop.aborted; ) {
    const answer = await tiers.claim(resolved.key)
    if (answer.type === 'none') return { type: 'ours', lease: undefined }
    // Made between our look-up and our claim, or while we waited. Who forces wants it made anew, but not while another does.
    const made = isForced ? undefined : await findRemote(project, resolved, false)
    if (made) {
      if (answer.type === 'claimed') await answer.lease.release().catch(() => undefined)
      return { type: 'made', result: made }
    }
    if (answer.type === 'claimed') return { type: 'ours', lease: answer.lease }
    if (!told) {
      const holder = `${answer.holder}, since ${answer.since}`
      report({ type: 'stage-wait', stage: stage.name, actionDigest: resolved.key, holder })
    }
    told = true
    await delay(Math.min(1_000, tiers.beatMs), undefined, { signal: stop }).catch(() => undefined)
  }
  return { type: 'stopped' }
}

/** Waits until the action is ours. @returns false when the run was stopped first */
async function claim(
  context: RunContext,
  stage: Stage,
  resolved: Resolved,
  report: Report,
): Promise<boolean> {
  const { project, stop } = context
  for (let told: string | undefined; !stop.aborted; ) {
    const claimed = project.store.claim(resolved.key, stage.name)
    if (claimed.type === 'claimed') return true
    if (told !== claimed.holder) {
      report({ type: 'stage-wait', stage: stage.name, actionDigest: resolved.key, holder: claimed.holder })
      told = claimed.holder
    }
    // The holder is another process: there is nothing to wait on but the clock. An abort ends the wait.
    await delay(100, undefined, { signal: stop }).catch(() => undefined)
  }
  return false
}

async function attempts(
  context: RunContext,
  stage: Stage,
  resolved: Resolved,
  gpuIds: readonly string[],
  report: Report,
): Promise<Brought> {
  for (let attempt = 1; ; attempt++) {
    const brought = await attemptOnce(context, stage, resolved, { attempt, gpuIds }, report)
    const failure = brought.type === 'failed' ? brought.event.failure : undefined
    if (!failure || !isTransient(failure) || attempt > stage.retries || context.stop.aborted) return brought
    const delayMs = Math.min(30_000, 500 * 2 ** attempt)
    report({ type: 'stage-retry', stage: stage.name, attempt, failure, delayMs })
    await delay(delayMs, undefined, { signal: context.stop }).catch(() => undefined)
    if (context.stop.aborted) return brought
  }
}

async function attemptOnce(
  context: RunContext,
  stage: Stage,
  resolved: Resolved,
  { attempt, gpuIds }: { readonly attempt: number; readonly gpuIds: readonly string[] },
  report: Report,
): Promise<Brought> {
  const { project, runId, now } = context
  const logPath = logPathOf(project.store.runFolder(runId), stage.name, attempt)
  const log = relative(project.root, logPath)
  let workdir: Workdir | undefined
  let outcome: JobOutcome | undefined
  const startedAt = now().toISOString()
  report({ type: 'stage-start', stage: stage.name, actionDigest: resolved.key, attempt, log, at: startedAt })
  try {
    const inputs = await inputTargets(context, stage, resolved)
    workdir = openWorkdir({
      root: project.store.makeTemp(stage.name),
      inputs,
      outputs: Object.values(stage.outputs).map((output) => output.path),
    })
    giveResumeFolder(context, stage, resolved, workdir)
    const job = toJob(context, stage, resolved, { attempt, gpuIds, logPath, workdir, inputs, report })
    outcome = await execute(context, job)
    const record = toRecord(context, stage, job, outcome, startedAt)
    const kept = await keepLog(context, outcome, logPath)
    if (outcome.failure) {
      keepResumeFolder(context, stage, resolved, workdir)
      writeRecord(logPath, record, outcome.failure)
      return failedBy(context, stage, resolved, outcome.failure, outcome, kept ? log : undefined)
    }
    await checkInputs(context, stage, resolved)
    const { tree, records } = await collectOutputs({
      stage,
      outDir: workdir.out,
      outputs: stage.outputs,
      log,
    })
    project.store.adoptTree(tree, workdir.out)
    const result: ActionResult = {
      schema: RESULT_SCHEMA,
      actionDigest: resolved.key,
      action: resolved.action,
      tree: tree.digest,
      outputs: records,
      record,
    }
    await project.store.putResult(result, { replace: true })
    const event = { usage: outcome.usage, ...(kept && { log }) }
    return {
      type: 'done',
      outcome: 'executed',
      result: { key: resolved.key, tree: tree.digest, outputs: records },
      event,
    }
  } catch (error) {
    return failedBy(
      context,
      stage,
      resolved,
      toFailure(error),
      outcome,
      existsSync(logPath) ? log : undefined,
    )
  } finally {
    await workdir?.remove()
  }
}

async function execute({ executor, stop, kill }: RunContext, job: Job): Promise<JobOutcome> {
  const handle = await executor.submit(job)
  const term = () => executor.cancel(handle, 'term')
  const end = () => executor.cancel(handle, 'kill')
  if (stop.aborted) term()
  stop.addEventListener('abort', term)
  kill.addEventListener('abort', end)
  try {
    return await executor.wait(handle)
  } finally {
    stop.removeEventListener('abort', term)
    kill.removeEventListener('abort', end)
  }
}

/** Nothing is published when what was read is no longer what was hashed. */
async function checkInputs(context: RunContext, stage: Stage, resolved: Resolved): Promise<void> {
  await checkSources(context, stage, resolved)
  for (const name in stage.inputs) {
    const ref = stage.inputs[name]
    if (ref?.from !== 'stage') continue
    const producer = context.known[context.project.graph.indexOf.get(ref.stage) ?? -1]
    if (producer && !context.project.store.isUntouched(producer.tree)) {
      throw changedError(stage, `input "${name}" (output "${ref.output}" of stage "${ref.stage}")`)
    }
  }
}

interface JobParts {
  readonly attempt: number
  readonly gpuIds: readonly string[]
  readonly logPath: string
  readonly workdir: Workdir
  readonly inputs: readonly InputTarget[]
  readonly report: Report
}

function toJob(context: RunContext, stage: Stage, resolved: Resolved, parts: JobParts): Job {
  const { project, runId } = context
  const { attempt, gpuIds, logPath, workdir, inputs, report } = parts
  const host = project.config.environment
  const isInImage = stage.image !== undefined
  const machineDir = machineDirOf(project.machineDir, stage)
  return {
    key: resolved.key,
    stage: stage.name,
    attempt,
    runId,
    argv: expandArgv(stage.argv, {
      inputs: Object.fromEntries(inputs.map(({ name, as }) => [name, as])),
      outputs: Object.fromEntries(Object.entries(stage.outputs).map(([name, { path }]) => [name, path])),
      // An image brings its own.
      node: isInImage ? 'node' : process.execPath,
    }),
    cwd: workdir.cwd,
    environment: toEnvironment({
      spec: stage.environment,
      host,
      home: workdir.home,
      tmp: workdir.tmp,
      machineDir,
      gpuIds,
      isInImage,
    }),
    secrets: secretValues(stage.environment, host),
    logPath,
    timeoutMs: stage.timeoutMs,
    resources: stage.resources,
    gpuIds,
    isolation: stage.isolation,
    image: stage.image,
    readable: inputs.map(({ target }) => target),
    writable: [machineDir],
    network: stage.network,
    onLine: (stream, line) => report({ type: 'stage-output', stage: stage.name, stream, line }),
  }
}

/** What is derived in an image fits that image only: it gets a folder of its own. */
function machineDirOf(shared: string, { image }: Stage): string {
  if (image === undefined) return shared
  const digest = image.slice(image.lastIndexOf(':') + 1)
  return join(shared, 'images', digest.slice(0, 16))
}

function toRecord(
  context: RunContext,
  stage: Stage,
  job: Job,
  outcome: JobOutcome,
  startedAt: string,
): AttemptRecord {
  const redact = (text: string) => redactText(text, job.secrets)
  const claimed = context.project.config.environment['PILOT_IMAGE_DIGEST'] || undefined
  return {
    stage: stage.name,
    attempt: job.attempt,
    runId: context.runId,
    startedAt,
    usage: outcome.usage,
    isolation: outcome.isolation,
    argv: job.argv.map(redact),
    environment: Object.fromEntries(
      Object.entries(job.environment).map(([name, value]) => [name, redact(value)]),
    ),
    image: stage.image ?? null,
    ...(outcome.imageConfig !== undefined && { imageConfig: outcome.imageConfig }),
    ...(claimed !== undefined && { claimedImage: claimed }),
    host: context.project.host,
    log: outcome.log,
    pilotVersion: context.project.pilotVersion,
    nodeVersion: process.version,
  }
}

/** Keeps the log by content too, so that it can be shown after a hit. @returns whether there is a log */
async function keepLog({ project }: RunContext, outcome: JobOutcome, logPath: string): Promise<boolean> {
  if (!outcome.log) return false
  await project.store.putLog(outcome.log.digest, readFileSync(logPath))
  return true
}

function writeRecord(logPath: string, record: AttemptRecord, failure: Failure): void {
  writeFileSync(
    logPath.replace(/\.log$/, '.failed.json'),
    `${JSON.stringify({ failure, record }, null, 2)}\n`,
  )
}

function logPathOf(folder: string, stage: string, attempt: number): string {
  return join(folder, attempt === 1 ? `${stage}.log` : `${stage}.${attempt}.log`)
}

function failedBy(
  context: RunContext,
  stage: Stage,
  resolved: Resolved,
  failure: Failure,
  outcome?: JobOutcome,
  log?: string,
): Brought {
  const where = placeOf(stage)
  return {
    type: 'failed',
    event: {
      type: 'stage-end',
      stage: stage.name,
      outcome: 'failed',
      actionDigest: resolved.key,
      outputs: {},
      failure:
        context.stop.aborted && failure.class === 'signal' ? { ...failure, class: 'cancelled' } : failure,
      ...(outcome && { usage: outcome.usage }),
      ...(log && { log }),
      ...(where && { where }),
    },
  }
}

// -------------------------------------------------------------------------------------------------------------- resume

/** A stage's own checkpoints of a dead attempt, kept by action digest until the action succeeds. */
function resumeFolder({ project }: RunContext, resolved: Resolved): string {
  return join(project.store.root, 'resume', resolved.key)
}

function giveResumeFolder(context: RunContext, stage: Stage, resolved: Resolved, workdir: Workdir): void {
  if (stage.resume === undefined) return
  const kept = resumeFolder(context, resolved)
  const place = join(workdir.cwd, stage.resume)
  mkdirSync(dirname(place), { recursive: true })
  if (existsSync(kept)) renameSync(kept, place)
  else mkdirSync(place, { recursive: true })
}

function keepResumeFolder(context: RunContext, stage: Stage, resolved: Resolved, workdir: Workdir): void {
  if (stage.resume === undefined) return
  const kept = resumeFolder(context, resolved)
  mkdirSync(dirname(kept), { recursive: true })
  rmSync(kept, { recursive: true, force: true })
  const left = join(workdir.cwd, stage.resume)
  if (existsSync(left)) renameSync(left, kept)
}
