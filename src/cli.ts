// The command line: argv -> one command, errors -> text and exit code. Each command loads only what it needs.

import { createRequire, registerHooks } from 'node:module'
import { Command, CommanderError, Help, InvalidArgumentError, Option } from '@commander-js/extra-typings'
import { EXIT_CODES, formatError, PilotError } from './model/error.ts'

// A pipeline imports 'hessian-pilot': it must get the very engine that runs it, also from a checkout that is not built.
const ENGINE: ReadonlyMap<string, string> = new Map([
  ['hessian-pilot', import.meta.resolve(`./index${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`)],
])
registerHooks({
  resolve: (specifier, context, next) => {
    const url = ENGINE.get(specifier)
    return url ? { url, shortCircuit: true } : next(specifier, context)
  },
})

function collect(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), ...value.split(',').filter((name) => name !== '')]
}

function toCount(text: string): number {
  const count = Number(text)
  if (Number.isInteger(count) && count > 0) return count
  throw new InvalidArgumentError('a whole number above 0 is needed.')
}

const recipeOption = () => new Option('-r, --recipe <name>', 'recipe: recipes/<name>.json')
const toOption = () =>
  new Option('--to <stage>', 'this stage and all it needs (repeatable)').argParser(collect)
const fromOption = () =>
  new Option('--from <stage>', 'only this stage and what follows from it').argParser(collect)
const onlyOption = () => new Option('--only <stage>', 'only this stage').argParser(collect)
const forceOption = () =>
  new Option('--force <stage>', 'execute it even where a result is kept').argParser(collect)
const noRemoteOption = () => new Option('--no-remote', 'leave the store beyond this machine out')
const remoteOnlyOption = () => new Option('--remote-only', 'take results from that store, none kept here')
const readOnlyOption = () => new Option('--read-only', 'write nothing to that store')
const jsonOption = () => new Option('--json', 'one JSON event a line on stdout')

/** Adds a closing example to a command's help. */
function example(text: string): string {
  return `\nExample:\n  ${text}`
}

/** The help of pilot itself: its commands in two columns, so that all of it fits a screen. */
function formatRootHelp(
  commands: readonly { name(): string; summary(): string; description(): string }[],
): string {
  const cells = commands.map((command) => {
    const text = command.summary() || command.description()
    return `  ${command.name().padEnd(11)}${text}`.padEnd(40)
  })
  const half = Math.ceil(cells.length / 2)
  const rows = cells.slice(0, half).map((cell, i) => `${cell}${cells[half + i] ?? ''}`.trimEnd())
  return `Usage: pilot <command> [options]     pilot <command> --help says more of each

Make for experiments that must be believed: stages hashed by content, run once,
kept with their provenance.

${rows.join('\n')}

Exit codes: 0 done, 1 a stage failed, 2 a mistake in what was asked,
  3 this machine, 4 a fault in pilot, 130 interrupted.
${example('pilot run --to evaluate')}
`
}

function buildProgram(): Command {
  const program = new Command('pilot')
    .description(
      'Make for experiments that must be believed: stages hashed by content, run once, kept with their provenance.',
    )
    .version(readVersion())
    .showHelpAfterError('(pilot --help lists the commands)')
    .exitOverride()
    .configureHelp({
      formatHelp: (command, helper) =>
        command.parent
          ? new Help().formatHelp(command, helper)
          : formatRootHelp(helper.visibleCommands(command)),
    })
  addRunning(program)
  addReading(program)
  addSharing(program)
  addKeeping(program)
  // The help is for reading; options of a command are in its own.
  return program as unknown as Command
}

