/**
 * Parses arguments to a call. `-` is a file, a negative number after an option is its value, and the declaration of an option
 * states if it takes a value.
 */
import type { Advice } from '../../ast/diagnostics/diagnostic.ts'
import { rejectUsage } from '../output/failure.ts'
import type { Io } from '../output/io.ts'
import { Call, type CommandSpec, longName, type OptionSpec } from './command.ts'

export const HELP: OptionSpec = { flags: '-h, --help', about: 'Show this help' }

const takesValue = (o: OptionSpec): boolean => o.flags.includes('<')

interface SplitArguments {
  /** Values of options by name; options without a value are absent. */
  readonly options: ReadonlyMap<string, readonly string[]>
  readonly files: readonly string[]
}

function splitArguments(command: CommandSpec, argv: readonly string[]): SplitArguments {
  const specs = new Map([...command.options, HELP].map((o) => [longName(o), o] as const))
  const options = new Map<string, string[]>()
  const files: string[] = []
  const reject = (message: string, advice: Advice): never =>
    rejectUsage({ command: command.name, message, ...advice })
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
    const typed = equals < 0 ? arg : arg.slice(0, equals)
    const name = typed === '-h' ? 'help' : typed.replace(/^--/, '')
    const option = specs.get(name)
    if (!option)
      reject(`there is no option ${typed}`, {
        lookup: { name: `--${typed.replace(/^-+/, '')}`, candidates: [...specs.keys()].map((n) => `--${n}`) },
      })
    const previous = options.get(name)
    if (previous && !option!.repeats && takesValue(option!))
      reject(`--${name} is given twice`, { expected: 'one value' })
    if (!takesValue(option!)) {
      if (equals >= 0) reject(`--${name} takes no value`, { expected: `--${name}` })
      options.set(name, [])
      continue
    }
    const next = argv[k + 1]
    const value = equals >= 0 ? arg.slice(equals + 1) : next
    if (value === undefined || value === '' || (equals < 0 && /^-(?![.\d]|$)/.test(value)))
      reject(`--${name} needs a value`, { expected: option!.flags })
    // Other tools read `-` as standard input or output, so a file of that name is not meant.
    if (value === '-')
      reject(`--${name} - is not possible`, { expected: option!.flags, hint: 'a file called - is ./-' })
    if (equals < 0) k++
    options.set(name, [...(previous ?? []), value!])
  }
  return { options, files }
}

/** Parses `argv` (after the command's name) to a call, or `help`. @throws UsageError */
export function parseArgs(command: CommandSpec, argv: readonly string[], io: Io): Call | 'help' {
  const { options, files } = splitArguments(command, argv)
  if (options.has('help')) return 'help'
  const [min, max] = command.count
  if (files.length < min)
    rejectUsage({
      command: command.name,
      message: 'a file is missing',
      expected: `spt ${command.name} ${command.args}`,
    })
  if (files.length > max)
    rejectUsage({
      command: command.name,
      message: `there is no place for ${files.slice(max).join(' ')}`,
      expected: `spt ${command.name} ${command.args}`,
    })
  const call = new Call(command.name, files, options, io, command.options)
  call.checkCombinations()
  return call
}
