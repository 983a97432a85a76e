/**
 * Traversal of statements that joins an iterator with the dimensions that it indexes alone, as permuted identically.
 */
import type { Span } from '../../ast/diagnostics/diagnostic.ts'
import type { Axis, StoredAxis } from '../../ir/coordinates/axis.ts'
import {
  chainTo,
  isAttached,
  isDenseChain,
  isFused,
  isGathered,
  isNonunique,
  isStored,
  parentOf,
  storesGaps,
} from '../../ir/coordinates/axis.ts'
import type { Buffer1, Iter, Iteration, Kernel1, Stmt1 } from '../../ir/coordinates/stage1.ts'
import { someStmt1 } from '../../ir/coordinates/stage1-tree.ts'
import type { Expr, Load } from '../../ir/expressions/expr.ts'
import { children, isFreeCast, substitute } from '../../ir/expressions/expr-tree.ts'
import { sameExpr } from '../../ir/expressions/structural-equality.ts'
import { printExpr1 } from '../../ir/print/print-stage1.ts'
import { isCompare } from '../../ir/values/math.ts'
import { Alike } from './permutation-classes.ts'

/** A coordinate in scope. */
interface Open {
  readonly name: string
  readonly axis: Axis
  readonly alike: Alike
}

/** The use of a coordinate, and the expression that messages print for it. */
interface Use {
  readonly what: 'condition' | 'value' | 'index'
  readonly shown: Expr | null
  /** The span of the statement, for expressions without a span. */
  readonly span: Span | undefined
  /** Visited nodes: operands are shared, and a node is visited once for each statement. */
  readonly seen: Set<Expr>
}

type Lets = ReadonlyMap<string, Expr>

export class PermutationWalk {
  readonly #axes: ReadonlyMap<string, Axis>
  readonly #buffers: ReadonlyMap<string, Buffer1>
  readonly #dims = new Map<string, readonly Alike[]>()
  readonly #levels = new Map<string, Alike>()

  /**
   * @param only an iteration to restrict the traversal to: other code counts only if it decides which of the
   * iteration's steps run; null for the whole kernel
   */
  constructor(
    private readonly kernel: Kernel1,
    private readonly only: Iteration | null,
  ) {
    this.#axes = new Map(kernel.axes.map((a) => [a.name, a]))
    this.#buffers = new Map(kernel.buffers.map((b) => [b.name, b]))
  }

  /** Returns the dimensions of each tensor that occurs, or whose coordinates an iterator visits. */
  dimensions(): ReadonlyMap<string, readonly Alike[]> {
    for (let known = -1; known !== this.#levels.size; ) {
      known = this.#levels.size
      for (const b of this.kernel.buffers) if (b.axes.some((a) => this.#levels.has(a))) this.#dimsOf(b)
    }
    return this.#dims
  }

  statements(
    body: readonly Stmt1[],
    open: readonly Open[] = [],
    around: Lets = new Map(),
    inside = false,
  ): void {
    let lets = around
    for (const s of body) {
      if (s.kind === 'let') {
        lets = new Map(lets).set(s.name, substitute(s.value, lets))
        continue
      }
      const here = inside || this.only === null || s === this.only
      if (!here && !someStmt1([s], (x) => x === this.only)) continue
      const use = (what: Use['what'], e: Expr, of: readonly Open[]): void =>
        this.#use(substitute(e, lets), of, { what, shown: null, span: s.span, seen: new Set() })
      if (s.kind === 'iterate') {
        const opened = [...open]
        for (const it of s.iters) this.#open(it, opened)
        for (const w of s.where) use('condition', w, opened)
        this.statements(s.body, opened, lets, here)
      } else if (s.kind === 'if') {
        use('condition', s.cond, open)
        for (const b of [s.then, s.else]) this.statements(b, open, lets, here)
      } else {
        for (const t of s.targets) use('value', t, open)
        for (const v of s.values) use('value', v, open)
      }
    }
  }

  /** Adds the coordinates of an iterator, joined with the levels of the trees that it visits. */
  #open(it: Iter, open: Open[]): void {
    const axis = this.#axes.get(it.axis)!
    for (const name of isFused(axis) ? axis.members : [it.name]) {
      const of = isFused(axis) ? this.#axes.get(name)! : axis
      const alike = new Alike([], [of.name])
      open.push({ name, axis: of, alike })
      if (isGathered(of)) {
        alike.refuse(`${name} runs over the coordinates that ${of.buffer} lists`, it.span)
        this.#dimsOf(this.#buffers.get(of.buffer)!)
      } else this.#climb(open, open.length - 1, this.#stored(of), it.span)
    }
  }

  /** Joins a coordinate of a tree, and the coordinates through which it is entered, with the levels of the tree. */
  #climb(open: readonly Open[], at: number, leaf: StoredAxis, span: Span | undefined): void {
    const { axis, alike } = open[at]!
    if (isGathered(axis)) return
    const stored = this.#stored(axis)
    this.#level(stored.name, leaf.name)?.join(alike, span)
    const above = parentOf(stored)
    if (above === null) return
    const by = isAttached(axis) ? axis.parent : above
    const k = open.findLastIndex(
      (o, n) => n < at && (o.axis.name === by || (isAttached(o.axis) && o.axis.base === by)),
    )
    if (isAttached(axis))
      this.#meet(open[k]!, this.#level(above, leaf.name), this.#stored(this.#axes.get(above)!), span)
    else this.#climb(open, k, leaf, span)
  }

