/** The texts of instructions: what stands after a `$` is resolved, and tried for every thread. */
import type { Span } from '../../ast/diagnostic.ts'
import { SptError } from '../../ast/diagnostic.ts'
import type * as Ast from '../../ast/nodes.ts'
import { parseExpression } from '../../ast/parse.ts'
import { DTYPE_BYTES } from '../dtype.ts'
import { evaluate } from '../evaluate.ts'
import { type Expr, int } from '../expr.ts'
import { type InstrPiece, type InstrText, LANE, type Operand } from '../instr.ts'
import { integerOver } from './memories.ts'
import { needsOf, TARGETS } from './needs.ts'
import type { Report } from './report.ts'

type Texts = Readonly<Record<Ast.InstrText['what'], readonly InstrText[]>>

export function textsOf(
  s: Ast.Instr,
  operands: readonly Operand[],
  threads: number,
  report: Report,
): Texts | null {
  const out: Record<Ast.InstrText['what'], InstrText[]> = {
    run: [],
    commit: [],
    prepare: [],
    expect: [],
    wait: [],
  }
  const counted = s.words.some((w) => w.name === 'counted')
  for (const t of s.items) {
    if (t.kind === 'iterate') continue
    if (!TARGETS.includes(t.target.name)) {
      report.error({
        code: 'check/unknown-target',
        message: `there is no target ${t.target.name}`,
        span: t.target.span,
        lookup: { name: t.target.name, candidates: TARGETS },
      })
      continue
    }
    const pieces = new TextOf(
      t,
      t.what === 'run' ? operands : [],
      threads,
      wordsOf(t.what, counted),
      report,
    ).read()
    if (pieces) out[t.what].push({ target: t.target.name, from: t.from ?? 0, ...needsOf(t.needs), pieces })
  }
  if (s.items.some((t) => t.kind === 'text' && t.what === 'run')) return out
  return report.error({
    code: 'check/instr-text',
    message: `instruction ${s.name.name} has no text for any target`,
    span: s.name.span,
    expected: 'a target and its text between backticks',
  })
}

/** What a text mentions beside operands. */
const WORDS = ['lane', 'pending', 'barrier', 'bytes', 'phase'] as const
type Word = (typeof WORDS)[number]

function wordsOf(what: Ast.InstrText['what'], counted: boolean): readonly Word[] {
  switch (what) {
    case 'run':
      return counted ? ['lane', 'barrier'] : ['lane']
    case 'commit':
      return []
    case 'prepare':
      return ['barrier']
    case 'expect':
      return ['barrier', 'bytes']
    case 'wait':
      return counted ? ['barrier', 'phase'] : ['pending']
  }
}

const OPERAND = /^([A-Za-z_]\w*)(?:\.([a-z]+))?/

class TextOf {
  readonly #t: Ast.InstrText
  readonly #text: string
  readonly #operands: readonly Operand[]
  readonly #threads: number
  readonly #words: readonly Word[]
  readonly #report: Report

  constructor(
    t: Ast.InstrText,
    operands: readonly Operand[],
    threads: number,
    words: readonly Word[],
    report: Report,
  ) {
    this.#t = t
    this.#text = t.code.name
    this.#operands = operands
    this.#threads = threads
    this.#words = words
    this.#report = report
  }

  read(): readonly InstrPiece[] | null {
    const out: InstrPiece[] = []
    let from = 0
    for (let at = this.#text.indexOf('$'); at >= 0; at = this.#text.indexOf('$', from)) {
      if (at > from) out.push(this.#text.slice(from, at))
      const made = this.#placeholder(at)
      if (!made) return null
      out.push(made.piece)
      from = made.end
    }
    if (from < this.#text.length) out.push(this.#text.slice(from))
    return out
  }

  /** Whether the target's texts see memory by address, and narrow values packed in words. */
  get #hasAddresses(): boolean {
    return this.#t.target.name === 'cuda'
  }

  #span(from: number, to: number): Span {
    const { span } = this.#t.code
    return { ...span, start: span.start + from, end: span.start + to }
  }

