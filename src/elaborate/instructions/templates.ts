/** Parsing of declared target texts: placeholders after `$`, once for all instances. */
import { type Span, spanAt } from '../../ast/diagnostics/span.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { CLOSER } from '../../ast/parse/lexical-scan.ts'
import { parseExpression } from '../../ast/parse/parse.ts'
import { orReport, report } from '../diagnostics.ts'

export interface TextRange {
  readonly from: number
  readonly to: number
}

export type Part = string | Mention | Value | Repeat

/** A placeholder for an operand, parameter or word: `$C`, `$C[0]`, `$C.word[0]`, `$S.at(0, 8)`. */
export interface Mention extends TextRange {
  readonly kind: 'mention'
  readonly name: string
  readonly field: string | undefined
  /** The expressions in the placeholder's brackets; undefined if the placeholder has no brackets. */
  readonly args: readonly Ast.Expr[] | undefined
}
/** A placeholder for a value: `$(n / 2)`, `$(t)`. */
export interface Value extends TextRange {
  readonly kind: 'value'
  readonly value: Ast.Expr
}
/** A repetition: `$(for k from 0 to 3: …)` is joined by commas, `$[for k from 0 to 3: …]` by spaces. */
export interface Repeat extends TextRange {
  readonly kind: 'repeat'
  readonly name: Ast.Ident
  readonly first: Ast.Expr
  readonly last: Ast.Expr
  readonly between: string
  readonly parts: readonly Part[]
}

/** Words that a text may mention in addition to operands, parameters and counters of repetitions. */
export const WORDS = [
  'lane',
  'pending',
  'barrier',
  'arrivals',
  'bytes',
  'phase',
  'blocks',
  'block',
  'there',
] as const
export type Word = (typeof WORDS)[number]

const NAME = /^[A-Za-z_]\w*/
const FIELD = /^\.(word|at|shared|index|map|row|column)(?!\w)/
const FOR = /^\s*for\s+([A-Za-z_]\w*)\s+from\s/
/** The bracket that belongs to each field. */
const BRACKETS: Readonly<Record<string, string>> = { word: '[', at: '(', shared: '(', index: '(' }

/** For each operand: true if a bracket after the operand is a slot. Otherwise the bracket belongs to the text. */
export type Slotted = ReadonlyMap<string, boolean>

export function templateOf(code: Ast.Ident, operands: Slotted): readonly Part[] | null {
  return new Reader(code, operands).parts(0, code.name.length)
}

class Reader {
  readonly #text: string
  readonly #span: Span

  constructor(
    code: Ast.Ident,
    private readonly operands: Slotted,
  ) {
    this.#text = code.name
    this.#span = code.span
  }

  parts(from: number, to: number): readonly Part[] | null {
    const out: Part[] = []
    let done = from
    for (;;) {
      const at = this.#text.indexOf('$', done)
      const next = at < 0 || at >= to ? to : at
      if (next > done) out.push(this.#text.slice(done, next))
      if (next === to) return out
      const part = this.#part(next, to)
      if (!part) return null
      out.push(part)
      done = part.to
    }
  }

  #part(at: number, to: number): Exclude<Part, string> | null {
    const c = this.#text[at + 1]
    if (c !== '(' && c !== '[') return this.#mention(at, to)
    const end = this.#closing(at + 1, to)
    if (end === null) return null
    if (FOR.test(this.#text.slice(at + 2, end - 1))) return this.#repeat(at, end)
    if (c === '[') return this.#refuse(at, end, 'this repeats nothing', '$[for k from 0 to 3: …]')
    const value = this.#expression(at + 2, end - 1)
    return value && { kind: 'value', value, from: at, to: end }
  }

  #mention(at: number, to: number): Mention | null {
    const name = NAME.exec(this.#text.slice(at + 1, to))?.[0] ?? ''
    const alone = at + 1 + name.length
    const slotted = this.operands.get(name)
    const found = slotted === undefined ? undefined : FIELD.exec(this.#text.slice(alone, to))?.[1]
    const bracket = found === undefined ? (slotted ? '[' : undefined) : BRACKETS[found]
    const open = alone + (found === undefined ? 0 : 1 + found.length)
    const own = open < to && this.#text[open] === bracket
    const mention = { kind: 'mention' as const, name, from: at }
    // `word` without its bracket is not a field.
    if (!own && found === 'word') return { ...mention, field: undefined, args: undefined, to: alone }
    if (!own) return { ...mention, field: found, args: undefined, to: open }
    const end = this.#closing(open, to)
    const args = end === null ? null : this.#list(open + 1, end - 1)
    return args && end !== null ? { ...mention, field: found, args, to: end } : null
  }

  #repeat(at: number, end: number): Repeat | null {
    const [open, close] = [at + 2, end - 1]
    const head = FOR.exec(this.#text.slice(open, close))!
    const name = head[1]!
    const from = open + head[0].length
    const colon = this.#text.indexOf(':', from)
    const to = /\sto\s/.exec(this.#text.slice(from, Math.max(from, colon)))
    if (colon < 0 || colon >= close || !to)
      return this.#refuse(at, end, 'this does not say what is repeated', '$(for k from 0 to 3: …)')
    const first = this.#expression(from, from + to.index)
    const last = this.#expression(from + to.index + to[0].length, colon)
    const body = this.#text.slice(colon + 1, close)
    const start = colon + 1 + body.length - body.trimStart().length
    const parts = this.parts(start, Math.max(start, colon + 1 + body.trimEnd().length))
    if (!first || !last || !parts) return null
    const place = open + head[0].indexOf(name, head[0].indexOf('for') + 3)
    const span = this.#at(place, place + name.length)
    const between = this.#text[at + 1] === '(' ? ', ' : ' '
    return { kind: 'repeat', name: { name, span }, first, last, between, parts, from: at, to: end }
  }

  /** The index after the bracket that closes the one at `open`. */
  #closing(open: number, to: number): number | null {
    const stack: string[] = []
    for (let p = open; p < to; p++) {
      const c = this.#text[p]!
      const closer = CLOSER[c]
      if (closer) stack.push(closer)
      else if (c === stack.at(-1)) stack.pop()
      else if (c === ')' || c === ']' || c === '}') break
      if (stack.length === 0) return p + 1
    }
    return this.#refuse(open, open + 1, 'this bracket is never closed', `\`${stack[0]}\``)
  }

  #list(from: number, to: number): readonly Ast.Expr[] | null {
    const out: Ast.Expr[] = []
    let depth = 0
    let start = from
    for (let p = from; p <= to; p++) {
      const c = this.#text[p]!
      if (p < to && (c === '(' || c === '[')) depth++
      else if (p < to && (c === ')' || c === ']')) depth--
      if (p < to && (c !== ',' || depth > 0)) continue
      const e = this.#expression(start, p)
      if (!e) return null
      out.push(e)
      start = p + 1
    }
    return out
  }

  #expression(from: number, to: number): Ast.Expr | null {
    const text = this.#text.slice(from, to)
    const span = this.#at(from, to)
    // Numbers are read directly, because Ohm is slow.
    if (/^\s*\d{1,9}\s*$/.test(text)) return { kind: 'number', value: Number(text), float: false, span }
    return orReport(() => parseExpression({ name: span.source, text }, span))
  }

  #at(from: number, to: number): Span {
    return spanAt(this.#span, this.#span.start + from, this.#span.start + to)
  }

  #refuse(from: number, to: number, message: string, expected: string): null {
    return report('check/instr-placeholder', this.#at(from, to), { message, expected })
  }
}
