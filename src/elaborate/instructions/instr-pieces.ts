/**
 * Elaboration of one text (inline assembly) of an instruction: placeholders after `$` are resolved, and checked for
 * every thread.
 */
import { spanAt } from '../../ast/diagnostics/span.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { TARGETS, type TargetName } from '../../backends/targets/index.ts'
import { type Expr, int } from '../../ir/expressions/expr.ts'
import { type InstrPiece, LANE, type Operand, slotsOf } from '../../ir/instructions/instr.ts'
import { DTYPE_BYTES } from '../../ir/values/dtype.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import { anotherMeaning, report } from '../diagnostics.ts'
import { integersOver } from '../expressions/type-conversion.ts'
import { filled, type Values } from './instances.ts'
import { integerOver } from './memories.ts'
import type { Mention, Part, Repeat, TextRange, Value, Word } from './templates.ts'
import { templateOf, WORDS } from './templates.ts'

const NO_NAMES: ReadonlyMap<string, string> = new Map()
const LANES: ReadonlyMap<string, string> = new Map([['lane', LANE]])

/** The parsed texts, cached for all instances of a declaration. */
const templates = new WeakMap<Ast.Ident, readonly Part[]>()

/** The maximum number of repetitions in a text, in total. */
const MOST = 1 << 16

type OperandPiece = Extract<InstrPiece, { readonly kind: 'operand' }>

/** A text with the meanings of names in it. */
interface TextScope {
  readonly text: Ast.InstrText
  readonly target: TargetName
  readonly operands: readonly Operand[]
  readonly threads: number
  readonly words: readonly Word[]
  /** The values of parameters, and of the counters of repetitions. */
  readonly values: Values
}

export class TextOf {
  #repeated = 0

  constructor(private cx: TextScope) {}

  read(): readonly InstrPiece[] | null {
    const { code } = this.cx.text
    const slotted = new Map(this.cx.operands.map((o) => [o.name, o.scope === 'register']))
    const parts = templates.get(code) ?? templateOf(code, slotted)
    if (!parts) return null
    templates.set(code, parts)
    const out: InstrPiece[] = []
    return this.#write(parts, out) ? out : null
  }