function addRunning(program: Command): void {
  program
    .command('run')
    .summary('bring stages up to date')
    .description('bring stages up to date: all, or those named and what they need')
    .argument('[stages...]', 'as --to')
    .addOption(toOption())
    .addOption(fromOption())
    .addOption(onlyOption())
    .addOption(forceOption())
    .addOption(recipeOption())
    .option('-j, --jobs <n>', 'stages at the same time, at most (default: the CPUs)')
    .option('-k, --keep-going', 'after a failure, go on with what does not depend on it')
    .option('-n, --dry-run', 'say what would happen, and do nothing')
    .addOption(noRemoteOption())
    .addOption(remoteOnlyOption())
    .addOption(readOnlyOption())
    .addOption(jsonOption())
    .addHelpText('after', example('pilot run --to evaluate --force ppo-step'))
    .action(async (stages, flags) =>
      exit(await (await import('./commands/run.ts')).runCommand(stages, flags)),
    )
  program
    .command('plan')
    .summary('what a run would do')
    .description('say for each stage: hit, restore, run or wait - and why')
    .argument('[stages...]', 'as --to')
    .addOption(toOption())
    .addOption(fromOption())
    .addOption(onlyOption())
    .addOption(forceOption())
    .addOption(recipeOption())
    .addOption(noRemoteOption())
    .addOption(remoteOnlyOption())
    .addOption(jsonOption())
    .addHelpText('after', example('pilot plan --recipe agent-lightning'))
    .action(async (stages, flags) =>
      exit(await (await import('./commands/run.ts')).planCommand(stages, flags)),
    )
}

function addReading(program: Command): void {
  program
    .command('status')
    .summary('what is up to date')
    .description('what is up to date, what ran last and how it ended')
    .addOption(recipeOption())
    .addOption(jsonOption())
    .addHelpText('after', example('pilot status'))
    .action(async (flags) => exit(await (await import('./commands/status.ts')).statusCommand(flags)))
  program
    .command('why')
    .summary('the fields that changed')
    .description('why a stage would run: the exact fields that changed, old -> new')
    .argument('<stage>')
    .addOption(recipeOption())
    .addOption(jsonOption())
    .addHelpText('after', example('pilot why ppo-step'))
    .action(async (stage, flags) => exit(await (await import('./commands/why.ts')).whyCommand(stage, flags)))
  program
    .command('log')
    .summary("a stage's log")
    .description('the log of a stage: of its last attempt here, or of the run that made the kept result')
    .argument('<stage>')
    .option('-f, --follow', 'go on printing while it runs')
    .addOption(recipeOption())
    .addHelpText('after', example('pilot log ppo-step -f'))
    .action(async (stage, flags) => exit(await (await import('./commands/log.ts')).logCommand(stage, flags)))
  program
    .command('out')
    .summary('outputs and provenance')
    .description('where the outputs of a stage are; --copy makes a writable copy')
    .argument('<stage>')
    .option('--copy <folder>', 'copy them into this new folder')
    .option('--provenance', 'print how they were made, as an in-toto statement with SLSA provenance')
    .addOption(recipeOption())
    .addOption(jsonOption())
    .addHelpText('after', example('pilot out ppo-step --copy ./checkpoint'))
    .action(async (stage, flags) => exit(await (await import('./commands/out.ts')).outCommand(stage, flags)))
  program
    .command('reproduce')
    .summary('execute again and compare')
    .description(
      'execute a stage once more, as if nothing were kept, and compare what comes out; what is kept stays',
    )
    .argument('<stage>')
    .addOption(new Option('--output <name>', 'compare this output only').argParser(collect))
    .option('--tolerance <number>', 'largest absolute difference of numbers and tensors', Number, 0)
    .addOption(new Option('--ignore <field>', 'a JSON field that is not compared').argParser(collect))
    .addOption(recipeOption())
    .option('--json', 'one JSON line on stdout')
    .addHelpText('after', example('pilot reproduce ppo-step --output policy'))
    .action(async (stage, flags) =>
      exit(await (await import('./commands/reproduce.ts')).reproduceCommand(stage, flags)),
    )
  program
    .command('graph')
    .summary('the DAG as a picture')
    .description('the DAG as text, mermaid, dot or svg')
    .addOption(
      new Option('--format <format>', 'what to print')
        .choices(['text', 'mermaid', 'dot', 'svg'] as const)
        .default('text' as const),
    )
    .addOption(recipeOption())
    .addHelpText('after', example('pilot graph --format svg > dag.svg'))
    .action(async (flags) => exit(await (await import('./commands/graph.ts')).graphCommand(flags)))
}

