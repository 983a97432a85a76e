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
const UNPAIRED_SURROGATE = /\p{Surrogate}/u

/** A name from a file, short enough for a message. */
export const quoteName = (name: string): string => `'${name.length > 80 ? `${name.slice(0, 77)}…` : name}'`

/** Reads a whole UTF-8 file of at most `maxBytes` bytes. `reject`: as for the reader. */
export async function readJson(
  source: ByteSource,
  maxBytes: number,
  reject: (what: string) => never,
): Promise<JsonReader> {
  if (source.size > maxBytes) reject(`has ${source.size} bytes, and at most ${maxBytes} are read`)
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(await source.read(0, source.size))
  } catch (error) {
    if (!(error instanceof TypeError)) throw error
    return reject('is not UTF-8')
  }
  return new JsonReader(text, reject)
}

export class JsonReader {
  private offset = 0

  /** `reject` throws; its argument completes a sentence that states the defect. */
  constructor(
    private readonly text: string,
    private readonly reject: (what: string) => never,
  ) {}

  /** Reads an object; `member` must read the value of each key. */
  object(member: (key: string) => void): void {
    this.expectCharacter('{')
    if (this.skipCharacter('}')) return
    const keys = new Set<string>()
    do {
      const key = this.string()
      if (keys.has(key)) this.reject(`has the key ${quoteName(key)} twice`)
      keys.add(key)
      this.expectCharacter(':')
      member(key)
    } while (this.skipCharacter(','))
    this.expectCharacter('}')
  }

  /** Reads a list; `item` must read each value. */
  list(item: () => void): void {
    this.expectCharacter('[')
    if (this.skipCharacter(']')) return
    do item()
    while (this.skipCharacter(','))
    this.expectCharacter(']')
  }

  string(): string {
    this.skipSpace()
    const { text, offset } = this
    if (text[offset] !== '"') this.expected('a string in quotes')
    let end = text.indexOf('"', offset + 1)
    while (end >= 0 && this.escapedAt(end)) end = text.indexOf('"', end + 1)
    if (end < 0) return this.expected('a quote that ends the string')
    this.offset = end + 1
    try {
      // A copy, because a slice would keep the whole text in memory.
      const value = JSON.parse(text.slice(offset, end + 1)) as string
      if (!UNPAIRED_SURROGATE.test(value)) return value
    } catch {
      // A line break or an unknown escape, reported below.
    }
    this.offset = offset
    return this.expected('a string of whole characters')
  }

  /** Reads an integer from 0 to 2^53 - 1. */
  integer(): number {
    this.skipSpace()
    INTEGER.lastIndex = this.offset
    const [digits] = INTEGER.exec(this.text) ?? []
    const value = Number(digits)
    const next = this.text[this.offset + (digits?.length ?? 0)]
    if (!Number.isSafeInteger(value) || (next !== undefined && /[\d.eE]/.test(next)))
      return this.expected('an integer from 0 to 2^53 - 1')
    this.offset += digits!.length
    return value
  }

  skip(): void {
    let depth = 0
    do {
      this.skipSpace()
      const c = this.text[this.offset]
      if (c === '"') this.string()
      else if (c !== undefined && '{[}],:'.includes(c)) {
        if (depth === 0 && !'{['.includes(c)) this.expected('a value')
        depth += '{['.includes(c) ? 1 : '}]'.includes(c) ? -1 : 0
        this.offset++
      } else {
        TOKEN.lastIndex = this.offset
        this.offset += TOKEN.exec(this.text)?.[0].length ?? this.expected('a value')
      }
    } while (depth > 0)
  }

  end(): void {
    this.skipSpace()
    if (this.offset < this.text.length) this.expected('the end')
  }

  private skipSpace(): void {
    while (this.offset < this.text.length && SPACE.includes(this.text[this.offset]!)) this.offset++
  }

  private skipCharacter(character: string): boolean {
    this.skipSpace()
    if (this.text[this.offset] !== character) return false
    this.offset++
    return true
  }

  private expectCharacter(character: string): void {
    if (!this.skipCharacter(character)) this.expected(`'${character}'`)
  }

  /** True if an odd number of backslashes precedes a quote. */
  private escapedAt(quote: number): boolean {
    let offset = quote
    while (this.text[offset - 1] === '\\') offset--
    return (quote - offset) % 2 === 1
  }

  private expected(what: string): never {
    return this.reject(`lacks ${what} at character ${this.offset}`)
  }
}