  #refuse(from: number, to: number, message: string, expected?: string): null {
    return this.#report.error({
      code: 'check/instr-placeholder',
      message,
      span: this.#span(from, to),
      ...(expected ? { expected } : {}),
    })
  }

  #placeholder(at: number): { readonly piece: InstrPiece; readonly end: number } | null {
    const match = OPERAND.exec(this.#text.slice(at + 1))
    const name = match?.[1]
    const word = this.#words.find((w) => w === name)
    if (word) return { piece: { kind: word }, end: at + 1 + word.length }
    const o = this.#operands.find((x) => x.name === name)
    if (!match || !o)
      return this.#refuse(
        at,
        at + 1 + (name?.length ?? 0),
        `$${name ?? ''} means nothing here`,
        `one of ${[...this.#operands.map((x) => x.name), ...this.#words].map((x) => `$${x}`).join(', ')}`,
      )
    const field = match[2]
    const open = at + 1 + (field === undefined ? o.name.length : match[0].length)
    const bracket = this.#text[open]
    // In other memory the bracket is the text's own.
    const own = field === undefined && o.scope === 'register'
    if (bracket === '[' && (own || field === 'word')) return this.#register(o, field, at, open)
    if (field === 'at' || field === 'shared' || field === 'index') return this.#element(o, field, at, open)
    if (field === 'map' || field === 'row' || field === 'column') return this.#mapped(o, field, at, open)
    if (o.memory?.opaque && field === undefined)
      return {
        piece: { kind: 'operand' as const, operand: o.name, what: 'slot' as const, args: [int(0)] },
        end: open,
      }
    if (o.scope === 'register') return this.#refuse(at, open, `which register of ${o.name}?`, `$${o.name}[0]`)
    const end = at + 1 + o.name.length
    return { piece: { kind: 'operand', operand: o.name, what: 'name', args: [] }, end }
  }

  #mapped(o: Operand, what: 'map' | 'row' | 'column', at: number, end: number) {
    if (!o.mapped)
      return this.#refuse(at, end, `${o.name} is not mapped`, `\`${o.name}: … in global mapped\``)
    return { piece: { kind: 'operand' as const, operand: o.name, what, args: [] }, end }
  }

  #register(o: Operand, field: string | undefined, at: number, open: number) {
    const end = closing(this.#text, open)
    const args = end < 0 ? null : this.#args(open, end)
    if (!args) return end < 0 ? this.#refuse(at, open + 1, 'this bracket is never closed') : null
    const what = field === 'word' ? ('word' as const) : ('slot' as const)
    if (what === 'word' && !this.#hasAddresses)
      return this.#refuse(at, end, `registers of ${this.#t.target.name} hold one value each`, `$${o.name}[0]`)
    const slots = o.memory?.size ?? o.shape.reduce((a, b) => a * b, 1)
    const count = what === 'slot' ? slots : (slots * DTYPE_BYTES[o.dtype]) / 4
    const [k] = args
    if (o.scope !== 'register' || args.length !== 1 || k?.kind !== 'const' || k.value < 0 || k.value >= count)
      return this.#refuse(
        at,
        end,
        o.scope === 'register' ? `${o.name} has ${count} ${what}s a thread` : `${o.name} is in no register`,
        o.scope === 'register' ? `a constant from 0 to ${count - 1}` : `$${o.name}.at(…)`,
      )
    return { piece: { kind: 'operand' as const, operand: o.name, what, args }, end }
  }

  #element(o: Operand, field: 'at' | 'shared' | 'index', at: number, open: number) {
    const end = this.#text[open] === '(' ? closing(this.#text, open) : -1
    const args = end < 0 ? null : this.#args(open, end)
    if (!args)
      return end < 0
        ? this.#refuse(at, open, `$${o.name}.${field} takes the coordinates of an element`)
        : null
    if (field !== 'index' && !this.#hasAddresses)
      return this.#refuse(
        at,
        end,
        `${this.#t.target.name} has no addresses`,
        `the array $${o.name} and $${o.name}.index(…)`,
      )
    if (o.scope === 'register' || (field === 'shared' && o.scope !== 'shared'))
      return this.#refuse(
        at,
        end,
        `${o.name} is in ${o.scope === 'register' ? 'registers' : 'global memory'}`,
      )
    for (let lane = 0; lane < this.#threads; lane++) {
      const c = args.map((e) => evaluate(e, new Map([[LANE, lane]])))
      if (c.length === o.shape.length && c.every((x, d) => x >= 0 && x < o.shape[d]!)) continue
      return this.#refuse(
        at,
        end,
        `(${c.join(', ')})${this.#threads > 1 ? `, of lane ${lane},` : ''} is no element of ${o.name}`,
        `coordinates in ${o.shape.join(' × ')}`,
      )
    }
    const what = field === 'at' ? ('address' as const) : field
    return { piece: { kind: 'operand' as const, operand: o.name, what, args }, end }
  }

  /** The expressions between two brackets, where they stand in the file. */
  #args(open: number, end: number): readonly Expr[] | null {
    const { span } = this.#t.code
    const out: (Expr | null)[] = []
    let from = open + 1
    let depth = 0
    for (let p = from; p < end; p++) {
      const c = this.#text[p]!
      if (c === '(' || c === '[') depth++
      else if ((c === ')' || c === ']') && p < end - 1) depth--
      if (p < end - 1 && (c !== ',' || depth > 0)) continue
      try {
        const e = parseExpression({ name: span.source, text: this.#text.slice(from, p) }, span.start + from)
        out.push(integerOver(e, new Map([['lane', LANE]]), this.#report))
      } catch (e) {
        if (!(e instanceof SptError)) throw e
        for (const d of e.diagnostics) this.#report.error(d)
        return null
      }
      from = p + 1
    }
    return out.every((e) => e !== null) ? (out as Expr[]) : null
  }
}

/** The place after the bracket that closes the one at `open`; -1 for none. */
function closing(text: string, open: number): number {
  let depth = 0
  for (let p = open; p < text.length; p++) {
    if (text[p] === '(' || text[p] === '[') depth++
    else if ((text[p] === ')' || text[p] === ']') && --depth === 0) return p + 1
  }
  return -1
}
