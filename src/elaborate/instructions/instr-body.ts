/** Elaboration of an instruction's body: a single statement over the operands. */
import { digitsIn, extentsOf, sumOf } from '../../analysis/instructions/operand-digits.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { type Expr, type Load, load, variable } from '../../ir/expressions/expr.ts'
import { mentions } from '../../ir/expressions/expr-tree.ts'
import type { InstrIter, Operand } from '../../ir/instructions/instr.ts'
import type { Reduce, Store } from '../../ir/statements/loops.ts'
import { reduction as reduce, store } from '../../ir/statements/statement-builders.ts'
import { isWord } from '../../ir/values/dtype.ts'
import { builtinMonoid, isBuiltinReducer } from '../../ir/values/monoid.ts'
import { report } from '../diagnostics.ts'
import { elaborateExpr, type Names, noNames, settled } from '../expressions/expressions.ts'
import { coerce, plain, type Typed } from '../expressions/type-conversion.ts'

export interface InstrBody {
  readonly iters: readonly InstrIter[]
  readonly stmt: Store | Reduce
  readonly target: string
  readonly reads: ReadonlySet<string>
  /** Upper bounds (exclusive) of the elements of operands that are indices of others. */
  readonly below: ReadonlyMap<string, number>
}

export class BodyOf {
  readonly #extents = new Map<string, number>()
  readonly #reads = new Set<string>()
  readonly #below = new Map<string, number>()

  constructor(
    private readonly s: Ast.Instr,
    private readonly iterate: Ast.Iterate,
    private readonly operands: ReadonlyMap<string, Operand>,
  ) {}

