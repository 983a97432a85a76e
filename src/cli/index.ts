/** Runs a command line without owning the process: dispatches to subcommands and reports failures. */
import { readFile, stat } from 'node:fs/promises'
import { version } from '../io/package/package.ts'
import { type CommandSpec, HELP, longName, parseArgs } from './arguments/command.ts'
import { checkPaths } from './arguments/paths.ts'
import { EXIT, failureJson, rejectUsage, showFailure, UsageError } from './output/failure.ts'
import { linesText } from './output/figures.ts'
import { handleVersionFlag, type Io, isVersionFlag, withProgress } from './output/io.ts'
import { standardStream, writeText } from './output/outputs.ts'

/** Commands, loaded on demand with their dependencies. */
const COMMANDS: Readonly<Record<string, () => Promise<CommandSpec>>> = {
  run: async () => (await import('./commands/run.ts')).run,
  check: async () => (await import('./commands/check.ts')).check,
  fmt: async () => (await import('./commands/fmt.ts')).fmt,
  show: async () => (await import('./commands/show.ts')).show,
  emit: async () => (await import('./commands/emit.ts')).emit,
  explain: async () => (await import('./commands/explain.ts')).explain,
  rules: async () => (await import('./commands/rules.ts')).rules,
  format: async () => (await import('./commands/format.ts')).format,
  prune: async () => (await import('./commands/prune.ts')).prune,
  doctor: async () => (await import('./commands/doctor.ts')).doctor,
  calibrate: async () => (await import('./commands/calibrate.ts')).calibrate,
  tune: async () => (await import('./commands/tune.ts')).tune,
  records: async () => (await import('./commands/records.ts')).records,
  types: async () => (await import('./commands/types.ts')).types,
  bench: async () => (await import('./commands/bench.ts')).bench,
}

const loadCommand = async (name: string): Promise<CommandSpec | undefined> =>
  Object.hasOwn(COMMANDS, name) ? COMMANDS[name]!() : undefined

const overviewText = async (): Promise<string> =>
  overview(await Promise.all(Object.values(COMMANDS).map((load) => load())), version())

async function findCommand(name: string): Promise<CommandSpec> {
  const command = await loadCommand(name)
  if (command) return command
  if (name.startsWith('-'))
    return rejectUsage({
      message: `there is no option ${name}`,
      lookup: { name, candidates: ['--help', '--version'] },
      expected: 'a command first',
    })
  return rejectUsage({
    message: `there is no command ${name}`,
    lookup: { name, candidates: [...Object.keys(COMMANDS), 'help'] },
    ...(name.endsWith('.spt') && { hint: `to run a program: spt run ${name}` }),
  })
}

/** Runs one command line (without `node` and the script). Never rejects; returns the exit code. */
export async function main(argv: readonly string[], host: Io): Promise<number> {
  const io = withProgress(host)
  const startTime = Date.now()
  try {
    const [first, ...args] = argv
    if (first === undefined) {
      io.err(await overviewText())
      return EXIT.usage
    }
    if (handleVersionFlag(argv, io)) return EXIT.ok
    if (isVersionFlag(first))
      return rejectUsage({ message: `${first} takes no arguments, not ${args[0]}`, hint: `spt ${first}` })
    if (first === '-h' || first === '--help' || first === 'help') {
      const topic = args.find((a) => !a.startsWith('-'))
      io.out(topic === undefined ? await overviewText() : helpOf(await findCommand(topic)))
      return EXIT.ok
    }
    const command = await findCommand(first)
    const call = parseArgs(command, args, io)
    if (call === 'help') {
      io.out(helpOf(command))
      return EXIT.ok
    }
    await checkPaths(call)
    return await command.run(call)
  } catch (error) {
    const code = showFailure(error, io)
    await writeFailure(argv, error, startTime, io)
    return code
  }
}

/** With `--json`, writes the failure as JSON instead of the result. */
async function writeFailure(
  argv: readonly string[],
  error: unknown,
  startTime: number,
  io: Io,
): Promise<void> {
  const json = (await loadCommand(argv[0] ?? ''))?.options.find((o) => longName(o) === 'json')
  if (!json) return
  if (json.flags === '--json') {
    if (argv.includes('--json')) io.out(failureJson(error))
    return
  }
  // After a usage error the value may be a mistyped path (`--json kernel.spt`), so nothing is overwritten.
  if (error instanceof UsageError) return
  const index = argv.findIndex((a) => a === '--json' || a.startsWith('--json='))
  if (index < 0) return
  const path = argv[index] === '--json' ? argv[index + 1]! : argv[index]!.slice('--json='.length)
  if (standardStream(path) !== null) return writeText(io, path, failureJson(error))
  // A file written by this call before it failed is kept. If the path cannot be written, that is the reported error.
  const stats = await stat(path).catch(() => null)
  if (stats?.isFile() && (stats.mtimeMs >= startTime || !(await isJsonFile(path)))) return
  await writeText(io, path, failureJson(error)).catch(() => undefined)
}

/**
 * True if the file is empty or looks like JSON, so it may be overwritten. Sources are not checked here, because the imports of
 * a program with errors are unknown.
 */
async function isJsonFile(path: string): Promise<boolean> {
  const text = await readFile(path, 'utf8').catch(() => null)
  return text !== null && (text === '' || /^\s*[[{]/.test(text))
}

const columns = (rows: readonly (readonly [string, string])[]): string =>
  linesText(Object.fromEntries(rows), { indent: '  ' }).trimEnd()

function overview(commands: readonly CommandSpec[], version: string): string {
  return `spt ${version}: sparse tensor kernels from text. A kernel states the computation, formats
the storage of tensors, and schedules the order of loops. Formats and schedules cannot change the result.

Usage: spt <command> [options]

Commands:
${columns([
  ...commands.map((c) => [`${c.name} ${c.args}`, c.summary] as const),
  ['help [COMMAND]', 'Show help'],
])}

Options:
${columns([
  [HELP.flags, HELP.about],
  ['-v, --version', 'Show the version'],
])}

Start with:
  spt doctor                                     list the available devices
  spt run kernel.spt --bind A=graph.mtx --verify  run a kernel and compare with the reference
  spt show kernel.spt --stage 2                  print the loops

To write a file to standard output, use /dev/stdout; reports are then on standard error.
Exit codes: 0 success, 1 an error in a program, in data or in a result, 2 wrong usage.
`
}

function helpOf(c: CommandSpec): string {
  return `${[
    `${c.summary}.`,
    `Usage: spt ${c.name} ${c.args}${c.options.length > 0 ? ' [options]' : ''}`,
    `Options:\n${columns([...c.options, HELP].map((o) => [o.flags, o.about + (o.repeats ? ' (repeatable)' : '')]))}`,
    ...(c.notes ?? []),
    `Examples:\n${c.examples.map((e) => `  ${e}`).join('\n')}`,
  ].join('\n\n')}\n`
}