  #stored(a: Axis): StoredAxis {
    return isStored(a) ? a : this.#stored(this.#axes.get((a as { readonly base: string }).base)!)
  }

  /**
   * Returns the class of a level of a tree; undefined for a tree of dense levels only. Dense levels have all
   * coordinates, so each sparse tree below them has a class of its own.
   */
  #level(axis: string, leaf: string): Alike | undefined {
    const top = chainTo(this.#axes, leaf).find((a) => !isDenseChain(this.#axes, a))
    if (top === undefined) return undefined
    const key = isDenseChain(this.#axes, axis) ? `${axis} ${top}` : axis
    const known = this.#levels.get(key)
    if (known) return known
    const level = new Alike([])
    this.#levels.set(key, level)
    const a = this.#axes.get(axis)!
    const above = chainTo(this.#axes, axis).slice(0, -1)
    if (storesGaps(a)) level.refuse(`${axis} also stores the coordinates between its elements`, a.span)
    // Elements are distributed over the positions of one coordinate in their order.
    const apart = above.find((x) => isNonunique(this.#axes.get(x)!))
    if (apart !== undefined)
      level.refuse(`${apart} is nonunique, and elements under it are in order of ${axis}`, a.span)
    return level
  }

  #dimsOf(b: Buffer1): readonly Alike[] {
    const known = this.#dims.get(b.name)
    if (known) return known
    const dims = b.axes.map((axis, dimension) => new Alike([{ tensor: b.name, dimension, axis }]))
    this.#dims.set(b.name, dims)
    for (const leaf of b.axes)
      for (const axis of chainTo(this.#axes, leaf)) {
        const level = this.#level(axis, leaf)
        if (level && b.axes.includes(axis))
          dims[b.axes.indexOf(axis)]!.join(level, this.#axes.get(axis)!.span)
      }
    return dims
  }

  #use(e: Expr, open: readonly Open[], use: Use): void {
    if (isFreeCast(e)) this.#use(e.x, open, use)
    else if (e.kind === 'load') this.#access(e, open, use)
    else if (!use.seen.has(e)) {
      use.seen.add(e)
      this.#compute(e, open, use)
    }
  }

  #compute(e: Expr, open: readonly Open[], use: Use): void {
    const own = coordinateIn(e, open)
    own?.alike.refuse(reasonOf(own.name, use.what, use.shown ?? e), e.span ?? use.span)
    if (e.kind === 'binary' && (e.op === 'eq' || e.op === 'ne')) {
      const [a, b] = [coordinateIn(e.a, open), coordinateIn(e.b, open)]
      // Equality is kept if both are permuted identically.
      if (a && b) {
        this.#meet(a, b.alike, this.#stored(b.axis), e.span)
        return
      }
    }
    const keeps = use.what === 'index' || (use.shown !== null && isComparison(use.shown))
    for (const [k, x] of children(e).entries())
      if (e.kind === 'select' && k === 0) this.#use(x, open, { ...use, what: 'condition', shown: null })
      else this.#use(x, open, { ...use, shown: keeps ? use.shown : e })
  }

  #access(l: Load, open: readonly Open[], use: Use): void {
    const b = this.#buffers.get(l.buffer)!
    const dims = this.#dimsOf(b)
    const span = l.span ?? use.span
    for (const [d, x] of l.index.entries()) {
      const o = coordinateIn(x, open)
      if (o) {
        this.#meet(o, dims[d], this.#axes.get(b.axes[d]!) as StoredAxis, span, b.name)
        continue
      }
      dims[d]!.refuse(
        `${b.name} is indexed by ${printExpr1(x)}, which is more than an iterator`,
        x.span ?? span,
      )
      this.#use(x, open, { ...use, what: 'index', shown: x })
    }
  }

  /**
   * Joins a coordinate with the axis in whose place it is used: both are permuted identically. Their extents must be
   * equal.
   */
  #meet(o: Open, other: Alike | undefined, axis: StoredAxis, span?: Span, tensor?: string): void {
    if (other && !sameExpr(this.#stored(o.axis).extent, axis.extent)) {
      const [own, its] = [this.#stored(o.axis).extent, axis.extent].map((e) => printExpr1(e))
      const place = tensor ? `${axis.name} of ${tensor}` : axis.name
      other.refuse(`${o.name} has ${own} coordinates, and ${place} has ${its}`, span)
    }
    other?.join(o.alike, span)
  }
}

function coordinateIn(e: Expr, open: readonly Open[]): Open | undefined {
  if (isFreeCast(e)) return coordinateIn(e.x, open)
  return e.kind === 'var' ? open.find((o) => o.name === e.name) : undefined
}

const isComparison = (e: Expr): boolean => e.kind === 'binary' && isCompare(e.op)

function reasonOf(name: string, what: Use['what'], shown: Expr): string {
  const text = printExpr1(shown)
  const isCondition = what === 'condition' || isComparison(shown)
  if (isCondition) return `the condition ${text} depends on the coordinate ${name}`
  if (shown.kind === 'var') return `the coordinate ${name} is a value`
  return `${what === 'index' ? 'the index' : 'the value'} ${text} computes with the coordinate ${name}`
}
