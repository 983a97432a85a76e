/**
 * Arguments → a call. Nothing is guessed where an argument can be two things: `-` is a file, a negative number after an
 * option its value, and whether an option takes a value its own declaration says.
 */
import type { Advice } from '../ast/diagnostic.ts'
import { Call, type CommandSpec, longName, type OptionSpec } from './command.ts'
import type { Io } from './io.ts'
import { misused } from './usage.ts'

export const HELP: OptionSpec = { flags: '-h, --help', about: 'Show this help' }

const takesValue = (o: OptionSpec): boolean => o.flags.includes('<')

interface Sorted {
  /** Values of options by name; options without a value are absent. */
  readonly options: ReadonlyMap<string, readonly string[]>
  readonly files: readonly string[]
}

function sort(command: CommandSpec, argv: readonly string[]): Sorted {
  const known = new Map([...command.options, HELP].map((o) => [longName(o), o] as const))
  const options = new Map<string, string[]>()
  const files: string[] = []
  const wrong = (message: string, advice: Advice): never =>
    misused({ command: command.name, message, ...advice })
  for (let k = 0; k < argv.length; k++) {
    const arg = argv[k]!
    if (arg === '--') {
      files.push(...argv.slice(k + 1))
      break
    }
    if (!arg.startsWith('-') || arg === '-') {
      files.push(arg)
      continue
    }
    const equals = arg.indexOf('=')
    const written = equals < 0 ? arg : arg.slice(0, equals)
    const name = written === '-h' ? 'help' : written.replace(/^--/, '')
    const option = known.get(name)
    if (!option)
      wrong(`there is no option ${written}`, {
        lookup: {
          name: `--${written.replace(/^-+/, '')}`,
          candidates: [...known.keys()].map((n) => `--${n}`),
        },
      })
    const before = options.get(name)
    if (before && !option!.repeats && takesValue(option!))
      wrong(`--${name} is given twice`, { expected: 'one value' })
    if (!takesValue(option!)) {
      if (equals >= 0) wrong(`--${name} takes no value`, { expected: `--${name}` })
      options.set(name, [])
      continue
    }
    const next = argv[k + 1]
    const value = equals >= 0 ? arg.slice(equals + 1) : next
    if (value === undefined || value === '' || (equals < 0 && /^-(?![.\d]|$)/.test(value)))
      wrong(`--${name} needs a value`, { expected: option!.flags })
    // What stands for standard input and output elsewhere is no name that anyone means.
    if (value === '-')
      wrong(`--${name} - is not possible`, { expected: option!.flags, hint: 'a file called - is ./-' })
    if (equals < 0) k++
    options.set(name, [...(before ?? []), value!])
  }
  return { options, files }
}

/** Parses `argv` (after the command's name) to a call, or `help`. @throws UsageError */
export function parseArgs(command: CommandSpec, argv: readonly string[], io: Io): Call | 'help' {
  const { options, files } = sort(command, argv)
  if (options.has('help')) return 'help'
  const [least, most] = command.count
  if (files.length < least)
    misused({
      command: command.name,
      message: 'a file is missing',
      expected: `spt ${command.name} ${command.args}`,
    })
  if (files.length > most)
    misused({
      command: command.name,
      message: `there is no place for ${files.slice(most).join(' ')}`,
      expected: `spt ${command.name} ${command.args}`,
    })
  return new Call(command.name, files, options, io, command.options)
}