function addSharing(program: Command): void {
  program
    .command('push')
    .summary('send results to the store')
    .description('send what stages came to here to the store beyond this machine (PILOT_STORE)')
    .argument('[stages...]', 'default: all')
    .addOption(recipeOption())
    .addOption(jsonOption())
    .addHelpText('after', example('pilot push'))
    .action(async (stages, flags) =>
      exit(await (await import('./commands/transfer.ts')).pushCommand(stages, flags)),
    )
  program
    .command('pull')
    .summary('fetch results from it')
    .description('fetch the outputs of stages from the store beyond this machine')
    .argument('[stages...]', 'default: all')
    .addOption(recipeOption())
    .addOption(jsonOption())
    .addHelpText('after', example('pilot pull ppo-step'))
    .action(async (stages, flags) =>
      exit(await (await import('./commands/transfer.ts')).pullCommand(stages, flags)),
    )
  program
    .command('cache')
    .summary('what the store holds')
    .description('ls: the results of the store beyond this machine; explain KEY: why one is used or not')
    .argument('<verb>', 'ls or explain')
    .argument('[key...]')
    .addOption(recipeOption())
    .addOption(jsonOption())
    .addHelpText('after', example('pilot cache explain 7f3a91'))
    .action(async (verb, words, flags) =>
      exit(await (await import('./commands/cache.ts')).cacheCommand(verb, words, flags)),
    )
  program
    .command('export')
    .summary('results as one file')
    .description('write what stages came to here to one file, the same bytes for the same results')
    .argument('<file>', 'a new .tar.zst')
    .argument('[stages...]', 'default: all')
    .addOption(recipeOption())
    .addHelpText('after', example('pilot export results.tar.zst evaluate'))
    .action(async (file, stages, flags) =>
      exit(await (await import('./commands/bundle.ts')).exportCommand(file, stages, flags)),
    )
  program
    .command('import')
    .summary('take such a file in')
    .description('take in what `pilot export` wrote, every byte verified')
    .argument('<file>')
    .addOption(recipeOption())
    .addHelpText('after', example('pilot import results.tar.zst'))
    .action(async (file, flags) =>
      exit(await (await import('./commands/bundle.ts')).importCommand(file, flags)),
    )
}

