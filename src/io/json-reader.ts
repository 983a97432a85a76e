/**
 * A strict JSON reader: callers state the expected structure, and any deviation is rejected with its location. Keys are
 * unique, integers exact, and only requested values are kept. `JSON.parse` would accept arbitrary depth and repeated
 * keys.
 */

import type { ByteSource } from './byte-source.ts'

const SPACE = ' \t\n\r'
/** Digits that can make an integer below 2^53. */
const INTEGER = /0|[1-9]\d{0,15}/y
/** Numbers and words, matched loosely: skipped values are not validated. */
const TOKEN = /[-+.\w]{1,64}/y
/** UTF-8 cannot encode unpaired surrogates, so a name with one could not be written back. */
const HALF = /\p{Surrogate}/u

/** A name from a file, short enough for a message. */
export const shown = (name: string): string => `'${name.length > 80 ? `${name.slice(0, 77)}…` : name}'`

/** Reads a whole UTF-8 file of at most `most` bytes. `wrong`: as for the reader. */
export async function jsonIn(
  source: ByteSource,
  most: number,
  wrong: (what: string) => never,
): Promise<JsonReader> {
  if (source.size > most) wrong(`has ${source.size} bytes, and at most ${most} are read`)
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(await source.read(0, source.size))
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    return wrong('is not UTF-8')
  }
  return new JsonReader(text, wrong)
}

export class JsonReader {
  private at = 0
  private readonly text: string
  private readonly wrong: (what: string) => never

  /** `wrong` throws; its argument completes a sentence that states the defect. */
  constructor(text: string, wrong: (what: string) => never) {
    this.text = text
    this.wrong = wrong
  }

  /** Reads an object; `member` must read the value of each key. */
  object(member: (key: string) => void): void {
    this.take('{')
    if (this.takes('}')) return
    const keys = new Set<string>()
    do {
      const key = this.string()
      if (keys.has(key)) this.wrong(`has the key ${shown(key)} twice`)
      keys.add(key)
      this.take(':')
      member(key)
    } while (this.takes(','))
    this.take('}')
  }

  /** Reads a list; `item` must read each value. */
  list(item: () => void): void {
    this.take('[')
    if (this.takes(']')) return
    do item()
    while (this.takes(','))
    this.take(']')
  }

  string(): string {
    this.space()
    const { text, at } = this
    if (text[at] !== '"') this.expected('a string in quotes')
    let end = text.indexOf('"', at + 1)
    while (end >= 0 && this.escapedAt(end)) end = text.indexOf('"', end + 1)
    if (end < 0) return this.expected('a quote that ends the string')
    this.at = end + 1
    try {
      // A copy, because a slice would keep the whole text in memory.
      const value = JSON.parse(text.slice(at, end + 1)) as string
      if (!HALF.test(value)) return value
    } catch {
      // A line break or an unknown escape, reported below.
    }
    this.at = at
    return this.expected('a string of whole characters')
  }

  /** Reads an integer from 0 to 2^53 - 1. */
  integer(): number {
    this.space()
    INTEGER.lastIndex = this.at
    const [digits] = INTEGER.exec(this.text) ?? []
    const value = Number(digits)
    const after = this.text[this.at + (digits?.length ?? 0)]
    if (!Number.isSafeInteger(value) || (after !== undefined && /[\d.eE]/.test(after)))
      return this.expected('an integer from 0 to 2^53 - 1')
    this.at += digits!.length
    return value
  }

  /** Skips any value. */
  skip(): void {
    let depth = 0
    do {
      this.space()
      const c = this.text[this.at]
      if (c === '"') this.string()
      else if (c !== undefined && '{[}],:'.includes(c)) {
        if (depth === 0 && !'{['.includes(c)) this.expected('a value')
        depth += '{['.includes(c) ? 1 : '}]'.includes(c) ? -1 : 0
        this.at++
      } else {
        TOKEN.lastIndex = this.at
        this.at += TOKEN.exec(this.text)?.[0].length ?? this.expected('a value')
      }
    } while (depth > 0)
  }

  /** Checks that nothing follows. */
  end(): void {
    this.space()
    if (this.at < this.text.length) this.expected('the end')
  }

  private space(): void {
    while (this.at < this.text.length && SPACE.includes(this.text[this.at]!)) this.at++
  }

  private takes(character: string): boolean {
    this.space()
    if (this.text[this.at] !== character) return false
    this.at++
    return true
  }

  private take(character: string): void {
    if (!this.takes(character)) this.expected(`'${character}'`)
  }

  /** True if an odd number of backslashes precedes a quote. */
  private escapedAt(quote: number): boolean {
    let at = quote
    while (this.text[at - 1] === '\\') at--
    return (quote - at) % 2 === 1
  }

  private expected(what: string): never {
    return this.wrong(`lacks ${what} at character ${this.at}`)
  }
}