  /** Writes parts to `out`. Returns false, and reports an error, if one of the parts is invalid. */
  #write(parts: readonly Part[], out: InstrPiece[]): boolean {
    return parts.every((p) => {
      const made = typeof p === 'string' ? p : p.kind === 'repeat' ? this.#repeat(p, out) : this.#piece(p)
      if (made === null) return false
      const last = out.at(-1)
      if (typeof made === 'string' && typeof last === 'string') out[out.length - 1] = last + made
      else if (made !== '') out.push(made)
      return true
    })
  }

  /** Writes the text for each number. Returns an empty text, because all is written. */
  #repeat(r: Repeat, out: InstrPiece[]): '' | null {
    const { name } = r.name
    const outer = this.cx
    if (
      outer.values.has(name) ||
      WORDS.some((w) => w === name) ||
      this.cx.operands.some((o) => o.name === name)
    )
      return anotherMeaning(r.name, 'this text', 'choose another name for the number')
    const [first, last] = [this.#constant(r.first), this.#constant(r.last)]
    if (first === null || last === null) return null
    this.#repeated += Math.max(0, last - first + 1)
    if (this.#repeated > MOST)
      return this.#refuse(r, `this is repeated ${this.#repeated} times`, `at most ${MOST} times`)
    for (let k = first; k <= last; k++) {
      this.cx = { ...outer, values: new Map([...outer.values, [name, k]]) }
      if (!this.#write(k > first ? [r.between, ...r.parts] : r.parts, out)) return null
    }
    this.cx = outer
    return ''
  }

  #refuse(at: TextRange, message: string, expected: string): null {
    const { span } = this.cx.text.code
    return report('check/instr-placeholder', spanAt(span, span.start + at.from, span.start + at.to), {
      message,
      expected,
    })
  }

  #constant(e: Ast.Expr): number | null {
    const value = this.#integer(e, NO_NAMES)
    if (!value || value.kind === 'const') return value?.value ?? null
    return report('check/constant', e.span, {
      message: 'this is not a constant',
      expected: integersOver(this.cx.values.keys()),
    })
  }

  #integer(e: Ast.Expr, names: ReadonlyMap<string, string>): Expr | null {
    const known = e.kind === 'number' && !e.float ? e.value : e.kind === 'name' && this.cx.values.get(e.name)
    return typeof known === 'number'
      ? int(known)
      : integerOver(filled(e, this.cx.values), names, this.cx.values.keys())
  }

  #piece(p: Mention | Value): InstrPiece | null {
    if (p.kind === 'value') {
      const type = p.value.kind === 'name' ? this.cx.values.get(p.value.name) : undefined
      if (typeof type === 'string') return type
      const value = this.#constant(p.value)
      return value === null ? null : String(value)
    }
    const { name } = p
    const value = this.cx.values.get(name)
    if (value !== undefined) return String(value)
    const word = this.cx.words.find((w) => w === name)
    if (word) return { kind: word }
    const o = this.cx.operands.find((x) => x.name === name)
    if (o) return this.#operand(o, p)
    const known = [...this.cx.operands.map((x) => x.name), ...this.cx.words, ...this.cx.values.keys()]
    return this.#refuse(
      { from: p.from, to: p.from + 1 + name.length },
      `$${name} means nothing here`,
      `one of ${known.map((x) => `$${x}`).join(', ')}`,
    )
  }

  #operand(o: Operand, p: Mention): InstrPiece | null {
    const { field } = p
    const said = (what: OperandPiece['what'], args: readonly Expr[] = []): OperandPiece => ({
      kind: 'operand',
      operand: o.name,
      what,
      args,
    })
    switch (field) {
      case 'map':
      case 'row':
      case 'column':
        if (o.mapped) return said(field)
        return this.#refuse(p, `${o.name} is not mapped`, `\`${o.name}: … in global mapped\``)
      case 'at':
      case 'shared':
      case 'index':
        return this.#element(o, field, p)
    }
    if (p.args) return this.#register(o, p, p.args)
    if (o.memory?.opaque) return said('slot', [int(0)])
    if (o.scope === 'register') return this.#refuse(p, `which register of ${o.name}?`, `$${o.name}[0]`)
    return said('name')
  }

  #register(o: Operand, p: Mention, given: readonly Ast.Expr[]): OperandPiece | null {
    const args = this.#coordinates(given)
    if (!args) return null
    const what = p.field === 'word' ? ('word' as const) : ('slot' as const)
    if (what === 'word' && !TARGETS[this.cx.target].declared.addresses)
      return this.#refuse(p, `registers of ${this.cx.target} hold one value each`, `$${o.name}[0]`)
    const isWhole = o.memory && DTYPE_BYTES[o.dtype] === 2 && o.memory.size % 2 === 0
    if (what === 'word' && o.scope === 'register' && !isWhole)
      return this.#refuse(
        p,
        o.memory
          ? `a thread has ${o.memory.size} elements of ${DTYPE_BYTES[o.dtype]} bytes in a tile of ${o.name}: they are no words`
          : `${o.name} is in no declared memory: its registers hold one value each`,
        `$${o.name}[0]`,
      )
    const slots = slotsOf(o)
    const count = what === 'slot' ? slots : (slots * DTYPE_BYTES[o.dtype]) / 4
    const [k] = args
    if (o.scope !== 'register' || args.length !== 1 || k?.kind !== 'const' || k.value < 0 || k.value >= count)
      return this.#refuse(
        p,
        o.scope === 'register' ? `${o.name} has ${count} ${what}s a thread` : `${o.name} is in no register`,
        o.scope === 'register' ? `a constant from 0 to ${count - 1}` : `$${o.name}.at(…)`,
      )
    return { kind: 'operand', operand: o.name, what, args }
  }

  #element(o: Operand, field: 'at' | 'shared' | 'index', p: Mention): OperandPiece | null {
    if (!p.args)
      return this.#refuse(
        p,
        `$${o.name}.${field} takes the coordinates of an element`,
        `$${o.name}.${field}(${o.shape.map(() => '0').join(', ')})`,
      )
    const args = this.#coordinates(p.args)
    if (!args) return null
    if (field !== 'index' && !TARGETS[this.cx.target].declared.addresses)
      return this.#refuse(
        p,
        `${this.cx.target} has no addresses`,
        `the array $${o.name} and $${o.name}.index(…)`,
      )
    if (field === 'at' && o.packed !== undefined)
      return this.#refuse(
        p,
        `elements of ${o.name} are ${o.packed} bits of a word`,
        `the words $${o.name} and $${o.name}.index(…)`,
      )
    if (o.scope === 'register' || (field === 'shared' && o.scope !== 'shared'))
      return this.#refuse(
        p,
        `${o.name} is in ${o.scope === 'register' ? 'registers' : 'global memory'}`,
        o.scope === 'register' ? `$${o.name}[0]` : `$${o.name}.at(…)`,
      )
    for (let lane = 0; lane < this.cx.threads; lane++) {
      const c = args.map((e) => evaluate(e, new Map([[LANE, lane]])))
      if (c.length === o.shape.length && c.every((x, d) => x >= 0 && x < o.shape[d]!)) continue
      return this.#refuse(
        p,
        `(${c.join(', ')})${this.cx.threads > 1 ? `, of lane ${lane},` : ''} is no element of ${o.name}`,
        `coordinates in ${o.shape.join(' × ')}`,
      )
    }
    return { kind: 'operand', operand: o.name, what: field === 'at' ? 'address' : field, args }
  }

  #coordinates(list: readonly Ast.Expr[]): readonly Expr[] | null {
    const out = list.map((e) => this.#integer(e, LANES))
    return out.every((e) => e !== null) ? out : null
  }
}
