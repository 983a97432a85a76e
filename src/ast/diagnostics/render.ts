/** Diagnostics → text; the only module that renders them. */
import type { Diagnostic, Severity } from './diagnostic-types.ts'
import { ansi, frame, type Mark, type Paint, plain, SourceText } from './source-frame.ts'
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
export const escapeText = (text: string): string =>
  text
    .replaceAll('\r\n', '\n')
    .replace(
      /[^\P{Cc}\n\t]|[\u202a-\u202e\u2066-\u2069]/gu,
      (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
    )

/** `escapeText` for text within a line, such as names. */
export const escapeLine = (text: string): string => escapeText(text).replaceAll('\n', '\\n')

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
  const byName = new Map([...sources.values()].map((s) => [s.name, s]))
  const texts = new Map<string, SourceText>()
  const textOf = (span: Span): SourceText | undefined => {
    const text = sourceOf(span, byName)?.text
    if (text === undefined) return undefined
    const cached = texts.get(text) ?? new SourceText(text)
    texts.set(text, cached)
    return cached
  }
  return diagnostics.map((d) => renderOne(d, textOf, paint)).join('\n\n')
}

/** Returns the source text of a span, cut into lines; `undefined` if it is not available. */
type TextOf = (span: Span) => SourceText | undefined

function renderOne(d: Diagnostic, textOf: TextOf, paint: Paint): string {
  const severity: Severity = d.severity ?? 'error'
  const lines = [
    `${paint(severity, `${severity}[${d.code}]`)}${paint('strong', `: ${escapeLine(d.message)}`)}`,
  ]
  const frames = framesOf(d, severity, textOf, paint)
  lines.push(...frames)
  const margin = frames.length > 0 ? `${' '.repeat(marginOf(frames[0]!))} ` : '  '
  const add = (title: string, text: string): void => {
    const [first = '', ...otherLines] = escapeText(text).split('\n')
    lines.push(`${margin}${paint('frame', '=')} ${paint('strong', `${title}:`)} ${first}`)
    for (const r of otherLines) lines.push(`${margin}  ${r}`)
  }
  if (d.expected) add('expected', d.expected)
  const suggested = d.lookup && suggestion(d.lookup, !d.expected && !d.hint)
  if (suggested) add(suggested.title, suggested.text)
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
  const frames: { readonly name: string; readonly text: SourceText | undefined; readonly marks: Mark[] }[] =
    []
  const add = (span: Span, label: string, primary: boolean): void => {
    const [name, text] = [span.source, textOf(span)]
    const mark: Mark = { start: span.start, end: span.end, text: label, primary }
    const existing = frames.find((s) => s.name === name && s.text === text)
    if (existing) existing.marks.push(mark)
    else frames.push({ name, text, marks: [mark] })
  }
  if (d.span) add(d.span, '', true)
  for (const l of d.labels ?? []) add(l.span, escapeText(l.text), false)
  const width = Math.max(1, ...frames.map(({ text, marks }) => text?.numberWidth(marks) ?? 1))
  return frames.flatMap(({ name, text, marks }) =>
    text
      ? frame(escapeLine(name), text, marks, width, severity, paint)
      : [`${' '.repeat(width)}${paint('frame', '-->')} ${escapeLine(name)}`],
  )
}
