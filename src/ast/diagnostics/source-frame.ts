/** Source lines with marks under them, in the style of rustc. */
import type { Severity } from './diagnostic-types.ts'

/** A marked range `[start, end)` of characters. */
export interface Mark {
  readonly start: number
  readonly end: number
  readonly text: string
  readonly primary: boolean
}

const TAB = 4
/** Lines shown of a long mark, or between two marks; the rest is left out. */
const MAX_SHOWN_LINES = 3
/** Columns shown around a mark in longer lines. */
const MAX_LINE_WIDTH = 160

/** A source cut into lines; `\n` and `\r\n` end one. */
export class SourceText {
  readonly length: number
  private readonly starts: number[] = [0]

  constructor(private readonly text: string) {
    this.length = text.length
    for (let p = text.indexOf('\n'); p >= 0; p = text.indexOf('\n', p + 1)) this.starts.push(p + 1)
  }

  /** The line (from 0) of offset `at`; offsets outside the text are clamped. */
  lineOf(offset: number): number {
    let lo = 0
    let hi = this.starts.length
    while (hi - lo > 1) {
      const mid = (lo + hi) >> 1
      if (this.starts[mid]! <= offset) lo = mid
      else hi = mid
    }
    return lo
  }

  start(line: number): number {
    return this.starts[line]!
  }

  line(line: number): string {
    const end = this.starts[line + 1]
    return this.text.slice(this.starts[line]!, end === undefined ? undefined : end - 1).replace(/\r$/, '')
  }

  numberWidth(marks: readonly Mark[]): number {
    return String(Math.max(...marks.map((m) => this.lineOf(Math.max(m.start, m.end - 1)))) + 1).length
  }
}

/** One line and column, from 1; columns count characters, not code units. */
export function position(
  text: SourceText,
  offset: number,
): { readonly line: number; readonly column: number } {
  const line = text.lineOf(offset)
  const column = [...text.line(line).slice(0, Math.max(0, offset - text.start(line)))].length + 1
  return { line: line + 1, column }
}

/** Terminal width of one character: 2 for East Asian scripts and emoji, 0 for combining marks. */
function widthOf(char: string): number {
  const c = char.codePointAt(0)!
  if (c < 0x300) return 1
  if (/\p{Mn}|\p{Me}|\u200d|\ufe0f/u.test(char)) return 0
  const wide =
    (c >= 0x1100 && c <= 0x115f) ||
    (c >= 0x2e80 && c <= 0xa4cf) ||
    (c >= 0xac00 && c <= 0xd7a3) ||
    (c >= 0xf900 && c <= 0xfaff) ||
    (c >= 0xfe30 && c <= 0xfe6f) ||
    (c >= 0xff00 && c <= 0xff60) ||
    (c >= 0xffe0 && c <= 0xffe6) ||
    (c >= 0x1f300 && c <= 0x1faff) ||
    (c >= 0x20000 && c <= 0x3fffd)
  return wide ? 2 : 1
}

interface DisplayedLine {
  readonly text: string
  /** Terminal column of each offset in the line, and of its end. */
  readonly columns: readonly number[]
}

/** A line as displayed: tabs expanded, control characters replaced. */
function displayLine(line: string): DisplayedLine {
  const columns: number[] = []
  let text = ''
  let column = 0
  for (const char of line) {
    for (let k = 0; k < char.length; k++) columns.push(column)
    if (char === '\t') {
      const n = TAB - (column % TAB)
      text += ' '.repeat(n)
      column += n
    } else {
      const visible = /\p{Cc}|\p{Cs}|[\u202a-\u202e\u2066-\u2069]/u.test(char) ? '\ufffd' : char
      text += visible
      column += widthOf(visible)
    }
  }
  columns.push(column)
  return { text, columns }
}

/** The part of a mark on one line, in terminal columns. */
interface LineMark {
  readonly from: number
  readonly to: number
  readonly text: string
  readonly primary: boolean
}

