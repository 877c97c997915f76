// The command `trajectory`: validate, stats, show, translate, schema. Arguments in, text and exit code out; the files are all it touches.
import { parseArgs } from 'node:util'
import { checkTrajectories } from './check.ts'
import type { CommandIo } from './command-io.ts'
import { type Fault, formatFault, TrajectoryError } from './fault.ts'
import { readTrajectories } from './read.ts'
import { formatEpisode, formatStats } from './show.ts'
import { trajectoryStats } from './stats.ts'

/** Exit codes of the command. */
export const TRAJECTORY_EXITS = { valid: 0, invalid: 1, usage: 2, unreadable: 3 } as const

export const TRAJECTORY_USAGE = `usage: pilot trajectory <command>
  validate FILE… [--json] [--all]   check files against hessian.trajectory.v1; --all lists every fault
  stats FILE… [--json]              count episodes, groups, calls and tokens
  show EPISODE FILE                 print one episode
  translate --from SOURCE --launcher FILE --out FILE FILE…
                                    rows and diagnostics out of another system's files
  schema                            print the JSON Schema of one row
exit code: 0 valid, 1 not valid or not found, 2 wrong usage, 3 a file that cannot be read
`

interface Request {
  readonly names: readonly string[]
  readonly json: boolean
  readonly all: boolean
}

/** Runs `argv`, the words after \`trajectory\`. Never throws for a bad file or bad usage. @returns the exit code */
export async function trajectoryCommand(argv: readonly string[], io: CommandIo): Promise<number> {
  const [name, ...rest] = argv
  if (name === undefined || name === 'help' || argv.includes('--help') || argv.includes('-h')) {
    io[name === undefined ? 'stderr' : 'stdout'](TRAJECTORY_USAGE)
    return name === undefined ? TRAJECTORY_EXITS.usage : TRAJECTORY_EXITS.valid
  }
  if (name === 'translate') {
    const { translateCommand } = await import('./translate/command.ts') // only here: zod is slow to load
    return guard(rest.at(-1) ?? '', io, () => translateCommand(rest, io))
  }
  const request = parseRequest(rest)
  if (typeof request === 'string') return refuse(request, io)
  const { names, json } = request
  switch (name) {
    case 'validate':
      if (names.length === 0) return refuse('validate wants a file', io)
      return worst(names, (file) => (json ? validateJson(file, request, io) : validate(file, request, io)))
    case 'stats':
      if (names.length === 0) return refuse('stats wants a file', io)
      return worst(names, (file) => guard(file, io, () => stats(file, json, io)))
    case 'show': {
      const [episode, file] = names
      if (episode === undefined || file === undefined || names.length > 2)
        return refuse('show wants EPISODE FILE', io)
      return guard(file, io, () => show(episode, file, io))
    }
    case 'schema': {
      if (names.length > 0) return refuse('schema wants no argument', io)
      const { trajectorySchema } = await import('./schema.ts') // only here: zod is slow to load
      io.stdout(`${JSON.stringify(trajectorySchema(), null, 2)}\n`)
      return TRAJECTORY_EXITS.valid
    }
    default:
      return refuse(`there is no command ${JSON.stringify(name)}`, io)
  }
}

function parseRequest(argv: readonly string[]): Request | string {
  try {
    const options = { json: { type: 'boolean' }, all: { type: 'boolean' } } as const
    const { values, positionals } = parseArgs({ args: [...argv], options, allowPositionals: true })
    return { names: positionals, json: values.json === true, all: values.all === true }
  } catch (error) {
    return messageOf(error)
  }
}

async function validate(file: string, { all }: Request, io: CommandIo): Promise<number> {
  return guard(file, io, async () => {
    const faults = checkTrajectories(file, { all })
    let count = 0
    let step = await faults.next()
    for (; step.done !== true; step = await faults.next()) {
      count++
      io.stderr(formatFault(step.value, file))
    }
    if (count === 0) io.stdout(`${file}: valid, ${step.value} ${step.value === 1 ? 'episode' : 'episodes'}\n`)
    else io.stdout(`${file}: not valid${all ? `, ${count} ${count === 1 ? 'fault' : 'faults'}` : ''}\n`)
    return count === 0 ? TRAJECTORY_EXITS.valid : TRAJECTORY_EXITS.invalid
  })
}

async function validateJson(file: string, { all }: Request, io: CommandIo): Promise<number> {
  const report = (valid: boolean, episodes: number, faults: readonly unknown[], error?: string) =>
    io.stdout(
      `${JSON.stringify({ file, valid, episodes, faults, ...(error === undefined ? {} : { error }) })}\n`,
    )
  const unreadable = (error: unknown) => report(false, 0, [], messageOf(error))
  return guard(
    file,
    io,
    async () => {
      const faults = checkTrajectories(file, { all })
      const found: Pick<Fault, 'rule' | 'line' | 'path' | 'message'>[] = []
      let step = await faults.next()
      for (; step.done !== true; step = await faults.next()) {
        const { rule, line, path, message } = step.value
        found.push({ rule, line, path, message })
      }
      report(found.length === 0, step.value, found)
      return found.length === 0 ? TRAJECTORY_EXITS.valid : TRAJECTORY_EXITS.invalid
    },
    unreadable,
  )
}

async function stats(file: string, json: boolean, io: CommandIo): Promise<number> {
  const figures = await trajectoryStats(file)
  io.stdout(json ? `${JSON.stringify({ file, ...figures })}\n` : formatStats(file, figures))
  return TRAJECTORY_EXITS.valid
}

async function show(episode: string, file: string, io: CommandIo): Promise<number> {
  for await (const trajectory of readTrajectories(file)) {
    if (trajectory.episode_id !== episode) continue
    io.stdout(formatEpisode(trajectory))
    return TRAJECTORY_EXITS.valid
  }
  io.stderr(`error[episode-missing]: there is no episode ${JSON.stringify(episode)}\n  where   ${file}\n`)
  return TRAJECTORY_EXITS.invalid
}

/** Turns what a file throws into text and an exit code. */
async function guard(
  file: string,
  io: CommandIo,
  act: () => Promise<number>,
  onUnreadable?: (error: unknown) => void,
): Promise<number> {
  try {
    return await act()
  } catch (error) {
    if (error instanceof TrajectoryError) {
      io.stderr(formatFault(error.fault, file))
      return TRAJECTORY_EXITS.invalid
    }
    if (!isFileError(error)) throw error
    onUnreadable?.(error)
    io.stderr(`error[unreadable]: the file cannot be read: ${messageOf(error)}\n  where   ${file}\n`)
    return TRAJECTORY_EXITS.unreadable
  }
}

/** The highest exit code over all files, each of them seen. */
async function worst(files: readonly string[], act: (file: string) => Promise<number>): Promise<number> {
  let code = 0
  for (const file of files) code = Math.max(code, await act(file))
  return code
}

function refuse(message: string, io: CommandIo): number {
  io.stderr(`error[usage]: ${message}\n${TRAJECTORY_USAGE}`)
  return TRAJECTORY_EXITS.usage
}

function isFileError(error: unknown): boolean {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' && 'syscall' in error
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
