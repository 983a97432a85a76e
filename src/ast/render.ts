/** Diagnostics → text; the only module that renders them. */
import type { Diagnostic, Severity } from './diagnostic-types.ts'
import { ansi, type Paint, plain } from './paint.ts'
import { frame, type Mark, Text } from './source-frame.ts'
import { type Source, type Span, sourceOf } from './span.ts'
import { suggestion } from './suggest.ts'

export interface RenderOptions {
  /** ANSI colours. */
  readonly color?: boolean
}

/**
 * Escapes, as in JSON, the characters of data and programs that a terminal interprets: control characters except line
 * breaks and tabs, and bidirectional formatting characters.
 */
export const escaped = (text: string): string =>
  text
    .replaceAll('\r\n', '\n')
    .replace(
      /[^\P{Cc}\n\t]|[\u202a-\u202e\u2066-\u2069]/gu,
      (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
    )

/** `escaped` for text within a line, such as names. */
export const escapedLine = (text: string): string => escaped(text).replaceAll('\n', '\\n')

/**
 * Text for a terminal, one block per diagnostic with a blank line between them; no final line break. Spans without a
 * given source are reported without their lines. Control characters are escaped.
 */
export function render(
  diagnostics: readonly Diagnostic[],
  sources: readonly Source[] | ReadonlyMap<string, Source>,
  options: RenderOptions = {},
): string {
  const paint = options.color ? ansi : plain
  const given = new Map([...sources.values()].map((s) => [s.name, s]))
  const texts = new Map<string, Text>()
  const textOf = (span: Span): Text | undefined => {
    const text = sourceOf(span, given)?.text
    if (text === undefined) return undefined
    const known = texts.get(text) ?? new Text(text)
    texts.set(text, known)
    return known
  }
  return diagnostics.map((d) => one(d, textOf, paint)).join('\n\n')
}

/** Returns the source text of a span, cut into lines; `undefined` if it is not available. */
type TextOf = (span: Span) => Text | undefined

function one(d: Diagnostic, textOf: TextOf, paint: Paint): string {
  const severity: Severity = d.severity ?? 'error'
  const lines = [
    `${paint(severity, `${severity}[${d.code}]`)}${paint('strong', `: ${escapedLine(d.message)}`)}`,
  ]
  const frames = framesOf(d, severity, textOf, paint)
  lines.push(...frames)
  const margin = frames.length > 0 ? `${' '.repeat(marginOf(frames[0]!))} ` : '  '
  const add = (title: string, text: string): void => {
    const [first = '', ...rest] = escaped(text).split('\n')
    lines.push(`${margin}${paint('frame', '=')} ${paint('strong', `${title}:`)} ${first}`)
    for (const r of rest) lines.push(`${margin}  ${r}`)
  }
  if (d.expected) add('expected', d.expected)
  const guess = d.lookup && suggestion(d.lookup, !d.expected && !d.hint)
  if (guess) add(guess.title, guess.text)
  if (d.hint) add('hint', d.hint)
  for (const n of d.notes ?? []) add('note', n.includes('\n') ? `\n${n}` : n)
  return lines.map((l) => l.trimEnd()).join('\n')
}

/** Columns before the arrow or bar of a frame. */
const marginOf = (first: string): number => stripAnsi(first).indexOf('-->')
// biome-ignore lint/suspicious/noControlCharactersInRegex: the escape character of our own colours
const stripAnsi = (text: string): string => text.replace(/\u001b\[\d+m/g, '')

/** A frame for each mentioned source, the primary one first. */
function framesOf(d: Diagnostic, severity: Severity, textOf: TextOf, paint: Paint): string[] {
  const shown: { readonly name: string; readonly text: Text | undefined; readonly marks: Mark[] }[] = []
  const add = (span: Span, label: string, primary: boolean): void => {
    const [name, text] = [span.source, textOf(span)]
    const mark: Mark = { start: span.start, end: span.end, text: label, primary }
    const known = shown.find((s) => s.name === name && s.text === text)
    if (known) known.marks.push(mark)
    else shown.push({ name, text, marks: [mark] })
  }
  if (d.span) add(d.span, '', true)
  for (const l of d.labels ?? []) add(l.span, escaped(l.text), false)
  const width = Math.max(1, ...shown.map(({ text, marks }) => text?.numberWidth(marks) ?? 1))
  return shown.flatMap(({ name, text, marks }) =>
    text
      ? frame(escapedLine(name), text, marks, width, severity, paint)
      : [`${' '.repeat(width)}${paint('frame', '-->')} ${escapedLine(name)}`],
  )
}