/** The frame of one source: its location, then the marked lines; line numbers are right-aligned in `width`. */
export function frame(
  name: string,
  text: SourceText,
  marks: readonly Mark[],
  width: number,
  severity: Severity,
  paint: Paint,
): string[] {
  const clamped = marks.map((m) => clamp(m, text.length))
  const first = clamped[0]!
  const { line, column } = position(text, first.start)
  const bar = (number: string): string => paint('frame', `${number.padStart(width)} |`)
  const out = [`${' '.repeat(width)}${paint('frame', '-->')} ${name}:${line}:${column}`, bar('')]
  const pieces = piecesOf(text, clamped)
  let previous: number | undefined
  for (const n of [...pieces.keys()].sort((a, b) => a - b)) {
    if (previous !== undefined && n === previous + 2)
      out.push(`${bar(String(n))} ${truncateLine(displayLine(text.line(n - 1)).text, 0)}`)
    else if (previous !== undefined && n > previous + 1) out.push(paint('frame', '...'))
    const displayed = displayLine(text.line(n))
    const linePieces = pieces.get(n)!
    const shift = shiftOf(displayed, linePieces)
    out.push(`${bar(String(n + 1))} ${truncateLine(displayed.text, shift)}`)
    for (const row of markRows(linePieces, shift, severity, paint)) out.push(`${bar('')} ${row}`)
    previous = n
  }
  return out
}

function clamp(m: Mark, length: number): Mark {
  const start = Math.min(Math.max(0, m.start), length)
  return { ...m, start, end: Math.min(Math.max(start, m.end), length) }
}

/** The marks on each line. A mark over many lines is shown on the first and last only, with its text on the last. */
function piecesOf(text: SourceText, marks: readonly Mark[]): Map<number, LineMark[]> {
  const result = new Map<number, LineMark[]>()
  for (const m of marks) {
    const from = text.lineOf(m.start)
    const to = text.lineOf(Math.max(m.start, m.end - 1))
    for (let n = from; n <= to; n++) {
      if (to - from >= MAX_SHOWN_LINES && n !== from && n !== to) continue
      const content = text.line(n)
      const { columns } = displayLine(content)
      const at = (offset: number): number =>
        columns[Math.min(Math.max(0, offset - text.start(n)), content.length)]!
      const indent = columns[content.length - content.trimStart().length]!
      const a = n === from ? at(m.start) : Math.min(indent, at(m.end))
      const b = n === to ? at(m.end) : columns[content.length]!
      if (n !== from && n !== to && content.trim() === '') continue
      const list = result.get(n) ?? []
      list.push({ from: a, to: Math.max(b, a + 1), text: n === to ? m.text : '', primary: m.primary })
      result.set(n, list)
    }
  }
  return result
}

/** The number of columns to leave out on the left, so that the marks of a very long line are visible. */
function shiftOf(s: DisplayedLine, pieces: readonly LineMark[]): number {
  const from = Math.min(...pieces.map((p) => p.from))
  return s.columns.at(-1)! <= MAX_LINE_WIDTH || from < MAX_LINE_WIDTH - 40 ? 0 : from - 40
}

function truncateLine(text: string, shift: number): string {
  const chars = [...text]
  if (shift === 0 && chars.length <= MAX_LINE_WIDTH) return text
  const head = shift > 0 ? '…' : ''
  const body = chars.slice(shift + head.length, shift + MAX_LINE_WIDTH)
  return head + body.join('') + (chars.length > shift + MAX_LINE_WIDTH ? '…' : '')
}

/** Marks on one row if they do not overlap; texts that do not fit next to the marks are printed below them. */
function markRows(pieces: readonly LineMark[], shift: number, severity: Severity, paint: Paint): string[] {
  const sorted = pieces
    .map((p) => ({ ...p, from: p.from - shift, to: Math.min(p.to - shift, MAX_LINE_WIDTH + 1) }))
    .sort((a, b) => a.from - b.from || a.to - b.to)
  const rows: (typeof sorted)[] = []
  for (const p of sorted) {
    const row = rows.find((r) => r.at(-1)!.to < p.from && r.at(-1)!.text === '')
    if (row) row.push(p)
    else rows.push([p])
  }
  return rows.map((row) => {
    let column = 0
    let out = ''
    for (const p of row) {
      const style = p.primary ? severity : 'frame'
      const mark = (p.primary ? '^' : '-').repeat(Math.max(1, p.to - p.from))
      out += ' '.repeat(p.from - column) + paint(style, mark) + (p.text ? paint(style, ` ${p.text}`) : '')
      column = p.from + mark.length
    }
    return out
  })
}

/** Styles of diagnostics and their ANSI colours. */
const COLORS = { error: '31', warning: '33', note: '36', strong: '1', frame: '34', help: '32' } as const
export type Paint = (style: keyof typeof COLORS, text: string) => string

export const plain: Paint = (_, text) => text
export const ansi: Paint = (style, text) => (text === '' ? '' : `\u001b[${COLORS[style]}m${text}\u001b[0m`)
