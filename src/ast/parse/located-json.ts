/** JSON with source locations, for files whose errors name a place. */
import { fail, type Refusal } from '../diagnostics/diagnostic.ts'
import { type Source, type Span, spanIn } from '../diagnostics/span.ts'

export interface LocatedText {
  readonly kind: 'text'
  readonly value: string
  /** True without escapes: offsets in the value are then offsets in the source. */
  readonly isPlain: boolean
  readonly span: Span
}
export interface LocatedEntry {
  readonly key: LocatedText
  readonly value: LocatedJson
}
export type LocatedJson =
  | LocatedText
  | { readonly kind: 'number' | 'word'; readonly value: number | boolean | null; readonly span: Span }
  | { readonly kind: 'list'; readonly items: readonly LocatedJson[]; readonly span: Span }
  | { readonly kind: 'record'; readonly entries: readonly LocatedEntry[]; readonly span: Span }

/** Maximum nesting, far below the limit of the stack. */
const MAX_DEPTH = 32

const TOKENS = {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids them in strings
  text: /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y,
  number: /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y,
  word: /true|false|null/y,
} as const

/** @throws SptError `table/syntax` */
export function parseLocatedJson(source: Source): LocatedJson {
  const { text } = source
  let at = 0
  const span = (start: number): Span => spanIn(source, start, at)
  const reject = (problem: Omit<Refusal, 'code'>, end = Math.min(at + 1, text.length)): never =>
    fail({ code: 'table/syntax', span: spanIn(source, at, end), ...problem } as Parameters<typeof fail>[0])
  const skip = (): void => {
    while (at < text.length && /[ \t\r\n\uFEFF]/.test(text[at]!)) at++
  }
  const token = (kind: keyof typeof TOKENS): string | undefined => {
    const pattern = TOKENS[kind]
    pattern.lastIndex = at
    const found = pattern.exec(text)?.[0]
    if (found !== undefined) at += found.length
    return found
  }
  const eat = (c: string): boolean => {
    skip()
    if (text[at] !== c) return false
    at++
    return true
  }
  const textValue = (): LocatedText => {
    skip()
    const start = at
    const raw = token('text')
    if (raw === undefined)
      return reject({
        message: 'a text in double quotes belongs here',
        expected: '"…"',
        hint: nearby(text, at),
      })
    return { kind: 'text', value: JSON.parse(raw) as string, isPlain: !raw.includes('\\'), span: span(start) }
  }
  /** The elements up to `close`, with commas between them. */
  const elements = <T>(close: string, element: () => T): readonly T[] => {
    const found: T[] = []
    if (eat(close)) return found
    for (;;) {
      found.push(element())
      if (eat(close)) return found
      if (!eat(','))
        reject({
          message: `a comma or \`${close}\` is missing`,
          expected: `, or ${close}`,
          hint: nearby(text, at),
        })
    }
  }
  const value = (depth: number): LocatedJson => {
    skip()
    const start = at
    if (depth > MAX_DEPTH)
      return reject({ message: 'the values are nested too deeply', expected: `at most ${MAX_DEPTH} levels` })
    if (text[at] === '"') return textValue()
    if (eat('[')) return { kind: 'list', items: elements(']', () => value(depth + 1)), span: span(start) }
    if (eat('{')) {
      const entries = elements('}', () => {
        const key = textValue()
        if (!eat(':')) reject({ message: 'a colon is missing', expected: `"${key.value}": VALUE` })
        return { key, value: value(depth + 1) }
      })
      return { kind: 'record', entries, span: span(start) }
    }
    const kind = token('word') === undefined ? 'number' : 'word'
    if (kind === 'number' && token('number') === undefined)
      return reject({
        message: 'a value is missing',
        expected: '"…", a number, [ … ] or { … }',
        hint: nearby(text, at),
      })
    return { kind, value: JSON.parse(text.slice(start, at)) as number | boolean | null, span: span(start) }
  }
  const root = value(0)
  skip()
  if (at < text.length)
    reject(
      { message: 'nothing may follow the value of the file', expected: 'the end of the file' },
      text.length,
    )
  return root
}

function nearby(text: string, at: number): string {
  if (text[at] === "'") return 'JSON has double quotes only'
  if (text.startsWith('//', at) || text.startsWith('/*', at)) return 'JSON has no comments: write a "note"'
  if (/[}\]]/.test(text[at] ?? '') && /,\s*$/.test(text.slice(0, at))) return 'remove the last comma'
  return at >= text.length
    ? 'the file ends too early: was it cut off?'
    : 'check the quotes, commas and brackets here'
}
