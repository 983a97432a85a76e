/** `main`: the command without its process. */

import { stat, writeFile } from 'node:fs/promises'
import { version } from '../io/package.ts'
import { longName, parseArgs } from './args.ts'
import type { CommandSpec } from './command.ts'
import { bench } from './commands/bench.ts'
import { check } from './commands/check.ts'
import { doctor } from './commands/doctor.ts'
import { emit } from './commands/emit.ts'
import { explain } from './commands/explain.ts'
import { fmt } from './commands/fmt.ts'
import { format } from './commands/format.ts'
import { run } from './commands/run.ts'
import { show } from './commands/show.ts'
import { EXIT, failureJson, showFailure } from './failure.ts'
import { helpOf, overview } from './help.ts'
import { type Io, withProgress } from './io.ts'
import { checkPaths } from './paths.ts'
import { misused, UsageError } from './usage.ts'

const COMMANDS: readonly CommandSpec[] = [run, check, fmt, show, emit, explain, format, doctor, bench]

function find(name: string): CommandSpec {
  const command = COMMANDS.find((c) => c.name === name)
  if (command) return command
  if (name.startsWith('-'))
    return misused({
      message: `there is no option ${name}`,
      lookup: { name, candidates: ['--help', '--version'] },
      expected: 'a command first',
    })
  return misused({
    message: `there is no command ${name}`,
    lookup: { name, candidates: [...COMMANDS.map((c) => c.name), 'help'] },
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
      io.err(overview(COMMANDS, version()))
      return EXIT.usage
    }
    if (first === '-v' || first === '--version') {
      io.out(`sparsetile ${version()}\n`)
      return EXIT.ok
    }
    if (first === '-h' || first === '--help' || first === 'help') {
      const about = rest.find((a) => !a.startsWith('-'))
      io.out(about === undefined ? overview(COMMANDS, version()) : helpOf(find(about)))
      return EXIT.ok
    }
    const command = find(first)
    const call = parseArgs(command, rest, io)
    if (call === 'help') {
      io.out(helpOf(command))
      return EXIT.ok
    }
    await checkPaths(command, call)
    return await command.run(call)
  } catch (error) {
    const code = showFailure(error, io)
    await putFailure(argv, error, began, io)
    return code
  }
}

/** The failure as data, where `--json` would have put the result. */
async function putFailure(argv: readonly string[], error: unknown, began: number, io: Io): Promise<void> {
  const json = COMMANDS.find((c) => c.name === argv[0])?.options.find((o) => longName(o) === 'json')
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
  // Figures that were written before it failed stay; a path that cannot be written is the error itself.
  const before = await stat(path).catch(() => null)
  if (before !== null && before.mtimeMs >= began) return
  await writeFile(path, failureJson(error)).catch(() => undefined)
}
