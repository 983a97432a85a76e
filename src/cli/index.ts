/** `main`: the command without its process. */

import { version } from '../io/package.ts'
import { parseArgs } from './args.ts'
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
import type { Io } from './io.ts'
import { misused } from './usage.ts'

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
export async function main(argv: readonly string[], io: Io): Promise<number> {
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
    return await command.run(call)
  } catch (error) {
    // Where it takes a file, `--json` writes nothing of what failed.
    if (
      argv.includes('--json') &&
      COMMANDS.some((c) => c.name === argv[0] && c.options.some((o) => o.flags === '--json'))
    )
      io.out(failureJson(error))
    return showFailure(error, io)
  }
}