function addKeeping(program: Command): void {
  program
    .command('verify')
    .summary('hash the store again')
    .description('hash everything in the store again; what is damaged is set aside')
    .option('--remote', 'the store beyond this machine instead')
    .option('--heal', 'with --remote: send what is damaged there again, or drop it')
    .addOption(jsonOption())
    .addHelpText('after', example('pilot verify'))
    .action(async ({ remote, ...flags }) =>
      exit(await (await import('./commands/verify.ts')).verifyCommand({ ...flags, beyond: remote })),
    )
  program
    .command('gc')
    .summary('delete what nothing needs')
    .description('delete what no recent run, pin or running pilot needs')
    .option('-n, --dry-run', 'say how many bytes would go, by reason')
    .option('--keep-runs <n>', 'good runs whose results stay', toCount, 10)
    .option('--grace <hours>', 'younger than this is never deleted', Number, 24)
    .option('--remote', 'the store beyond this machine instead')
    .addOption(jsonOption())
    .addHelpText('after', example('pilot gc --dry-run'))
    .action(async ({ remote, ...flags }) =>
      exit(await (await import('./commands/gc.ts')).gcCommand({ ...flags, beyond: remote })),
    )
  program
    .command('pin')
    .summary('keep results under a name')
    .description('keep what stages came to under a name, whatever gc finds; without a name: list the pins')
    .argument('[name]')
    .argument('[stages...]', 'default: all')
    .addOption(recipeOption())
    .addHelpText('after', example('pilot pin accepted-2026-12 evaluate'))
    .action(async (name, stages, flags) =>
      exit(await (await import('./commands/pin.ts')).pinCommand(name, stages, flags)),
    )
  program
    .command('unpin')
    .summary('give a pin up')
    .description('let gc have what was pinned under a name')
    .argument('<name>')
    .addOption(recipeOption())
    .addHelpText('after', example('pilot unpin accepted-2026-12'))
    .action(async (name, flags) => exit(await (await import('./commands/pin.ts')).unpinCommand(name, flags)))
  program
    .command('init')
    .summary('start a pipeline here')
    .description('start a pipeline in this folder; never overwrites a file')
    .addHelpText('after', example('mkdir study && cd study && pilot init && pilot run'))
    .action(async () => exit(await (await import('./commands/init.ts')).initCommand()))
  program
    .command('lock')
    .summary('write or check locks/')
    .description('write the locks of the environments under locks/')
    .argument('[names...]', 'environments: folders of locks/ (default: all)')
    .option('--check', 'only say whether the locks are up to date')
    .addHelpText('after', example('pilot lock --check'))
    .action(async (names, flags) =>
      exit(await (await import('./commands/lock.ts')).lockCommand(names, flags)),
    )
  program
    .command('gate')
    .summary('hold a policy against it')
    .description(
      'hold what is kept of the pipeline against a policy, running nothing; exits 0 where it passes, 1 where it fails, 2 where that is not established',
    )
    .requiredOption('--policy <file>', 'what must hold: stages, criteria, bounds of metrics')
    .option('--base <run|file>', 'metrics to compare with: a run kept here, or what gate --json wrote')
    .option('--junit <file>', 'write the checks as JUnit XML')
    .addOption(recipeOption())
    .option('--json', 'one JSON line on stdout')
    .addHelpText('after', example('pilot gate --policy gate.json --base main.json'))
    .action(async (flags) => exit(await (await import('./commands/gate.ts')).gateCommand(flags)))
  program
    .command('doctor')
    .summary('what this machine lacks')
    .description(
      'what this machine has and lacks for the stages of the recipe; exits 3 where one would fail for it',
    )
    .addOption(recipeOption())
    .option('--json', 'one JSON finding a line on stdout')
    .addHelpText('after', example('pilot doctor --recipe calculator'))
    .action(async (flags) => exit(await (await import('./commands/doctor.ts')).doctorCommand(flags)))
  program
    .command('events')
    .summary('JSON Schema of --json')
    .description('the JSON Schema of the lines that --json prints')
    .addHelpText('after', example('pilot events > pilot-events.schema.json'))
    .action(async () => exit(await (await import('./commands/events.ts')).eventsCommand()))
  program
    .command('trajectory')
    .summary('check and read trajectories')
    .description('hessian.trajectory.v1: validate FILE…, stats FILE…, show EPISODE FILE, translate, schema')
    .argument('[words...]')
    .allowUnknownOption()
    .helpOption(false)
    .addHelpText('after', example('pilot trajectory validate rollouts.jsonl --json'))
    .action(async (_words, _flags, command) =>
      exit(await (await import('./commands/trajectory.ts')).run(command.args)),
    )
}

function readVersion(): string {
  const require = createRequire(import.meta.url)
  const inCheckout = import.meta.url.endsWith('.ts')
  const manifest: unknown = require(inCheckout ? '../package.json' : '../../package.json')
  return typeof manifest === 'object' && manifest !== null && 'version' in manifest
    ? String(manifest.version)
    : '0.0.0'
}

function exit(code: number): void {
  process.exitCode = code
}

/** What went wrong first, where closing up after it failed too. */
function firstOf(error: unknown): unknown {
  // By name: before Node.js 24 the class is none of the language's own.
  const isLater = error instanceof Error && error.name === 'SuppressedError' && 'suppressed' in error
  return isLater ? firstOf(error.suppressed) : error
}

function ignoreClosed(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
}

/** Runs the command line. Never rejects: every error becomes text on stderr and an exit code. */
export async function main(argv: readonly string[]): Promise<void> {
  // A reader that went away, as in `pilot log x | head`, is no error, and ends no run.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', ignoreClosed)
  try {
    const program = buildProgram()
    const { default: tab } = await import('@bomb.sh/tab/commander')
    // The same Command class; extra-typings only narrows its types.
    tab(program as unknown as Parameters<typeof tab>[0])
    await program.parseAsync(argv, { from: 'user' })
  } catch (error) {
    if (error instanceof CommanderError) {
      // Commander has printed its message already; its own exit code 1 means "the user's mistake".
      process.exitCode = error.exitCode === 0 ? EXIT_CODES.ok : EXIT_CODES.user
      return
    }
    const first = firstOf(error)
    process.stderr.write(`${formatError(first)}\n`)
    process.exitCode = first instanceof PilotError ? first.exitCode : EXIT_CODES.pilot
  }
}

await main(process.argv.slice(2))
