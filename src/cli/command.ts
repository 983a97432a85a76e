/** A subcommand as a value: arguments, help and action. */
import { nearest } from '../ast/suggest.ts'
import type { Io } from './io.ts'
import { outputAt, reportsAside, writeText } from './outputs.ts'
import { misused } from './usage.ts'

export interface OptionSpec {
  /** `--bind <NAME=PATH>`, or `--json` for one without a value. */
  readonly flags: string
  readonly about: string
  /** May be given several times. */
  readonly repeats?: boolean
  /** Its value names a file: one that is read, written once at the end, or written again and again. */
  readonly file?: 'read' | 'write' | 'update'
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
  /** Gives the exit code. */
  readonly run: (call: Call) => Promise<number>
}

/** Syntax of numbers in all options. */
export const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i

/** One call of a command. */
export class Call {
  readonly command: string
  readonly args: readonly string[]
  /** Reports go here: to standard error if results go to standard output. */
  readonly io: Io
  readonly #outputs: Io
  readonly #options: ReadonlyMap<string, readonly string[]>
  readonly #declared: readonly OptionSpec[]

  constructor(
    command: string,
    args: readonly string[],
    options: ReadonlyMap<string, readonly string[]>,
    io: Io,
    declared: readonly OptionSpec[] = [],
  ) {
    this.command = command
    this.args = args
    this.#options = options
    this.#declared = declared
    this.#outputs = io
    this.io = this.toStandardOutput.length > 0 ? reportsAside(io) : io
  }

  /** True if the option was given. */
  flag(name: string): boolean {
    return this.#options.has(name)
  }

  /** The value of an option that can be given once. */
  one(name: string): string | undefined {
    return this.#options.get(name)?.[0]
  }

  many(name: string): readonly string[] {
    return this.#options.get(name) ?? []
  }

  /** The files that options name which are read, or written. */
  files(which: 'read' | 'written' | 'update'): PathArgument[] {
    const isOne = ({ file }: OptionSpec): boolean =>
      which === 'written' ? file === 'write' || file === 'update' : file === which
    return this.#declared.filter(isOne).flatMap((o) =>
      this.many(longName(o)).map((text) => ({
        typed: `--${longName(o)} ${text}`,
        path: o.flags.includes('NAME=') ? text.slice(equalsIn(text) + 1) : text,
      })),
    )
  }

  /** Those that are written to standard output. */
  get toStandardOutput(): PathArgument[] {
    return this.files('written').filter(({ path }) => outputAt(path) === 'out')
  }

  /** Writes a file that the call names, or to an output by its path. @throws SptError `io/…` */
  write(path: string, text: string): Promise<void> {
    return writeText(this.#outputs, path, text)
  }

  /** One of a few words. */
  choice<T extends string>(name: string, words: readonly T[]): T | undefined {
    const value = this.one(name)
    if (value === undefined || (words as readonly string[]).includes(value)) return value as T | undefined
    return misused({
      command: this.command,
      message: `--${name} ${value} is not possible`,
      expected: words.join(', '),
      ...(nearest(value, words).length > 0 && value.length > 1
        ? { lookup: { name: value, candidates: words } }
        : {}),
    })
  }

  /** An integer in a range. */
  integer(name: string, least: number, most: number): number | undefined {
    return this.#number(name, Number.isInteger, least, most, `an integer from ${least} to ${most}`)
  }

  /** A number in a range, which may have a fraction. */
  decimal(name: string, least: number, most: number): number | undefined {
    return this.#number(name, () => true, least, most, `a number from ${least} to ${most}`)
  }

  /** A number of any size; callers check its range. */
  number(name: string): number | undefined {
    return this.#number(name, Number.isFinite, -Infinity, Infinity, 'a number')
  }

  #number(
    name: string,
    isOne: (value: number) => boolean,
    least: number,
    most: number,
    expected: string,
  ): number | undefined {
    const text = this.one(name)
    if (text === undefined) return undefined
    const value = NUMBER.test(text) ? Number(text) : Number.NaN
    if (isOne(value) && value >= least && value <= most) return value
    return misused({ command: this.command, message: `--${name} ${text} is not possible`, expected })
  }

  /** `NAME=N` pairs, each name once. */
  numbers(name: string, value: string): Record<string, number> {
    const out: [string, number][] = []
    for (const [key, text] of this.pairs(name, value)) {
      if (!NUMBER.test(text))
        misused({
          command: this.command,
          message: `--${name} ${key}=${text} is not possible`,
          expected: `--${name} ${key}=${value}, a number`,
        })
      out.push([key, Number(text)])
    }
    return Object.fromEntries(out)
  }

  /** `NAME=VALUE` pairs, each name once. */
  pairs(name: string, value: string): Map<string, string> {
    const out = new Map<string, string>()
    for (const [key, [first, ...more]] of this.lists(name, value)) {
      if (more.length > 0)
        misused({ command: this.command, message: `--${name} ${key} is given twice`, expected: 'one value' })
      out.set(key, first!)
    }
    return out
  }

  /** `NAME=VALUE` pairs: all values of each name, in order. */
  lists(name: string, value: string): Map<string, readonly string[]> {
    const out = new Map<string, readonly string[]>()
    for (const text of this.many(name)) {
      const at = equalsIn(text)
      const key = text.slice(0, Math.max(0, at)).trim()
      if (at <= 0 || key === '' || at === text.length - 1)
        misused({
          command: this.command,
          message: `--${name} ${text} is incomplete`,
          expected: `--${name} NAME=${value}`,
        })
      out.set(key, [...(out.get(key) ?? []), text.slice(at + 1)])
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
