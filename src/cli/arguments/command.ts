/** A subcommand as a value: arguments, help and action. */
import type { Advice } from '../../ast/diagnostics/diagnostic.ts'
import { nearest } from '../../ast/diagnostics/suggest.ts'
import { rejectUsage } from '../output/failure.ts'
import type { Io } from '../output/io.ts'
import { reportOnStderr, standardStream, writeText } from '../output/outputs.ts'

export interface OptionSpec {
  /** `--bind <NAME=PATH>`, or `--json` if the option takes no value. */
  readonly flags: string
  readonly about: string
  /** May be given several times. */
  readonly repeats?: boolean
  /** The value names a file that is read, written once at the end, or rewritten several times (`update`). */
  readonly file?: 'read' | 'write' | 'update'
  /** Names of options: without one of these, this option has no effect. */
  readonly with?: readonly string[]
  /** Names of options next to which this option has no effect. */
  readonly without?: readonly string[]
}

/** A file that the call names. */
export interface PathArgument {
  /** As typed: `--out C=c.npy`. */
  readonly typed: string
  readonly path: string
}

/** The long name of an option, without dashes. */
export const longName = (o: OptionSpec): string => /--([a-z-]+)/.exec(o.flags)![1]!

export interface CommandSpec {
  readonly name: string
  /** Positional arguments as help shows them. */
  readonly args: string
  /** Minimum and maximum number of arguments. */
  readonly count: readonly [number, number]
  readonly summary: string
  readonly options: readonly OptionSpec[]
  /** Paragraphs below the options in help. */
  readonly notes?: readonly string[]
  readonly examples: readonly string[]
  /** Returns the exit code. */
  readonly run: (call: Call) => Promise<number>
}

/** Syntax of numbers in all options. */
export const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i

/** One call of a command. */
export class Call {
  /** Reports go here: to standard error if results go to standard output. */
  readonly io: Io

  constructor(
    readonly command: string,
    readonly args: readonly string[],
    private readonly options: ReadonlyMap<string, readonly string[]>,
    private readonly outputs: Io,
    private readonly declared: readonly OptionSpec[] = [],
  ) {
    this.io = this.standardOutputs.length > 0 ? reportOnStderr(outputs) : outputs
  }

  /** True if the option was given. */
  flag(name: string): boolean {
    return this.options.has(name)
  }

  /** The value of an option that can be given once. */
  one(name: string): string | undefined {
    return this.options.get(name)?.[0]
  }

  many(name: string): readonly string[] {
    return this.options.get(name) ?? []
  }

  /** @throws UsageError for options without effect */
  checkCombinations(): void {
    const isGiven = (name: string): boolean => this.flag(name)
    for (const option of this.declared) {
      const name = longName(option)
      if (!isGiven(name)) continue
      const blocking = option.without?.find(isGiven)
      if (blocking !== undefined)
        this.reject(`--${name} has no effect with --${blocking}`, { expected: `--${blocking}, or --${name}` })
      const owners = option.with
      if (!owners || owners.some(isGiven)) continue
      const owner = this.declared.find((d) => owners.includes(longName(d)))!
      this.reject(`--${name} has no effect without --${owners.join(' or --')}`, {
        expected: `${owner.flags} ${option.flags}`,
      })
    }
  }

  /** Files named by options with this access; `written` includes updated files. */
  files(access: 'read' | 'written' | 'update'): PathArgument[] {
    const isMatch = ({ file }: OptionSpec): boolean =>
      access === 'written' ? file === 'write' || file === 'update' : file === access
    return this.declared.filter(isMatch).flatMap((o) =>
      this.many(longName(o)).map((text) => ({
        typed: `--${longName(o)} ${text}`,
        path: o.flags.includes('NAME=') ? text.slice(equalsIn(text) + 1) : text,
      })),
    )
  }

  /** Output files that are standard output. */
  get standardOutputs(): PathArgument[] {
    return this.files('written').filter(({ path }) => standardStream(path) === 'out')
  }

