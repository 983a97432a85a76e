/**
 * One walk over the characters before the grammar sees them: finds the comments (the parser drops them, the printer
 * needs them), leaves out what the grammar need not look at, and refuses what a grammar explains badly: unbalanced
 * brackets, open comments, bottomless nesting.
 */
import { type Condensed, Condenser } from './condensed-source.ts'
import { fail } from './diagnostic.ts'
import type { Comment } from './nodes.ts'
import { type Source, type Span, spanIn } from './span.ts'

/** Characters of one file; data files are read by `io`, and Ohm keeps about 2 KB for each character. */
export const MAX_SOURCE = 400_000
/** Brackets within brackets; the parser descends once for each. */
export const MAX_NESTING = 64

export const CLOSER: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' }

interface Open {
  readonly char: string
  readonly at: number
}

export interface Scanned {
  readonly comments: readonly Comment[]
  readonly condensed: Condensed
}

export function scan(source: Source): Scanned {
  const { name, text } = source
  const span = (start: number, end: number): Span => spanIn(source, start, end)
  if (text.length > MAX_SOURCE)
    fail({
      code: 'parse/too-large',
      message: `${name} has ${text.length} characters; a program may have ${MAX_SOURCE}`,
      hint: 'is this a data file? Those are bound with --bind NAME=PATH',
    })
  const comments: Comment[] = []
  const condenser = new Condenser(text)
  const stack: Open[] = []
  let suspect: Open | undefined
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
      fail({
        code: 'parse/unexpected',
        message: `unexpected U+${code}, which looks like a space, but is not one`,
        span: span(p, p + 1),
        expected: 'a blank, a tab or the end of the line',
        hint: 'text that is copied from a page or a document has such characters: replace them by blanks',
      })
    } else {
      if (c in CLOSER) {
        stack.push({ char: c, at: p })
        if (stack.length > MAX_NESTING) tooDeep(span(p, p + 1))
      } else if (c === ')' || c === ']' || c === '}') {
        const open = stack.pop()
        if (!open || (CLOSER[open.char] !== c && !opened(stack, c)))
          fail({
            code: 'parse/unopened',
            message: `\`${c}\` closes nothing`,
            span: span(p, p + 1),
            hint: 'remove it, or add what it should close',
          })
        if (CLOSER[open.char] !== c) unclosed(open, span(p, p + 1), span)
        if (c === '}' && !suspect && indentOf(text, p) < indentOf(text, open.at)) suspect = open
        if (c === '}' && stack.length === 0) condenser.declared(p + 1)
      }
      p++
    }
  }
  const last = stack.pop()
  const end = text.trimEnd().length
  if (last) unclosed(suspect ?? last, span(end, end), span)
  return { comments, condensed: condenser.end() }
}

const BLANK: ReadonlySet<string> = new Set(' \t\r\n')

const startsComment = (text: string, p: number): boolean =>
  text[p] === '/' && (text[p + 1] === '/' || text[p + 1] === '*')

/** Past blanks and comments, which it adds to `comments`. */
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
    fail({
      code: 'parse/open-comment',
      message: 'this comment is never closed',
      span: span(p, p + 2),
      expected: '`*/` before the end of the file',
    })
  return { text: text.slice(p, close + 2).replaceAll('\r\n', '\n'), span: span(p, close + 2) }
}

/** Whether a bracket that `closer` closes is open in the innermost braces; `}` closes whatever is left open in it. */
function opened(stack: readonly Open[], closer: string): boolean {
  if (closer === '}') return true
  for (let k = stack.length - 1; k >= 0 && stack[k]!.char !== '{'; k--)
    if (CLOSER[stack[k]!.char] === closer) return true
  return false
}

/** Past the closing quote; a string that its line does not close ends with the line, and the grammar refuses it. */
function endOfString(text: string, start: number): number {
  for (let p = start + 1; p < text.length; p++) {
    if (text[p] === '"') return p + 1
    if (text[p] === '\n') return p
  }
  return text.length
}

/** Past the closing backtick. */
function endOfCode(text: string, start: number, span: (start: number, end: number) => Span): number {
  const close = text.indexOf('`', start + 1)
  if (close >= 0) return close + 1
  return fail({
    code: 'parse/open-text',
    message: 'this text is never closed',
    span: span(start, start + 1),
    expected: 'a backtick before the end of the file',
  })
}

function unclosed(open: Open, end: Span, span: (start: number, end: number) => Span): never {
  fail({
    code: 'parse/unclosed',
    message: `\`${open.char}\` is never closed`,
    span: span(open.at, open.at + 1),
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

export function tooDeep(span: Span): never {
  fail({
    code: 'parse/too-deep',
    message: 'this is nested too deeply',
    span,
    expected: `at most ${MAX_NESTING} brackets within brackets, and expressions of at most ${MAX_HEIGHT} levels`,
    hint: 'name parts of it with `let`',
  })
}

/** Conditions of one `if` with its `else if`s: a text has them side by side, and what walks its tree within each other. */
export const MAX_BRANCHES = 256

export function tooLongChain(span: Span): never {
  fail({
    code: 'parse/too-many-branches',
    message: 'this `if` has too many `else if`s',
    span,
    expected: `at most ${MAX_BRANCHES} conditions, one after the other`,
    hint: 'look the value up in a buffer, or begin a new `if`',
  })
}

/** Levels of one expression tree: what walks it by recursion must not run out of stack. */
export const MAX_HEIGHT = 400

/** Blanks before the first character of the line that holds `at`. */
function indentOf(text: string, at: number): number {
  const start = text.lastIndexOf('\n', at - 1) + 1
  let p = start
  while (text[p] === ' ' || text[p] === '\t') p++
  return p - start
}
