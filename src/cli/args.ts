/**
 * Arguments → a call. cac parses, and guesses where an argument can be two things (`-` as a file, a negative
 * number after an option, a file named like a number); so the arguments are brought into a form in which nothing
 * is left to guess, and every option is known, before it sees them.
 */
import { cac } from 'cac'
import { Call, type CommandSpec, type OptionSpec } from './command.ts'
import type { Io } from './io.ts'
import { misused } from './usage.ts'

export const HELP: OptionSpec = { flags: '-h, --help', about: 'Show this help' }

/** The long name of an option, without dashes. */
export const longName = (o: OptionSpec): string => /--([a-z-]+)/.exec(o.flags)![1]!
const takesValue = (o: OptionSpec): boolean => o.flags.includes('<')

interface Sorted {
  /** `--name` or `--name=value`. */
  readonly options: readonly string[]
  readonly files: readonly string[]
}

function sort(command: CommandSpec, argv: readonly string[]): Sorted {
  const known = new Map([...command.options, HELP].map((o) => [longName(o), o] as const))
  const options: string[] = []
  const files: string[] = []
  const times = new Map<string, number>()
  const wrong = (message: string, more: object = {}): never =>
    misused({ command: command.name, message, ...more })
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
    const count = (times.get(name) ?? 0) + 1
    times.set(name, count)
    if (count > 1 && !option!.repeats && takesValue(option!)) wrong(`--${name} is given twice`)
    if (!takesValue(option!)) {
      if (equals >= 0) wrong(`--${name} takes no value`)
      if (count === 1) options.push(`--${name}`)
      continue
    }
    const next = argv[k + 1]
    const value = equals >= 0 ? arg.slice(equals + 1) : next
    if (value === undefined || value === '' || (equals < 0 && /^-(?![.\d]|$)/.test(value)))
      wrong(`--${name} needs a value`, { expected: option!.flags })
    if (equals < 0) k++
    options.push(`--${name}=${value}`)
  }
  return { options, files }
}

/** The call that `argv` (after the command's name) asks for, or `help`. Throws `UsageError`. */
export function parseArgs(command: CommandSpec, argv: readonly string[], io: Io): Call | 'help' {
  const { options, files } = sort(command, argv)
  const cli = cac('spt')
  const known = cli.command(command.name)
  for (const o of [...command.options, HELP]) known.option(o.flags, o.about)
  // A character in front of each value keeps cac from reading numbers.
  const safe = options.map((o) => o.replace('=', '=:'))
  const parsed = cli.parse(['node', 'spt', command.name, ...safe, '--', ...files], { run: false })
  if (parsed.options.help) return 'help'
  const given = new Map<string, readonly string[]>()
  for (const o of command.options) {
    const name = longName(o)
    const value: unknown = parsed.options[name]
    if (value === undefined) continue
    given.set(name, value === true ? [] : [value].flat().map((v) => String(v).slice(1)))
  }
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
  return new Call(command.name, files, given, io)
}