  /** @throws UsageError */
  reject(message: string, advice: Advice): never {
    return rejectUsage({ command: this.command, message, ...advice })
  }

  /** Writes a text to a file, or to standard output or error by its path. @throws SptError `io/…` */
  write(path: string, text: string): Promise<void> {
    return writeText(this.outputs, path, text)
  }

  /** Value of an option that takes one of these words. @throws UsageError */
  choice<T extends string>(name: string, words: readonly T[]): T | undefined {
    const value = this.one(name)
    if (value === undefined || (words as readonly string[]).includes(value)) return value as T | undefined
    return this.reject(`--${name} ${value} is not possible`, {
      expected: words.join(', '),
      ...(nearest(value, words).length > 0 && value.length > 1
        ? { lookup: { name: value, candidates: words } }
        : {}),
    })
  }

  /** An integer in a range. */
  integer(name: string, min: number, max: number): number | undefined {
    return this.#number(name, Number.isInteger, min, max, `an integer from ${min} to ${max}`)
  }

  /** A number in a range, which may have a fraction. */
  decimal(name: string, min: number, max: number): number | undefined {
    return this.#number(name, () => true, min, max, `a number from ${min} to ${max}`)
  }

  /** A number of any size; callers check its range. */
  number(name: string): number | undefined {
    return this.#number(name, Number.isFinite, -Infinity, Infinity, 'a number')
  }

  #number(
    name: string,
    isValid: (value: number) => boolean,
    min: number,
    max: number,
    expected: string,
  ): number | undefined {
    const text = this.one(name)
    if (text === undefined) return undefined
    const value = NUMBER.test(text) ? Number(text) : Number.NaN
    if (isValid(value) && value >= min && value <= max) return value
    return this.reject(`--${name} ${text} is not possible`, { expected })
  }

  /** `NAME=N` pairs, each name once. */
  numbers(name: string, value: string): Record<string, number> {
    const out: [string, number][] = []
    for (const [key, text] of this.pairs(name, value)) {
      if (!NUMBER.test(text))
        this.reject(`--${name} ${key}=${text} is not possible`, {
          expected: `--${name} ${key}=${value}, a number`,
        })
      out.push([key, Number(text)])
    }
    return Object.fromEntries(out)
  }

  /** `NAME=VALUE` pairs, each name once. */
  pairs(name: string, value: string): Map<string, string> {
    const out = new Map<string, string>()
    for (const [key, [first, ...repeated]] of this.lists(name, value)) {
      if (repeated.length > 0) this.reject(`--${name} ${key} is given twice`, { expected: 'one value' })
      out.set(key, first!)
    }
    return out
  }

  /** `NAME=VALUE` pairs: all values of each name, in order. */
  lists(name: string, value: string): Map<string, readonly string[]> {
    const out = new Map<string, readonly string[]>()
    for (const text of this.many(name)) {
      const equals = equalsIn(text)
      const key = text.slice(0, Math.max(0, equals)).trim()
      if (equals <= 0 || key === '' || equals === text.length - 1)
        this.reject(`--${name} ${text} is incomplete`, { expected: `--${name} NAME=${value}` })
      out.set(key, [...(out.get(key) ?? []), text.slice(equals + 1)])
    }
    return out
  }
}

/** Index of the `=` before the value, outside parentheses: the condition may contain comparisons in parentheses. */
function equalsIn(text: string): number {
  let depth = 0
  for (let k = 0; k < text.length; k++) {
    if (text[k] === '(') depth++
    else if (text[k] === ')') depth--
    else if (text[k] === '=' && depth <= 0) return k
  }
  return -1
}

// Parsing of arguments to a call. `-` is a file, a negative number after an option is its value, and the declaration of an
// option states if it takes a value.

export const HELP: OptionSpec = { flags: '-h, --help', about: 'Show this help' }

const takesValue = (o: OptionSpec): boolean => o.flags.includes('<')

/** Values of options by name, empty for options without a value; and the files. */
function splitArguments(command: CommandSpec, argv: readonly string[]) {
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
