/** `main`: the command without its process. */

import { readFile, stat } from 'node:fs/promises'
import { version } from '../io/package.ts'
import { parseArgs } from './args.ts'
import { type CommandSpec, longName } from './command.ts'
import { EXIT, failureJson, showFailure } from './failure.ts'
import { helpOf, overview } from './help.ts'
import { type Io, withProgress } from './io.ts'
import { outputAt, writeText } from './outputs.ts'
import { checkPaths } from './paths.ts'
import { misused, UsageError } from './usage.ts'
import { printsVersion } from './version.ts'

/** Commands, loaded on demand with their dependencies. */
const COMMANDS: Readonly<Record<string, () => Promise<CommandSpec>>> = {
  run: async () => (await import('./commands/run.ts')).run,
  check: async () => (await import('./commands/check.ts')).check,
  fmt: async () => (await import('./commands/fmt.ts')).fmt,
  show: async () => (await import('./commands/show.ts')).show,
  emit: async () => (await import('./commands/emit.ts')).emit,
  explain: async () => (await import('./commands/explain.ts')).explain,
  format: async () => (await import('./commands/format.ts')).format,
  prune: async () => (await import('./commands/prune.ts')).prune,
  doctor: async () => (await import('./commands/doctor.ts')).doctor,
  calibrate: async () => (await import('./commands/calibrate.ts')).calibrate,
  tune: async () => (await import('./commands/tune.ts')).tune,
  records: async () => (await import('./commands/records.ts')).records,
  bench: async () => (await import('./commands/bench.ts')).bench,
}

const loaded = async (name: string): Promise<CommandSpec | undefined> =>
  Object.hasOwn(COMMANDS, name) ? COMMANDS[name]!() : undefined

const help = async (): Promise<string> =>
  overview(await Promise.all(Object.values(COMMANDS).map((load) => load())), version())

async function find(name: string): Promise<CommandSpec> {
  const command = await loaded(name)
  if (command) return command
  if (name.startsWith('-'))
    return misused({
      message: `there is no option ${name}`,
      lookup: { name, candidates: ['--help', '--version'] },
      expected: 'a command first',
    })
  return misused({
    message: `there is no command ${name}`,
    lookup: { name, candidates: [...Object.keys(COMMANDS), 'help'] },
    ...(name.endsWith('.spt') ? { hint: `to run a program: spt run ${name}` } : {}),
  })
}

/** Runs one command line (without `node` and the script). Never rejects; gives the exit code. */
export async function main(argv: readonly string[], host: Io): Promise<number> {
  const io = withProgress(host)
  const began = Date.now()
  try {
    const [first, ...rest] = argv
    if (first === undefined) {
      io.err(await help())
      return EXIT.usage
    }
    if (printsVersion(first, io)) return EXIT.ok
    if (first === '-h' || first === '--help' || first === 'help') {
      const about = rest.find((a) => !a.startsWith('-'))
      io.out(about === undefined ? await help() : helpOf(await find(about)))
      return EXIT.ok
    }
    const command = await find(first)
    const call = parseArgs(command, rest, io)
    if (call === 'help') {
      io.out(helpOf(command))
      return EXIT.ok
    }
    await checkPaths(call)
    return await command.run(call)
  } catch (error) {
    const code = showFailure(error, io)
    await putFailure(argv, error, began, io)
    return code
  }
}

/** Prints the failure as JSON, in place of the result with `--json`. */
async function putFailure(argv: readonly string[], error: unknown, began: number, io: Io): Promise<void> {
  const json = (await loaded(argv[0] ?? ''))?.options.find((o) => longName(o) === 'json')
  if (!json) return
  if (json.flags === '--json') {
    if (argv.includes('--json')) io.out(failureJson(error))
    return
  }
  // What was typed wrong may not be a file for figures: `--json kernel.spt`.
  if (error instanceof UsageError) return
  const at = argv.findIndex((a) => a === '--json' || a.startsWith('--json='))
  if (at < 0) return
  const path = argv[at] === '--json' ? argv[at + 1]! : argv[at]!.slice('--json='.length)
  if (outputAt(path) !== null) return writeText(io, path, failureJson(error))
  // Figures that were written before it failed stay; a path that cannot be written is the error itself.
  const before = await stat(path).catch(() => null)
  if (before?.isFile() && (before.mtimeMs >= began || !(await isFigures(path)))) return
  await writeText(io, path, failureJson(error)).catch(() => undefined)
}

/**
 * True if the file is empty or looks like JSON, so that figures may overwrite it. The imports of an unreadable program are
 * unknown.
 */
async function isFigures(path: string): Promise<boolean> {
  const text = await readFile(path, 'utf8').catch(() => null)
  return text !== null && (text === '' || /^\s*[[{]/.test(text))
}
