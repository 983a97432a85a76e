/**
 * A scan of the characters before the grammar: collects comments (dropped by the parser, kept by the printer),
 * condenses the source, and rejects errors that the grammar would report badly: unbalanced brackets, unclosed comments,
 * excessive nesting.
 */
import { failAt, failWith } from '../diagnostics/diagnostic.ts'
import { type Source, type Span, spanIn } from '../diagnostics/span.ts'
import type { Comment } from '../nodes/nodes.ts'

/**
 * The source as passed to the grammar. Ohm needs time and 2 KB for each character, so runs of blanks and comments are
 * condensed to one blank, and text of other languages between backticks is removed.
 */
interface Condensed {
  readonly text: string
  /** The source offset of an offset in `text` (its end included). */
  readonly at: (place: number) => number
  /** `text` cut into pieces of one or more declarations. */
  readonly pieces: readonly string[]
}

/** Builds condensed text; its methods are called with increasing offsets. */
class Condenser {
  readonly #kept: string[] = []
  readonly #at: Uint32Array
  #length = 0
  /** Source offset up to which text was kept or omitted. */
  #from = 0
  readonly #ends: number[] = []

  constructor(private readonly source: string) {
    this.#at = new Uint32Array(source.length + 1)
  }

  #keep(until: number): void {
    for (let p = this.#from; p < until; p++) this.#at[this.#length++] = p
    if (until > this.#from) this.#kept.push(this.source.slice(this.#from, until))
    this.#from = until
  }

  omit(start: number, end: number): void {
    this.#keep(start)
    this.#from = end
  }

  /**
   * Replaces blanks and comments by one blank. A line break at the start is kept, so that unclosed strings end on their
   * line.
   */
  blank(start: number, end: number): void {
    if (end === start + 1) return
    this.#keep(start)
    this.#at[this.#length++] = start
    this.#kept.push(this.source[start] === '\n' ? '\n' : ' ')
    this.#from = end
  }

  /** Marks the end of a declaration at its outermost closing brace; the braces of imports do not end one. */
  declared(end: number): void {
    if (!/^\s*from\b/.test(this.source.slice(end, end + 16))) this.#ends.push(this.#length + end - this.#from)
  }

  end(): Condensed {
    this.#keep(this.source.length)
    this.#at[this.#length] = this.source.length
    const text = this.#kept.join('')
    const starts = [0, ...this.#ends]
    return {
      text,
      at: (place) => this.#at[place]!,
      pieces: starts.map((start, k) => text.slice(start, starts[k + 1])),
    }
  }
}

/** Most characters of one file: Ohm needs about 2 KB for each. Data files are read by `io`. */
export const MAX_SOURCE = 400_000
/** Deepest nesting of brackets; the parser recurses once for each level. */
export const MAX_NESTING = 64

export const CLOSER: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' }

interface OpenBracket {
  readonly char: string
  readonly offset: number
}

export interface ScanResult {
  readonly comments: readonly Comment[]
  readonly condensed: Condensed
}

export function scan(source: Source): ScanResult {
  const { name, text } = source
  const span = (start: number, end: number): Span => spanIn(source, start, end)
  if (text.length > MAX_SOURCE)
    failWith('parse/too-large', `${name} has ${text.length} characters; a program may have ${MAX_SOURCE}`, {
      hint: 'if this is a data file, bind the file with --bind NAME=PATH',
    })
  const comments: Comment[] = []
  const condenser = new Condenser(text)
  const stack: OpenBracket[] = []
  let misindented: OpenBracket | undefined
  let p = 0
  while (p < text.length) {
    const c = text[p]!
    if (BLANK.has(c) || startsComment(text, p)) {
      const end = endOfBlanks(text, p, span, comments)
      condenser.blank(p, end)
      p = end
    } else if (c === '"') {
      p = endOfString(text, p)
    } else if (c === '`') {
      const end = endOfCode(text, p, span)
      condenser.omit(p + 1, end - 1)
      p = end
    } else if (/\s/.test(c)) {
      const code = c.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')
      failAt('parse/unexpected', span(p, p + 1), {
        message: `unexpected U+${code}, which only looks like a space`,
        expected: 'a blank, a tab or the end of the line',
        hint: 'replace the character by a blank; text copied from web pages contains such characters',
      })
    } else {
      if (c in CLOSER) {
        stack.push({ char: c, offset: p })
        if (stack.length > MAX_NESTING) rejectDepth(span(p, p + 1))
      } else if (c === ')' || c === ']' || c === '}') {
        const open = stack.pop()
        if (!open || (CLOSER[open.char] !== c && !isOpen(stack, c)))
          failAt('parse/unopened', span(p, p + 1), {
            message: `\`${c}\` closes nothing`,
            hint: 'remove the bracket, or add the opening bracket',
          })
        if (CLOSER[open.char] !== c) rejectUnclosed(open, span(p, p + 1), span)
        if (c === '}' && !misindented && indentOf(text, p) < indentOf(text, open.offset)) misindented = open
        if (c === '}' && stack.length === 0) condenser.declared(p + 1)
      }
      p++
    }
  }
  const last = stack.pop()
  const end = text.trimEnd().length
  if (last) rejectUnclosed(misindented ?? last, span(end, end), span)
  return { comments, condensed: condenser.end() }
}

const BLANK: ReadonlySet<string> = new Set(' \t\r\n')

const startsComment = (text: string, p: number): boolean =>
  text[p] === '/' && (text[p + 1] === '/' || text[p + 1] === '*')

/** The offset after blanks and comments, which are appended to `comments`. */
function endOfBlanks(
  text: string,
  start: number,
  span: (start: number, end: number) => Span,
  comments: Comment[],
): number {
  let p = start
  for (; ; p = comments.at(-1)!.span.end) {
    while (BLANK.has(text[p]!)) p++
    if (!startsComment(text, p)) return p
    comments.push(text[p + 1] === '/' ? lineComment(text, p, span) : blockComment(text, p, span))
  }
}

function lineComment(text: string, p: number, span: (start: number, end: number) => Span): Comment {
  const newline = text.indexOf('\n', p)
  let end = newline < 0 ? text.length : newline
  if (text[end - 1] === '\r') end--
  return { text: text.slice(p, end).trimEnd(), span: span(p, end) }
}

function blockComment(text: string, p: number, span: (start: number, end: number) => Span): Comment {
  const close = text.indexOf('*/', p + 2)
  if (close < 0)
    failAt('parse/open-comment', span(p, p + 2), {
      message: 'this comment is never closed',
      expected: '`*/` before the end of the file',
    })
  return { text: text.slice(p, close + 2).replaceAll('\r\n', '\n'), span: span(p, close + 2) }
}

/** True if the innermost braces contain an open bracket that `closer` closes; `}` closes all of them. */
function isOpen(stack: readonly OpenBracket[], closer: string): boolean {
  if (closer === '}') return true
  for (let k = stack.length - 1; k >= 0 && stack[k]!.char !== '{'; k--)
    if (CLOSER[stack[k]!.char] === closer) return true
  return false
}

/** The offset after the closing quote. An unclosed string ends with its line, and the grammar rejects it. */
function endOfString(text: string, start: number): number {
  for (let p = start + 1; p < text.length; p++) {
    if (text[p] === '"') return p + 1
    if (text[p] === '\n') return p
  }
  return text.length
}

/** The offset after the closing backtick. */
function endOfCode(text: string, start: number, span: (start: number, end: number) => Span): number {
  const close = text.indexOf('`', start + 1)
  if (close >= 0) return close + 1
  return failAt('parse/open-text', span(start, start + 1), {
    message: 'this text is never closed',
    expected: 'a backtick before the end of the file',
  })
}

function rejectUnclosed(open: OpenBracket, end: Span, span: (start: number, end: number) => Span): never {
  failAt('parse/unclosed', span(open.offset, open.offset + 1), {
    message: `\`${open.char}\` is never closed`,
    labels: [
      {
        span: end,
        text:
          end.start === end.end ? 'the file ends here' : `\`${CLOSER[open.char]}\` is missing before this`,
      },
    ],
    expected: `\`${CLOSER[open.char]}\``,
  })
}

export function rejectDepth(span: Span): never {
  failAt('parse/too-deep', span, {
    message: 'this is nested too deeply',
    expected: `at most ${MAX_NESTING} brackets within brackets, and expressions of at most ${MAX_HEIGHT} levels`,
    hint: 'name subexpressions with `let`',
  })
}

/** Most conditions of one `if` with its `else if`s: they are nested in the tree, and passes recurse over it. */
export const MAX_BRANCHES = 256

export function rejectBranchCount(span: Span): never {
  failAt('parse/too-many-branches', span, {
    message: 'this `if` has too many `else if`s',
    expected: `at most ${MAX_BRANCHES} conditions in an \`if … else if\` chain`,
    hint: 'read the value from a buffer with one entry per case, or start a new `if`',
  })
}

/** Greatest height of an expression tree: recursive passes must not overflow the stack. */
export const MAX_HEIGHT = 400

function indentOf(text: string, offset: number): number {
  const start = text.lastIndexOf('\n', offset - 1) + 1
  let p = start
  while (text[p] === ' ' || text[p] === '\t') p++
  return p - start
}