  read(): InstrBody | null {
    const [s] = this.iterate.body
    const place = this.iterate.span
    if (!s || (s.kind !== 'assign' && s.kind !== 'reduce') || s.targets.length !== 1)
      return report('check/instr-body', s?.span ?? place, {
        message: 'an instruction assigns or reduces into a single operand',
        expected: '`OPERAND[…] = …` or `OPERAND[…] += …`',
      })
    if (s.kind === 'reduce' && !isBuiltinReducer(s.reducer.name))
      return report('check/unknown-reducer', s.reducer.span, {
        message: `instructions do not reduce with ${s.reducer.name}`,
        expected: '+ * min max and or',
      })
    const target = this.#access(s.targets[0]!, { written: true })
    const value = elaborateExpr(s.values[0]!, this.#names())
    if (!target || !value) return null
    const stored = coerce(value, target.dtype, target.buffer)
    if (!stored) return null
    const iters = this.#iters(target)
    for (const o of this.operands.values())
      if (o.name !== target.buffer && !this.#reads.has(o.name))
        report('check/instr-operand', this.s.name.span, {
          message: `the body does not use operand ${o.name}`,
          hint: `use ${o.name} in the statement, or remove the operand`,
        })
    if (!iters) return null
    const common = { span: s.span }
    const known = { iters, reads: this.#reads, below: this.#below }
    if (s.kind === 'assign')
      return {
        ...known,
        target: target.buffer,
        stmt: store(target.buffer, target.index, stored, common),
      }
    const name = s.reducer.name
    const reducer = isBuiltinReducer(name) ? builtinMonoid(name, target.dtype) : null
    return (
      reducer && {
        ...known,
        target: target.buffer,
        stmt: reduce({
          reducer,
          targets: [target],
          values: [stored],
          init: false,
          atomic: false,
          ...common,
        }),
      }
    )
  }

  #iters(target: Load): readonly InstrIter[] | null {
    const out = this.iterate.iters.map((it): InstrIter | null => {
      const name = it.name.name
      const extent = this.#extents.get(name)
      const inTarget = target.index.some((e) => mentions(e, name))
      if (extent === undefined || (it.mode === 'S') !== inTarget)
        return report('check/instr-iterator', it.span, {
          message:
            extent === undefined
              ? `${name} is the index of no operand`
              : `${name} is ${it.mode === 'S' ? 'no' : 'an'} index of ${target.buffer}`,
          expected: 'S for the indices of written operands, R for other indices',
        })
      return { name, extent, reduce: it.mode === 'R' }
    })
    return out.some((x) => x === null) ? null : (out as InstrIter[])
  }

  /**
   * An access to an operand. The indices are iterators, each used once: one for each dimension, or several as digits of
   * a dimension. In operands that are only read, elements of other operands may be digits as well; `within`: the
   * operand whose index has this access as such an element.
   */
  #access(e: Ast.Access, { written = false, within = '' } = {}): Load | null {
    const o = this.operands.get(e.buffer.name)
    if (!o)
      return report('check/unknown-buffer', e.buffer.span, {
        message: `there is no operand ${e.buffer.name}`,
        lookup: { name: e.buffer.name, candidates: [...this.operands.keys()] },
      })
    const iters = this.iterate.iters.map((i) => i.name.name)
    const refuse = (message: string, span = e.span): null =>
      report('check/instr-index', span, {
        message,
        expected: `plain iterators: ${o.name}[${iters.slice(0, o.shape.length).join(', ')}], or, in memory, digits of a coordinate: 2 * g + q`,
      })
    if (e.index.length !== o.shape.length)
      return refuse(`${o.name} is not indexed by ${o.shape.length} different iterators`)
    const index: Expr[] = []
    const seen = new Set<string>()
    for (const [d, x] of e.index.entries()) {
      const sum = settled(x, this.#iterators(iters, written || within !== '' ? undefined : o))
      if (!sum) return null
      const digits = digitsIn(sum)
      const count = o.shape[d]!
      const extents = digits && extentsOf(digits, count)
      if (!digits || !extents || digits.some((t) => seen.has(t.name)))
        return refuse(
          `${o.name} is not indexed by ${o.shape.length} different iterators, or digits of its ${count} coordinates here`,
          x.span,
        )
      const several = digits.length > 1 || digits[0]?.element
      if (several && o.scope === 'register' && (written || !o.memory))
        return refuse(
          `${o.name} is in registers, where a dimension is one loop, and this has ${digits[0]?.element ? 'none' : digits.length}`,
          x.span,
        )
      for (const [k, { name, element }] of digits.entries()) {
        seen.add(name)
        if (!this.#extent(name, extents[k]!, x, element ? this.#below : this.#extents)) return null
      }
      index.push(sumOf(digits))
    }
    return load(o.name, index, o.dtype, e.span)
  }

  /**
   * Records the extent of an iterator, or the bound of elements that are indices. Returns false, and reports an error,
   * if another value was recorded before.
   */
  #extent(name: string, extent: number, where: Ast.Expr, of: Map<string, number>): boolean {
    const known = of.get(name)
    if (known !== undefined && known !== extent)
      report('check/instr-index', where.span, {
        message: `${name} runs to ${known} and to ${extent}`,
        hint: 'use another iterator here, or give both dimensions the same extent',
      })
    of.set(name, extent)
    return known === undefined || known === extent
  }

  /** The names in an index. `of`: the operand whose index may contain elements of other operands. */
  #iterators(iters: readonly string[], of: Operand | undefined): Names {
    const refuse = (e: Ast.Expr): null =>
      report('check/instr-index', e.span, {
        message: 'an index of an operand is made of iterators',
        expected: `some of ${iters.join(', ')}${of ? ', or elements of other operands of i32' : ''}`,
      })
    return {
      name: (e) => (iters.includes(e.name) ? plain(variable(e.name)) : refuse(e)),
      field: refuse,
      access: (e): Typed | null => {
        const element = of && e.buffer.name !== of.name ? this.operands.get(e.buffer.name) : undefined
        if (!of || (element && !isWord(element.dtype)) || e.buffer.name === of.name) return refuse(e)
        const l = this.#access(e, { within: of.name })
        if (!l) return null
        this.#reads.add(l.buffer)
        return plain(l)
      },
    }
  }

  #names(): Names {
    const refuse = (e: Ast.Expr): null =>
      report('check/unknown-name', e.span, {
        message: 'an instruction computes with operands only',
        expected: `an element of ${[...this.operands.keys()].join(' or ')}`,
      })
    return {
      ...noNames(refuse),
      access: (e): Typed | null => {
        const l = this.#access(e)
        if (l) this.#reads.add(l.buffer)
        return l && plain(l)
      },
    }
  }
}
